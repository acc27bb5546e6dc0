#!/bin/sh
# resume.t -- --resume: a stopped run continues from its finished parts and gives the bytes of a complete run
#
# Also errors of FILE.part. PTQ_KILLS: number of random moments at which a run is killed (6).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
py make "$top/tests/ref/llama-gqa.h5"
hessian-accum -q --tokens t.h5 --ctx 32 model.h5 -o h.h5; gar-order -q --group 8 h.h5 -o o.h5
hessian-accum -q --tokens t.h5 --ctx 16 model.h5 -o h2.h5; gar-order -q --group 8 --key mean h.h5 -o o2.h5
printf '*/down_proj storage=uint8\n*/o_proj keep\n' >plan; printf '*/down_proj storage=uint6\n*/o_proj keep\n' >plan2
left() { find . -name '*.part' -o -name '.ptq*' | sed 's|^\./||'; }
run() { dpq-run --hessian h.h5 --order o.h5 --group 8 --plan plan --resume "${m:-model.h5}" "$@"; }
dpq-run -q --hessian h.h5 --order o.h5 --group 8 --plan plan model.h5 -o plain.h5
run -q -o whole.h5
is 'a complete run leaves no FILE.part' "$(left)" ''
ok 'the result equals that of a run without --resume' h5diff -v plain.h5 whole.h5
ok '... with all attributes' py same_file plain.h5 whole.h5

# --- a complete FILE.part: the link leads to a missing folder, so the run fails at its end ---
ln -s nowhere/r.h5 r.h5
run -o r.h5 2>report
is 'a run that fails at its end' \
	"$? $(tail -1 report)" '1 dpq-run: r.h5: cannot create a file in its folder: No such file or directory'
sed -i '$d' report
is '... keeps its parts' "$(left)" r.h5.part
mv r.h5.part parts; rm r.h5
py cut
at=$(cat at)
# shellcheck disable=SC2086
set -- $at
end=${10} last=$9 fifth=$6
again() {	# again NAME PARTS: a run with the current FILE.part; it uses PARTS of its parts
	run -o r.h5 2>said
	is "$1: the same bytes" "$(cmp r.h5 whole.h5 2>&1)" ''
	is "$1: finished parts that are used" "$(sed -n 's/.*part: \([0-9]*\) of 9 parts are finished/\1/p' said)" "$2"
	is "$1: FILE.part is removed" "$(left)" ''
	rm -f r.h5
}
first() { head -c "$1" parts >r.h5.part; }
first "$end"; again 'all parts' 9
told() { grep -v "$unmade" "$1"; }
is '... the report is that of the run that made the parts' "$(told said | sed 1d)" "$(told report)"
first "$fifth"; again 'five parts' 5
is '... the report has all layers, and the same mean' "$(told said | sed 1d | cut -f 1-5)" "$(told report | cut -f 1-5)"
for bytes in 0 1 36 128 129 185; do first $bytes; again "$bytes bytes of the first part" ''; done
first $((fifth + 8)); again 'five parts and 8 bytes' 5
first $((last - 1)); again 'all but the last byte of a part' 7
first $((end - 1)); again 'all but the last byte' 8
cp head-first r.h5.part; again 'the first part without its seal' ''
cp head-7 r.h5.part; again '... the seventh part' 6
cp image-last r.h5.part; again '... the last part without its image' 8
{ head -c "$fifth" parts; echo junk; } >r.h5.part; again 'junk after five parts' 5
first "$fifth"; run -q -j 2 -o r.h5; ok 'other threads: the same bytes' cmp r.h5 whole.h5; rm r.h5
cp model.h5 elsewhere.h5; first "$fifth"; m=elsewhere.h5 again 'the model with another name and time' 5
first "$fifth"; run -q -o r.h5 2>said; is '-q prints nothing' "$(grep -v "$unmade" said)" ''; rm r.h5
dpq-run -q --compensate none layer.h5 -o a.h5; dpq-run -q --compensate none --resume layer.h5 -o b.h5
ok 'a file of one part: the same result' py same_file a.h5 b.h5
model-import -q "$top/tests/tiny" | cat >stream; dpq-run -q --compensate none --group 4 --resume stream -o a.h5
dpq-run -q --compensate none --group 4 stream -o b.h5; ok 'a stream in a file: the same result' py same_file a.h5 b.h5

# --- sequential calibration of the blocks after finished blocks ---
# shellcheck disable=SC2086
sequential() { dpq-run -q --sequential --tokens t.h5 --ctx 32 --reorder gar --group 8 $solver --resume "$1" -o "$2"; }
for name in model.h5 "$top/tests/ref/qwen2-moe.h5" qronos; do
	solver=''
	[ "$name" != qronos ] || { solver='--solver qronos'; name=$top/tests/ref/qwen2-moe.h5; }
	rm -f s.h5; sequential "$name" sequential.h5
	ln -s nowhere/s.h5 s.h5; sequential "$name" s.h5 2>said; mv s.h5.part parts2; rm s.h5
	wrong=''
	for taken in 1 2 3; do
		py first_part $taken
		sequential "$name" s.h5 && cmp -s s.h5 sequential.h5 || wrong="$wrong $taken"
		rm -f s.h5 s.h5.part
	done
	is "--sequential $solver, $(basename "$name"): the same bytes from one, two, three finished parts" "$wrong" ''
done

# --- Hessians: the model runs through finished blocks without new sums ---
head -3 "$top/data/vlm/calibration.jsonl" >few.jsonl
model-import -q "$top/data/vlm-pre" -o vlm.h5
awk -v what=texts -f "$top/pipelines/prompts.awk" few.jsonl | tr '\036' '\000' |
	tokenize -q --null --special --model vlm.h5 -o few.h5
awk -v what=images -f "$top/pipelines/prompts.awk" few.jsonl | sed "s|^|$top/data/vlm/|" |
	xargs -d '\n' -x images-import -q --model vlm.h5 --tokens few.h5 -o vlm-t.h5
sample-tokens -q --length 150 --ctx 32 "$top/tests/ref/qwen2-moe.h5" -o moe-t.h5
# going_on NAME PARTS COMMAND...: from each number of finished parts, the bytes and the table of a complete run
going_on() {
	name=$1 counts=$2; shift 2
	rm -f u.h5; "$@" -o plain-u.h5 2>said; "$@" --resume -o u.h5 2>table-u
	ok "$name: --resume does not change the result" py same_file plain-u.h5 u.h5
	is '... or the table' "$(cat table-u)" "$(cat said)"
	ln -s nowhere/v.h5 v.h5; "$@" --resume -o v.h5 2>said; mv v.h5.part parts2; rm v.h5
	wrong=''
	for taken in $counts; do
		py foreign "$taken"
		"$@" --resume -o v.h5 2>said && cmp -s v.h5 u.h5 && grep -q "v.h5.part: .* parts are finished" said ||
			wrong="$wrong $taken"
		grep -v 'parts are finished' said | cmp -s - table-u || wrong="$wrong $taken's table"
		rm -f v.h5 v.h5.part
	done
	is "$name: the same bytes and table from $counts finished parts" "$wrong" ''
}
h="hessian-accum --tokens t.h5 --ctx 32"
going_on 'Hessians' '1 2 5 8 9' $h model.h5
dpq-run -q --compensate none --storage int3 --group 8 model.h5 -o int3.h5
going_on 'Hessians and cross moments' '1 2 5 8 9' $h --pair model.h5 int3.h5
going_on 'Hessians of a shard, for few layers' '3 6' $h --shard 2/2 --layers '*_proj' --layers '!*/1/*' \
	--compute-type bf16 model.h5
going_on 'Hessians of experts' '2 3 4' hessian-accum --tokens moe-t.h5 --ctx 32 "$top/tests/ref/qwen2-moe.h5"
going_on 'Hessians of a vision-language model' '1 2 3 5 6 99' hessian-accum --tokens vlm-t.h5 --ctx 512 vlm.h5
hessian-accum -q --tokens t.h5 --ctx 32 --shard 1/2 model.h5 -o one.h5
hessian-accum -q --tokens t.h5 --ctx 32 --shard 2/2 model.h5 -o two.h5
going_on 'a sum of shards' '1 4' hessian-accum two.h5 one.h5
no '... from a pipe' 1 '<stdin>: is not a regular file; --resume reads inputs again' \
	sh -c 'cat one.h5 | hessian-accum --resume - two.h5 -o v.h5'
no 'parts of Hessians of other tokens' 1 'v.h5.part: was begun with another tokens than moe-t.h5' \
	sh -c 'cp parts2 v.h5.part; ln -s nowhere/w.h5 w.h5;
		hessian-accum -q --tokens t.h5 --ctx 32 --resume model.h5 -o w.h5 2>/dev/null; mv w.h5.part v.h5.part;
		hessian-accum --tokens moe-t.h5 --ctx 32 --resume model.h5 -o v.h5'
no '... without --pair' 1 'v.h5.part: was begun with other inputs, a model in place of t.h5; remove it to begin anew' \
	sh -c 'ln -sf nowhere/w.h5 w.h5; rm -f v.h5.part;
		hessian-accum -q --tokens t.h5 --ctx 32 --resume --pair model.h5 int3.h5 -o w.h5 2>/dev/null
		mv w.h5.part v.h5.part
		hessian-accum --tokens t.h5 --ctx 32 --resume int3.h5 -o v.h5'
rm -f v.h5.part w.h5

# --- parts with one changed bit, anywhere ---
ok 'a part with one changed bit is made again: the same bytes' py flip
grep '^# ' ok.out; rm -f r.h5

# --- a run that fails ---
m=nan.h5
no 'an invalid weight in the fifth block' 1 'nan.h5: .*layers/4/mlp/up_proj' run -q -o bad.h5
no '... and again' 1 'nan.h5: .*layers/4/mlp/up_proj' run -q -o bad.h5
is '... finished parts are kept' "$(left)" bad.h5.part
m=model.h5
no '... a run on another model' 1 'bad.h5.part: was begun with another model than model.h5; remove it to begin anew' \
	run -q -o bad.h5
rm bad.h5.part

# --- other options, other inputs ---
differs() {	# differs NAME PATTERN COMMAND...
	what=$1 pattern=$2; shift 2
	first "$fifth"
	no "$what" 1 "^dpq-run: r.h5.part: was begun $pattern; remove it to begin anew\$" "$@" -o r.h5
	is "... the parts are unchanged" "$(head -c "$fifth" parts | cmp - r.h5.part 2>&1)" ''
}
begun="by 'dpq-run $(cat "$top/VERSION") --group 8 plan:.*', this is 'dpq-run"
d() { dpq-run -q --resume "$@"; }
differs 'another option' "$begun .*--group 4 plan:.*'" d --hessian h.h5 --group 4 --plan plan model.h5
differs 'another plan' "$begun .*uint6.*'" d --hessian h.h5 --order o.h5 --group 8 --plan plan2 model.h5
differs 'other layers' "$begun .*layers.*'" d --hessian h.h5 --order o.h5 --group 8 --plan plan \
	--layers '*_proj' model.h5
differs 'another Hessian' 'with another hessian than h2.h5' d --hessian h2.h5 --order o.h5 --group 8 \
	--plan plan model.h5
differs 'another order' 'with another order than o2.h5' d --hessian h.h5 --order o2.h5 --group 8 --plan plan model.h5
differs 'no order' "$begun .*--reorder none .*'" d --hessian h.h5 --reorder none --group 8 --plan plan model.h5
differs 'another model that differs in one number' 'with another model than other.h5' d --hessian h.h5 --order o.h5 \
	--group 8 --plan plan other.h5
rm -f r.h5.part
py part_again
cp cpu r.h5.part
warns 'another kind of processor' 'was begun on another kind of processor .abacus, this is' run -o r.h5
rm -f r.h5

# --- invalid FILE.part ---
bad() {	# bad NAME PATTERN: the run fails and FILE.part is unchanged
	cp -r r.h5.part kept
	no "FILE.part: $1" 1 "^dpq-run: r.h5.part: $2" run -q -o r.h5
	is "... is unchanged" "$(diff -r kept r.h5.part 2>&1)$(ls r.h5 2>/dev/null)" ''
	rm -rf r.h5.part kept
}
head -c 3000 /dev/urandom >r.h5.part; bad 'junk' 'holds no parts of an earlier run; remove it, or give -o another name'
echo x >r.h5.part; bad 'a text' 'holds no parts of an earlier run'
cp model.h5 r.h5.part; bad 'a model' 'holds no parts of an earlier run'
cp h.h5 r.h5.part; bad 'a Hessian' 'holds no parts of an earlier run'
cp stream r.h5.part; bad 'a stream' 'holds no parts of an earlier run'
tail -c +$(($2 + 1)) parts >r.h5.part; bad 'parts without the first one' 'has part 1 of 9, expected part 0'
{
	head -c "$fifth" parts
	tail -c +$((last + 1)) parts
} >r.h5.part
bad 'parts without one in the middle' 'has part 8 of 9, expected part 5'
{ cat parts; tail -c +$((last + 1)) parts; } >r.h5.part; bad 'one part too many' 'has data after its 9 parts; remove it'
printf '\211HDF\r\n\032\n%0100d' 0 >r.h5.part; bad 'a head only' 'holds no parts of an earlier run'
py sealed
bad 'parts of a Hessian' "holds a 'hessian', expected 'model'"
py sealed_junk
bad 'junk with a valid seal' '.*(impossible|superblock|damaged)'
py no_report
bad 'a part without its report' 'part 0 has no report of its layers; remove the file to begin anew'
mkdir r.h5.part; bad 'a folder' 'cannot open: Is a directory'
mkfifo r.h5.part; no 'FILE.part: a FIFO' 1 'r.h5.part: is not a regular file' run -q -o r.h5; rm r.h5.part
echo precious >precious
ln -s precious r.h5.part
no 'FILE.part: a symbolic link' 1 'r.h5.part: is a symbolic link, expected the parts of an earlier run, or nothing$' \
	run -q -o r.h5
rm r.h5.part
is '... its target is unchanged' "$(cat precious)" precious
cp model.h5 r.h5.part
no 'FILE.part: the input' 1 'r.h5.part: is an input; finished parts' \
	dpq-run -q --compensate none --resume r.h5.part -o r.h5
ok '... which is unchanged' cmp model.h5 r.h5.part; rm -f r.h5.part
py lock &
holder=$!
while [ ! -e locked ]; do sleep 0.05; done
no 'FILE.part: in use by another run' 1 'r.h5.part: is written by another run' run -q -o r.h5
kill $holder; wait $holder 2>/dev/null; rm -f r.h5.part
mkdir sub
as_other="setpriv --reuid 65534 --clear-groups"
if [ "$(id -u)" != 0 ]; then as_other=; fi
chmod 555 sub; chmod 755 .
if $as_other test -x "$(command -v dpq-run)" 2>/dev/null && $as_other test -r "$tmp" 2>/dev/null; then
	no 'a folder without write permission' 1 'sub/r.h5.part: cannot open: Permission denied' \
		$as_other dpq-run -q --compensate none --group 8 --resume model.h5 -o sub/r.h5
else
	skip 'a folder without write permission' 'cannot run as another user, or the tools are not readable to it'
fi
chmod 755 sub
no 'a missing folder' 1 'nowhere/r.h5.part: cannot open: No such file' run -q -o nowhere/r.h5
no '-o with a folder' 1 'sub: is a folder' run -q -o sub
is 'these errors leave no file' "$(left)" ''
for o in '' '-o -' '-o /dev/stdout' '-o /dev/fd/1'; do
	# shellcheck disable=SC2086
	no "--resume without a file: $o" 2 '--resume: -o FILE is expected' \
		sh -c "dpq-run -q --compensate none --resume model.h5 $o >x"
done
no '--resume to a device' 2 '--resume: -o /dev/null is not a regular file' run -q -o /dev/null
no 'a model from a pipe' 1 '<stdin>: is not a regular file; --resume reads inputs again' \
	sh -c 'cat model.h5 | dpq-run -q --compensate none --resume -o r.h5'
no 'a Hessian from a pipe' 1 '/dev/stdin: is not a regular file; --resume reads inputs again' \
	sh -c 'cat h.h5 | dpq-run -q --hessian /dev/stdin --group 8 --resume model.h5 -o r.h5'
ok 'a model from a file on standard input' sh -c 'dpq-run -q --compensate none --group 8 --resume <model.h5 -o r.h5'
rm -f r.h5
no 'tokens in place of a model' 1 "t.h5: holds a 'tokens', expected 'model'" \
	dpq-run -q --compensate none --resume t.h5 -o r.h5
is 'runs without a finished part leave no file' "$(left; find . -name r.h5)" ''
if unshare -m true 2>/dev/null; then
	mkdir small
	no 'a full disk' 1 'small/r.h5.*: cannot write: No space left' unshare -m sh -c '
		mount -t tmpfs -o size=64k none small || exit
		dpq-run -q --compensate none --group 8 --resume model.h5 -o small/r.h5
		s=$?
		cp small/* .
		exit $s'
	dpq-run -q --compensate none --group 8 --resume model.h5 -o r.h5 2>said
	dpq-run -q --compensate none --group 8 --resume model.h5 -o x.h5
	ok '... and a run that continues with more room' cmp r.h5 x.h5
	rm -f r.h5 r.h5.part
else
	for what in 'a full disk' '... and a run that continues with more room'; do
		skip "$what" 'mounting is not allowed here'
	done
fi

# --- killed ---
ok 'a run killed twice at random moments and resumed: the same bytes' py kill "${PTQ_KILLS:-6}" "${PTQ_SEED:-1}"
grep '^# ' ok.out
done_testing
