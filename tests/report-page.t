#!/bin/sh
# report-page.t -- pipelines/all.sh: the page of all tables and figures, for an artificial folder of results
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
unset PTQ_CPU PTQ_CTX PTQ_DRAWS PTQ_EACH PTQ_GROUP PTQ_LIMIT PTQ_LOG PTQ_RANKS PTQ_RUNS PTQ_TOKENS

# A tree with two pipelines: one makes a table of two runs, and one fails.
mkdir -p 'a tree/docs/results'
tree="$tmp/a tree"
cp -r "$top/pipelines" "$tree"
rm "$tree"/pipelines/*-*.sh
cp "$top"/docs/results/dpq.md "$tree/docs/results"
cp "$top/tests/ref/llama-gqa.h5" m.h5
cat >"$tree/docs/papers.md" <<'MD'
## DPQ

| item | tool or pipeline | code | status | results |
|---|---|---|---|---|
| eq. 1: none | `dpq-run` | | implemented | |
| figure 1: <none> & nothing | `gar-order` | | implemented | |
| figure 2: same as table 1 | `dpq-run`; `pipelines/dpq-table1.sh` | | implemented | |
| table 1: two runs | `pipelines/dpq-table1.sh` | | agrees in part: a < b | [dpq](results/dpq.md), [no](results/no.md) |
| table 2: fails | `pipelines/dpq-table2.sh` | | differs: all | [dpq](results/dpq.md) |
MD
cat >"$tree/pipelines/dpq-table1.sh" <<SH
#!/usr/bin/env bash
# dpq-table1.sh [MODEL] -- DPQ table 1: what a < b
# & c is
#
# kl: a number.
set -euo pipefail
. "\$(dirname "\$0")/lib/common.sh"
begin "\$name" "$tmp/m.h5" "\$@"
step "tensor-stats -q model.h5 >stats.tsv"
step "hadamard-rotate -q --seed 1 model.h5 -o one.h5"
step "tensor-stats -q one.h5 >one.tsv"
step "exmy-sweep --tsv --table layer model.h5 >layer.tsv"
step "awk 'NR <3 && 1 > 0' stats.tsv >two.tsv"
run_steps
values() { [ "\$2" = one ] && printf '0.00123456\t0.000321\t\t5\n' || printf -- '-1.5e-07\t0\t7\t<i>\n'; }
tabulate table1 'kl kl_se empty more' values 'way' <<'T'
way	@	paper_ppl
one & only	@one	5.500
<two>	@two	
other	@nothing here	6.25
T
printf '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>' >table1.svg
say "the paper (a model): 1 & 2," \\
	"or 3"
SH
printf '#!/usr/bin/env bash\n# dpq-table2.sh -- DPQ table 2: fails\nset -euo pipefail\n. "%s"\narguments 0 "$@"\n' \
	"$tree/pipelines/lib/common.sh" >"$tree/pipelines/dpq-table2.sh"
echo "fail 1 'programs & <others>: are not there'" >>"$tree/pipelines/dpq-table2.sh"
chmod +x "$tree"/pipelines/*.sh
all=$tree/pipelines/all.sh
export PTQ_RESULTS='some results'
page=$PTQ_RESULTS/index.html

ok 'the page without results' "$all" --page
is '... names what is missing, and no other file is written' "$(py missing "$page") $(ls "$PTQ_RESULTS")" \
	'dpq-table1 dpq-table2 index.html'
no 'a pipeline without a table or figure' 2 '^all: recipes: no table or figure of docs/papers.md' "$all" recipes
"$all" --status >status 2>said
is '--status of each pipeline' "$? $(cut -f 1 status | sort | uniq -c | xargs)" '1 5 to do'
ok '... a failure is reported' grep -qx 'all: dpq-table2: failed' said
"$all" --dry-run dpq-table1 >commands 2>said
is '--dry-run prints the commands' "$? $(wc -c <said) $(grep -c 'tensor-stats -q one.h5 >one.tsv' commands)" '0 0 1'
ok '... they are a valid script' bash -n commands
"$all" >out 2>said
is 'a pipeline fails: status 1' $? 1
ok '... the pipeline is named' grep -qx 'all: dpq-table2: failed' said
ok '... the others are run, and their tables are printed' grep -q '^one & only' out
is '... the page lists it as missing and as failed' "$(py missing "$page") $(py failed "$page")" 'dpq-table2 dpq-table2'
ok '... with the reason' grep -q 'programs &amp; &lt;others&gt;: are not there' "$page"
mkdir broken
printf '#!/bin/sh\nexit 1\n' >broken/h5dump
chmod +x broken/h5dump
cp "$page" whole.html
ok 'files whose history cannot be read' env PATH="$tmp/broken:$PATH" "$all" --page
is '... the page has the tables' "$(grep -c '<table' "$page")" "$(grep -c '<table' whole.html)"
"$all" --page >again 2>&1
py titles "$page" >titles
is 'all tables and figures, in the order of the paper' "$(cat titles)" 'Figure 1: <none> & nothing
Figure 2: same as table 1
Table 1: two runs
Table 2: fails'
work=$(echo "$PTQ_RESULTS"/dpq-table1/*)
is 'HTML, links and ids are valid' "$(py wrong "$page")" ''
is 'numbers equal those of the table, with their errors' "$(py numbers "$page" "$work/table1.tsv")" ''
is '... numbers of the paper are marked and unchanged' "$(py theirs "$page")" 'paper_ppl 5.500 6.25'
is 'each row has its commands, and the commands before them' "$(py commands "$page")" 'one & only: 3
<two>: 3'
ok '... unchanged' grep -q "<code>awk 'NR &lt;3 &amp;&amp; 1 &gt; 0' stats.tsv &gt;two.tsv</code>" "$page"
ok 'the title of the pipeline, and the statement on the paper' \
	sh -c 'grep -q "a &lt; b" "$1" && grep -q "the paper (a model): 1 &amp; 2, or 3" "$1"' sh "$page"
ok 'histories of files are on the page' grep -q '^hadamard-rotate .*--seed 1' "$page"
"$all" dpq-table1 >out 2>said
is 'a second run makes nothing' "$? $(grep -c ' s$' said)" '0 0'
is 'no scratch folder is left' "$(find "$PTQ_RESULTS" -name 'part*')" ''

if ! command -v xmllint >/dev/null; then skip 'xmllint' 'is not installed'
else is 'xmllint reports only unknown tags' \
	"$(xmllint --html --noout "$page" 2>&1 | grep 'error :' | grep -v ': Tag [a-z]* invalid')" ''
fi
for browser in chromium chromium-browser google-chrome none; do command -v $browser >/dev/null && break; done
if [ $browser = none ]; then skip 'in Chromium' 'is not installed'
else
	"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/profile" --enable-logging=stderr \
		--dump-dom "file://$(realpath "$page" | sed 's/ /%20/g')" >dom.html 2>log </dev/null
	is 'Chromium prints no message' "$? $(grep -c CONSOLE log)" '0 0'
	is '... and shows the titles' "$(py titles dom.html)" "$(cat titles)"
	is '... and the numbers' "$(py numbers dom.html "$work/table1.tsv")" ''
fi
done_testing
