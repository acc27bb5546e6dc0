#!/usr/bin/env bash
# The README: its commands run as they are printed, and what it shows and links to is there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
ln -s "$top/data" "$top/pipelines" .

# Blocks of commands, in their order: those of one block use files of those before it.
awk '/^```/ { on = $0 == "```sh"; n += on; next } on { print > ("block" n) }' "$top/README.md"
for ((i = 1; ; i++)); do
	[ -e block$i ] || break
	ok "$(head -n 1 block$i) ..." bash -euo pipefail block$i
	cp ok.out out$i
done
is 'there are three' "$i" 4
is 'the first prints a KL divergence' "$(grep -c '^reference_kl	\|^kl	' out1)" 1
is 'the second one for each format' "$(cut -d ' ' -f 1 out2 | sort -u | xargs)" 'e2m1 e2m2 int4 int5 nf4 nf5'
is 'the third two accuracies' "$(grep -c '^all	528	0\.' out3)" 2

# What make demo prints is the table of this machine's kind, made of the file that docs/results has.
shown=$(sed -n "s/^heads='\(.*\)'$/\1/p" "$top/pipelines/dpq-table4.sh")
is 'the table of make demo' "$(sed -n '/^scheme  order/,/^```/p' "$top/README.md" | sed '$d')" \
	"$(cd "$top/pipelines/lib" &&
		awk -v shown="$shown" -f numbers.awk -f show.awk ../../docs/results/dpq-table4-prose.tsv)"

# Links of all pages: files, and headings of them.
is 'links lead somewhere' "$(py dead_links "$top")" ''
done_testing
