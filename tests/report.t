#!/bin/sh
# report.t -- --report FILE of every tool that prints a table on standard error
# The report is the same table, as lines or as JSON, and is complete or not written.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OMP_NUM_THREADS=2
ref=$top/tests/ref m=$top/tests/ref/qwen3-moe.h5
tokens() { py tokens "$1"; }
tokens t.h5
hessian-accum -q --tokens t.h5 --ctx 32 "$m" -o h.h5
hadamard-rotate -q "$ref/llama-gqa.h5" -o rotated.h5
hessian-accum -q --tokens t.h5 --ctx 32 "$ref/llama-gqa.h5" -o g.h5
# table KIND COMMAND...: the value in the row `all` is of this kind
table() {
	kind=$1; shift
	"$@" -o plain.h5 2>seen || cat seen >&2
	"$@" -o lines.h5 --report t.tsv 2>again; "$@" -q -o json.h5 --report t.json 2>quiet
	ok "$1: one table in all three places" py one_table "$kind"
	is "$1: standard error has it with --report too" "$(grep -c . again)" "$(grep -c . seen)"
	is "$1: -q prints no table" "$(grep -vc ': warning: ' quiet)" 0
	ok "$1: the result is the same" sh -c 'cmp plain.h5 lines.h5 && cmp plain.h5 json.h5'
}
table mean dpq-run --group 8 --hessian h.h5 "$m"
table none dpq-run --group 8 --compensate none "$m"
table mean fbq-run --group 8 --rank 2 --steps 3 --hessian g.h5 "$ref/llama-gqa.h5"
table most msq-calib --act-format int8 --tokens t.h5 --ctx 32 "$ref/llama-gqa.h5"
table sum rms-suppress rotated.h5
table most smooth-scale --hessian g.h5 "$ref/llama-gqa.h5"
table mean awq-scale --group 8 --hessian g.h5 "$ref/llama-gqa.h5"
table mean awq-scale --clip no --group 8 --hessian g.h5 "$ref/llama-gqa.h5"
dpq-run -q --compensate none --storage int3 --group 8 "$ref/llama-gqa.h5" -o int3.h5
hessian-accum -q --tokens t.h5 --ctx 32 --pair "$ref/llama-gqa.h5" int3.h5 -o c.h5
table mean qep-correct --hessian c.h5 "$ref/llama-gqa.h5"
ok 'awq-scale -q without a report' awq-scale -q --group 8 --hessian g.h5 "$ref/llama-gqa.h5" -o x.h5
model-import -q "$top/data/prose" -o prose.h5
dpq-run -q --group 32 --storage int4 --compensate none prose.h5 -o int4.h5
table most model-export --to gguf --allow-rounding int4.h5
table sum hessian-accum --tokens t.h5 --ctx 32 "$m"
hessian-accum -q --tokens t.h5 --ctx 32 "$ref/llama-gqa.h5" --report none.json -o x.h5
is 'the report of a run without a table' "$(py without_table)" "{'rows': [], 'all': {}}"
for t in "$top"/bin/*.c; do
	! grep -q OPTION_REPORT "$t" || echo "$(basename "$t" .c)"
done | xargs >have
is 'the tools that have a table' \
	"$(cat have)" "awq-scale dpq-run fbq-run hessian-accum model-export model-import \
msq-calib qep-correct rms-suppress smooth-scale"

# --- parts that an earlier run has finished ---
dpq-run -q --group 8 --hessian h.h5 --report whole.json "$m" -o whole.h5
ln -s nowhere/r.h5 r.h5
dpq-run -q --group 8 --hessian h.h5 --resume "$m" -o r.h5 2>/dev/null	# without a report
rm r.h5
is 'a run that fails at its end keeps its parts' "$(ls r.h5.part)" r.h5.part
dpq-run -q --group 8 --hessian h.h5 --resume --report resumed.json "$m" -o r.h5
ok 'the report has the rows of finished parts, unchanged' py rows_kept

# --- the report is complete or not written, and replaces no other file ---
no 'the report on standard output' 2 '--report: expected the name of a file' \
	dpq-run --compensate none --report - "$m" -o x.h5
echo before >kept
no 'a run that fails' 1 'cannot open' dpq-run --compensate none --report kept nosuch.h5 -o x.h5
is '... keeps the earlier report' "$(cat kept)" before
no '--report in a folder that does not exist' 1 '^dpq-run: nosuch/r.tsv: cannot create a file in its folder' \
	dpq-run --compensate none --report nosuch/r.tsv "$m" -o y.h5
no '--report a folder' 1 'is a folder' dpq-run --compensate none --report . "$m" -o y.h5
no '--report a device' 1 '/dev/null: is not a regular file' dpq-run --compensate none --report /dev/null "$m" -o y.h5
cp "$m" model.h5
no '--report an HDF5 file' 1 'h.h5: is an HDF5 file' dpq-run --compensate none --report h.h5 model.h5 -o y.h5
no '--report the input' 2 'model.h5 is also an input' \
	dpq-run --compensate none --report ./model.h5 model.h5 -o y.h5
no '--report another input' 2 'plan is also the file of --plan' \
	dpq-run --compensate none --plan plan --report plan model.h5 -o y.h5
no '--report the result' 2 'y.h5 is also the file of -o' dpq-run --compensate none --report ./y.h5 model.h5 -o y.h5
no '--report the file of standard output' 2 'y.h5 is also standard output' \
	sh -c 'dpq-run --compensate none --report y.h5 model.h5 >y.h5'
no '... to which standard output is appended' 2 'y.h5 is also standard output' \
	sh -c 'dpq-run --compensate none --report ./y.h5 model.h5 >>y.h5'
no '--report the file of standard input' 2 'model.h5 is also standard input' \
	sh -c 'dpq-run --compensate none --report model.h5 <model.h5 -o y.h5'
rm -f y.h5
dpq-run -q --compensate none --report .json model.h5 -o x.h5
ok 'the name .json' py json_name
no '--report the parts of the result' 2 'y.h5.part is where --resume keeps finished parts' \
	dpq-run --compensate none --resume --report y.h5.part model.h5 -o y.h5
is 'refused reports leave no files' "$(find . -name '.ptq*' -o -name 'y.h5*')" ''
done_testing
