#!/bin/sh
# papers.t -- docs/papers.md: its names exist, no item of a paper is missing, its links lead to headings
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

for t in "$top"/bin/*.c; do
	t=$(basename "$t" .c)
	"$t" --help >"$t.help"
done
# look PAGE: the faults of the page, one per line
look() { py look "$1" "$top"; }
is 'all names in docs/papers.md exist, and all items of the papers are in it' "$(look "$top/docs/papers.md")" ''
awk -f "$top/pipelines/lib/items.awk" "$top/docs/papers.md" >items.tsv
for p in "$top"/pipelines/*-table[0-9]*.sh "$top"/pipelines/*-figure[0-9]*.sh; do
	p=${p##*/} p=${p%.sh}
	is "$p is in the row of its table or figure" \
		"$(awk -F '\t' -v p="${p%b}" '$2 == p { print (index($5, p) > 0) }' items.tsv)" 1
done

# finds WHAT LINE: the page with this line at its end has this fault, and no other
finds() {
	{ cat "$top/docs/papers.md"; echo "$2"; } >wrong.md
	is "finds $1" "$(look wrong.md)" "$1"
}
# shellcheck disable=SC2016
{
	finds 'lib/quant/none.c: no such file' 'In `lib/quant/none.c`.'
	finds 'no-tool: neither a path nor a tool nor a member of a file' 'By `no-tool`.'
	finds 'dpq-run: no option --none' 'By `dpq-run --none`.'
	finds 'dpq-run: --compensate does not take all' 'By `dpq-run --compensate all`.'
	finds 'results/none.md: no such page' 'See [none](results/none.md).'
	finds 'results/dpq.md#none: no such heading' 'See [none](results/dpq.md#none).'
	finds 'section 9: none: perhaps is not a status' '| section 9: none | `dpq-run` | | perhaps | |'
	finds 'section 9: none: not yet, and has a tool or results' '| section 9: none | `dpq-run` | | not yet | |'
	finds 'section 9: none: agrees, and no page shows it' '| section 9: none | `dpq-run` | | agrees: all | |'
	finds 'section 9: none: the last cell is more than links to pages' \
		'| section 9: none | `dpq-run` | | agrees | 0.2 ([dpq](results/dpq.md)) |'
	finds 'section 9: none: a figure, which is for the page of results' \
		'| section 9: none | `dpq-run` | | agrees: by 0.2 | [dpq](results/dpq.md) |'
	finds 'section 9: none: not a row of five columns, the first an item' '| section 9: none | `dpq-run` | - |'
}
sed '/^| algorithm 3: /d' "$top/docs/papers.md" >wrong.md
is 'finds a missing item' "$(look wrong.md)" 'MQuant: algorithm 1 to 3 wanted, there are [1, 2]'
done_testing
