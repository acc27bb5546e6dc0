#!/bin/sh
# abuse.t -- bad files, cut streams, full disks and signals, with every tool
# Checks of one tool are in the test of that tool.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
mkdir out
model-import -q "$top/tests/tiny" -o model.h5
sample-tokens -q --length 32 --ctx 8 model.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 model.h5 -o hessian.h5
dpq-run -q --compensate none --group 4 model.h5 -o quantized.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 --pair model.h5 quantized.h5 -o cross.h5
printf 'once on\n' >text
printf '\001' | tokenize -q --bytes -o holes.h5
picture=$top/tests/fuzz/seeds/image/rgb8.png
printf '{"task": "t", "context": "once ", "answer": "on", "match": "exact"}\n' >answers.jsonl
printf '{"task": "t", "context": "once ", "choices": ["on", "no one"], "gold": 0}\n' >questions.jsonl
clean() { test -z "$(ls -A out)"; }
# every tool that reads HDF5, with FILE as its input
tool() {	# tool NAME FILE
	case $1 in
	dpq-run) set -- dpq-run -q --compensate none "$2" -o out/r ;;
	hessian-accum) set -- hessian-accum -q --tokens tokens.h5 --ctx 8 "$2" -o out/r ;;
	eval-ppl) set -- eval-ppl -q --tokens tokens.h5 --ctx 8 "$2" -o out/r ;;
	eval-ppl-against) set -- eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 --reference "$2" -o out/r ;;
	eval-choice) set -- eval-choice -q --questions questions.jsonl "$2" -o out/r ;;
	eval-generate) set -- eval-generate -q --max 4 --questions answers.jsonl "$2" -o out/r ;;
	aifs-order) set -- aifs-order -q "$2" -o out/r ;;
	gar-order) set -- gar-order -q "$2" -o out/r ;;
	sample-tokens) set -- sample-tokens -q --length 8 --ctx 8 "$2" -o out/r ;;
	tensor-join) set -- tensor-join -q model.h5 "$2" -o out/r ;;
	ln2rms|hadamard-rotate|rms-suppress) set -- "$1" -q "$2" -o out/r ;;
	fbq-run) set -- fbq-run -q --group 8 --rank 2 --steps 2 --hessian hessian.h5 "$2" -o out/r ;;
	qep-correct) set -- qep-correct -q --hessian cross.h5 "$2" -o out/r ;;
	smooth-scale|awq-scale) set -- "$1" -q --hessian hessian.h5 "$2" -o out/r ;;
	msq-calib) set -- msq-calib -q --act-format int8 --tokens tokens.h5 --ctx 8 "$2" -o out/r ;;
	images-import) set -- images-import -q --model "$top/tests/images/llava.h5" --tokens "$2" "$picture" -o out/r ;;
	tokenize) set -- tokenize -q --model "$2" text -o out/r ;;
	esac
	timeout 300 "$@"
}
readers='dpq-run fbq-run hessian-accum eval-ppl eval-ppl-against eval-choice eval-generate aifs-order
	gar-order sample-tokens tokenize images-import tensor-join ln2rms hadamard-rotate rms-suppress smooth-scale
	awq-scale qep-correct msq-calib'

# --- files ---
: >empty
mkdir folder
for t in $readers; do
	no "$t: an empty file" 1 'empty: is empty, expected an HDF5 file' tool $t empty
	no "$t: a folder" 1 'folder: is a directory|is a folder|folder/config.json: cannot open' tool $t folder
	no "$t: a file that does not exist" 1 'nothing: cannot open: No such file' tool $t nothing
done
cp model.h5 locked.h5; chmod 0 locked.h5; chmod 755 .
as_other="setpriv --reuid 65534 --clear-groups"
if [ "$(id -u)" != 0 ]; then as_other=; fi
if $as_other test -x "$(command -v gar-order)" 2>/dev/null && $as_other test -r "$tmp" 2>/dev/null; then
	no 'a file without permission' 1 'locked.h5: cannot open: Permission denied' \
		$as_other gar-order locked.h5 -o /dev/null
	no 'a folder without permission' 1 "cannot create a file in its folder: Permission denied" $as_other \
		dpq-run -q --compensate none model.h5 -o "$tmp/out/r"
else
	skip 'a file without permission' 'no other user is available, or it cannot read the tools'
	skip 'a folder without permission' 'no other user is available, or it cannot read the tools'
fi

# --- hostile HDF5 files ---
py faults
hostile() { no "HDF5: $1" 1 "$1.h5: ${3:-.*}$2" tool "${4:-dpq-run}" "$1.h5"; }
hostile huge 'more data than its file can hold|impossible dimensions|cannot be read'
hostile rank 'has 32 dimensions|has shape'
hostile null 'is an empty dataset'
hostile compound 'has an unsupported type'
hostile text 'has an unsupported type|type'
hostile texts '/config: is not a string'
hostile integer '/config: is not a string'
hostile group '/config: is not a dataset'
hostile soft 'is a soft or external link'
for t in $readers; do	# whether they list groups or not
	case $t in aifs-order|gar-order|images-import) continue ;; esac	# their operand is no model
	no "$t: an external link" 1 'outside.h5: .*is a soft or external link' tool $t outside.h5
done
gar-order -q --group 8 hessian.h5 -o order.h5
py linked
no 'Hessians: an external link' 1 'linked-hessian.h5: .*is a soft or external link' \
	dpq-run -q --group 8 --hessian linked-hessian.h5 model.h5 -o out/r
no 'an order: an external link' 1 'linked-order.h5: .*is a soft or external link' \
	dpq-run -q --group 8 --hessian hessian.h5 --order linked-order.h5 model.h5 -o out/r
hostile virtual 'is stored in other files'
hostile elsewhere 'is stored in other files'
hostile kind 'attribute ptq_kind is not one text'
hostile long-kind "expected 'model'"
hostile cycle 'is nested too deeply|more paths'
hostile ladder 'has more paths than its file can need'
hostile deep 'is nested too deeply'
hostile address 'lies outside the file|cannot be'
hostile far 'lies outside the file|cannot be'
hostile length 'cannot be|damaged'
for v in many nan half; do hostile parts-$v 'attribute parts is .*, expected a count'; done
hostile parts-7 'the stream ends after 1 of 7 parts'
hostile parts-0 'part 0 of 0'
for v in minus many half; do hostile columns-$v 'attribute group must be' '' eval-ppl; done
ok 'a group larger than the layer is one group' sh -c "
	dpq-run -q --compensate none --group 1000 model.h5 -o big.h5 &&
	dpq-run -q --compensate none --group 16 model.h5 -o same.h5 &&
	h5dump -d /model/layers/0/mlp/up_proj/codes big.h5 | tail -n +2 >a &&
	h5dump -d /model/layers/0/mlp/up_proj/codes same.h5 | tail -n +2 >b && cmp a b"
for f in "$top"/tests/fuzz/finds/part/*; do
	for t in dpq-run gar-order; do
		no "$t: ${f##*/}, found by fuzzing" 1 'damaged|ptq_kind|hessian|nested|paths|short|parts' tool $t "$f"
	done
done
ok 'no file is left' clean

# --- text ---
printf 'on\377\300\200\355\240\200\364\220\200\200 once' >bytes
ok 'a text that is not UTF-8 is tokenized' tokenize -q --model model.h5 bytes -o ids.h5
ok '... and every byte of it is a token' py every_byte

# --- streams ---
model-import -q "$top/tests/tiny" | cat >stream
py streams
through() { dpq-run -q --compensate none -o out/r; }
for s in missing:part twice:part swapped:part first:part last:'stream ends after' more:'has data after' \
	again:'has data after' \
	one:'stream ends after' cut:'cut short' junk:'not an HDF5|other data|cut short|goes on' head:'cut short' \
	inside:'not an HDF5|other data'; do
	name=${s%%:*} pattern=${s#*:}
	no "a stream from a file: $name" 1 "$pattern" tool dpq-run "$name"
	no "a stream from a pipe: $name" 1 "$pattern" sh -c "cat $name | dpq-run -q --compensate none -o out/r"
	no "a stream as the reference: $name" 1 "$pattern" \
		eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 --reference "$name" -o out/r
	no "a stream as a second input: $name" 1 "$pattern|has . parts|expected" \
		sh -c "cat $name | tokenize -q --model /dev/stdin text -o out/r"
done
ok 'no file is left' clean

# --- output to full disks, closed pipes and small file systems ---
for c in "model-import -q '$top/tests/tiny'" 'tokenize -q --model model.h5 text' \
	"images-import -q --model '$top/tests/images/llava.h5' --tokens holes.h5 '$picture'" \
	'dpq-run -q --compensate none model.h5' \
	'hessian-accum -q --tokens tokens.h5 --ctx 8 model.h5' 'gar-order -q hessian.h5' \
	'sample-tokens -q --length 8 --ctx 8 model.h5' \
	'eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5' \
	'eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 --reference quantized.h5'; do
	no "/dev/full: ${c%% *}" 1 'No space left' sh -c "$c >/dev/full"
done
no '--help to a full disk' 1 'cannot write: No space left' sh -c 'dpq-run --help >/dev/full'
no '--version to a full disk' 1 'cannot write: No space left' sh -c 'dpq-run --version >/dev/full'
no 'ulimit -f: dpq-run' 1 'cannot write: File too large' \
	sh -c 'ulimit -f 20; exec dpq-run -q --compensate none model.h5 -o out/r'
for t in gguf hf compressed-tensors; do
	no "ulimit -f: model-export --to $t" 1 'cannot write: File too large' \
		sh -c "ulimit -f 4; exec model-export -q --to $t -o out/r quantized.h5"
done
ok 'no file is left' clean
echo before >out/r
no 'ulimit -f: the result has the name of an existing file' 1 'cannot write: File too large' \
	sh -c 'ulimit -f 4; exec model-export -q --to gguf -o out/r model.h5'
is '... which is unchanged' "$(cat out/r) $(ls -A out)" 'before r'
rm out/r
mkfifo fifo
no 'a GGUF file with the name of a pipe' 1 'fifo: is not a regular file' model-export -q --to gguf -o fifo model.h5
ok '... which is unchanged' test -p fifo
if unshare -m true 2>/dev/null; then
	mkdir small
	no 'a small tmpfs: results' 1 'cannot write: No space left' unshare -m sh -c '
		mount -t tmpfs -o size=16k none small || exit
		dpq-run -q --compensate none model.h5 -o small/r
		s=$?
		test -z "$(ls -A small)" || echo left
		exit $s'
	for t in gguf hf compressed-tensors; do
		no "a small tmpfs: model-export --to $t" 1 'cannot write: No space left' unshare -m sh -c "
			mount -t tmpfs -o size=8k none small || exit
			model-export -q --to $t -o small/r quantized.h5 2>said
			s=\$?
			grep -v ': warning: ' said >&2
			test -z \"\$(ls -A small)\" || echo left >&2
			exit \$s"
	done
	sample-tokens -q --length 2000 --ctx 8 model.h5 -o many.h5
	no 'a small tmpfs: hidden states' 1 'no room for 0 MiB of hidden states .*: No space left' unshare -m sh -c '
		mount -t tmpfs -o size=16k none small &&
		TMPDIR=small eval-ppl -q --memory 0 --tokens many.h5 --ctx 8 model.h5'
else
	for what in results 'model-export --to gguf' 'model-export --to hf' 'model-export --to compressed-tensors' \
		'hidden states'; do
		skip "a small tmpfs: $what" 'mounting is not allowed here'
	done
fi
no 'no room for temporary files' 1 '/proc: cannot create a temporary file' \
	sh -c 'cat hessian.h5 | TMPDIR=/proc dpq-run -q --hessian /dev/stdin --group 4 model.h5 -o out/r'
# gone NAME COMMAND: the reader of the pipe has closed it: the command ends by SIGPIPE, without a message
mkfifo left
gone() {
	exec 4<>left 5>left 4<&-
	env --default-signal=PIPE sh -c "$2" >&5 2>said; s=$?
	exec 5>&-
	is "$1" "$s $(cat said)" '141 '
}
gone 'the reader closed the pipe: a model' "model-import -q '$top/tests/tiny'"
gone 'the reader closed the pipe: a stream' 'dpq-run -q --compensate none stream'
gone 'the reader closed the pipe: numbers' 'eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5'
no 'the reader closed the pipe, SIGPIPE ignored' 1 'cannot write: Broken pipe' sh -c \
	"trap '' PIPE; exec 4<>left 5>left 4<&-; exec model-import -q '$top/tests/tiny' >&5"
ok 'no file is left' clean

# --- too little address space: a tool succeeds, or fails with one line, and always ends ---
short() {	# short KIB COMMAND...
	kib=$1; shift
	# shellcheck disable=SC3045
	(ulimit -v "$kib" && exec timeout 300 "$@") >short.out 2>short.err
	s=$?
	case $s in
	0) rm -f out/r ;;
	# the dynamic loader fails, before the program starts
	127) grep -q 'shared librar' short.err || echo "$kib KiB: $s $(cat short.err)" ;;
	1) test "$(wc -l <short.err)" = 1 && clean || echo "$kib KiB: $s $(cat short.err)" ;;
	*) echo "$kib KiB: $s $(cat short.err)" ;;
	esac
}
if PTQ_SAN=$(nm -D "$(command -v dpq-run)" 2>/dev/null | grep -c __asan_init) && [ "$PTQ_SAN" != 0 ]; then
	skip 'ulimit -v: success or one line of error' 'the address sanitizer reserves terabytes of address space'
else
	for kib in 20000 60000 80000 100000 150000 250000 300000 400000 420000 440000 460000 480000 500000 600000 \
		900000; do
		short $kib dpq-run -q -j1 --hessian hessian.h5 --group 4 model.h5 -o out/r
		short $kib hessian-accum -q -j2 --tokens tokens.h5 --ctx 8 model.h5 -o out/r
		short $((kib / 10)) tokenize -q --model model.h5 text -o out/r
		short "$kib" images-import -q --model "$top/tests/images/llava.h5" --tokens holes.h5 "$picture" -o out/r
	done >address
	is 'ulimit -v: success or one line of error' "$(cat address)" ''
fi

# --- signals during the work: a tool that waits for the rest of its stream cannot have ended ---
model-import -q "$top/data/prose" >long
dpq-run -q --compensate none long >whole
dpq-run -q --compensate none long -o whole.h5
for signal in TERM INT HUP KILL PIPE; do
	rm -rf out; mkdir out
	ok "$signal during the work: no file, or the earlier one" py signals $signal
done
ok 'without a signal the same stream gives the complete result' \
	sh -c 'dpq-run -q -j2 --compensate none -o out/r <long && cmp out/r whole.h5'
rm -rf out; mkdir out
done_testing
