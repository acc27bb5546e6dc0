#!/bin/sh
# closed.t -- standard input, output and error that are closed, read-only, or the same file as an input
# Inputs are never changed, and results are complete.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
mkdir in keep out
cd in || exit 1
printf 'once on\n' >text
model-import -q "$top/tests/tiny" -o model.h5
tokenize -q --model model.h5 text -o ids.h5
sample-tokens -q --length 32 --ctx 8 model.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 model.h5 -o hessian.h5
gar-order -q --group 4 hessian.h5 -o order.h5
dpq-run -q --compensate none --group 4 model.h5 -o codes.h5
exmy-pack -q codes.h5 -o packed.h5
eval-ppl -q --tokens tokens.h5 --ctx 8 model.h5 -o record.h5 >/dev/null
printf '{"task": "t", "context": "once ", "choices": ["on", "no one"], "gold": 0}\n' >questions.jsonl
eval-choice -q --questions questions.jsonl model.h5 -o choices.h5 >/dev/null
printf '{"task": "t", "context": "once ", "answer": "on", "match": "exact"}\n' >answers.jsonl
printf '{"text": "a b"}\n' >items.jsonl
cp tokens.h5 mixed.h5
py set_modality mixed.h5
cp "$top/tests/ref/gpt2.h5" layernorms.h5
cp "$top/tests/images/llava.h5" "$top/tests/fuzz/seeds/image/rgb8.png" .
printf '\001\n' | tokenize -q --bytes -o holes.h5
hadamard-rotate -q model.h5 -o rotated.h5
hessian-accum -q --tokens tokens.h5 --ctx 8 --pair model.h5 codes.h5 -o cross.h5
cp -- * ../keep
cd .. || exit 1
unchanged() { diff -r in keep >/dev/null; }

# NAME:KIND: a command of arguments() below, and its result: a file, or text on standard output
commands='model-import:file tokenize:file decode:file images-import:file sample-tokens:file hessian-accum:file
	hessian-sum:file gar-order:file rtn:file gptq:file sequential:file fbq-run:file exmy-pack:file exmy-unpack:file
	ln2rms:file hadamard-rotate:file smooth-scale:file awq-scale:file qep-correct:file rms-suppress:file
	msq-calib:file exmy-sweep:file exmy-sweep-model:file exmy-sweep-tsv:text eval-ppl:text eval-ppl-reference:text
	eval-ppl-paired:text eval-choice:text eval-choice-paired:text plan-bits:text
	eval-compare:text eval-generate:text questions-import:file aifs-order:file roofline:text tensor-stats:text
	tensor-diff:text tensor-join:file tensor-info:file'
arguments() {
	case $1 in
	model-import) echo "model-import $top/tests/tiny" ;;
	tokenize) echo 'tokenize --model in/model.h5 in/text' ;;
	decode) echo 'tokenize --decode --model in/model.h5 in/ids.h5' ;;
	images-import) echo 'images-import --model in/llava.h5 --tokens in/holes.h5 in/rgb8.png' ;;
	sample-tokens) echo 'sample-tokens --length 8 --ctx 8 in/model.h5' ;;
	hessian-accum) echo 'hessian-accum --tokens in/tokens.h5 --ctx 8 in/model.h5' ;;
	hessian-sum) echo 'hessian-accum in/hessian.h5 in/hessian.h5' ;;
	gar-order) echo 'gar-order --group 4 in/hessian.h5' ;;
	rtn) echo 'dpq-run --compensate none --group 4 in/model.h5' ;;
	gptq) echo 'dpq-run --group 4 --hessian in/hessian.h5 --order in/order.h5 in/model.h5' ;;
	sequential) echo 'dpq-run --group 4 --sequential --tokens in/tokens.h5 --ctx 8 --reorder gar in/model.h5' ;;
	exmy-pack) echo 'exmy-pack in/codes.h5' ;;
	tensor-join) echo 'tensor-join in/codes.h5 in/model.h5' ;;
	ln2rms) echo 'ln2rms --check in/layernorms.h5' ;;
	hadamard-rotate) echo 'hadamard-rotate --check in/model.h5' ;;
	fbq-run) echo 'fbq-run --group 8 --rank 2 --steps 3 --hessian in/hessian.h5 in/model.h5' ;;
	smooth-scale) echo 'smooth-scale --hessian in/hessian.h5 --check in/model.h5' ;;
	awq-scale) echo 'awq-scale --group 4 --hessian in/hessian.h5 --check in/model.h5' ;;
	qep-correct) echo 'qep-correct --hessian in/cross.h5 in/model.h5' ;;
	msq-calib) echo 'msq-calib --act-format int8 --tokens in/tokens.h5 --ctx 8 in/model.h5' ;;
	rms-suppress) echo 'rms-suppress --check in/rotated.h5' ;;
	exmy-unpack) echo 'exmy-pack --unpack in/packed.h5' ;;
	exmy-sweep) echo 'exmy-sweep --formats int4 --sigma 0.1,0.2' ;;
	exmy-sweep-model) echo 'exmy-sweep --formats int4 --sigma 0.1 in/model.h5' ;;
	exmy-sweep-tsv) echo 'exmy-sweep --tsv --formats int4 --sigma 0.1,0.2' ;;
	eval-ppl) echo 'eval-ppl --tokens in/tokens.h5 --ctx 8 in/model.h5' ;;
	eval-ppl-reference) echo 'eval-ppl --tokens in/tokens.h5 --ctx 8 in/codes.h5 --reference in/model.h5' ;;
	eval-ppl-paired) echo 'eval-ppl --tokens in/tokens.h5 --ctx 8 in/codes.h5 --paired in/record.h5' ;;
	eval-choice) echo 'eval-choice --questions in/questions.jsonl in/model.h5' ;;
	eval-choice-paired) echo 'eval-choice --questions in/questions.jsonl in/codes.h5 --paired in/choices.h5' ;;
	plan-bits) echo 'plan-bits --target-bits 64 -r in/model.h5 -t in/tokens.h5 --ctx 8 in/codes.h5' ;;
	eval-compare) echo 'eval-compare in/record.h5 in/record.h5' ;;
	eval-generate) echo 'eval-generate --max 4 --questions in/answers.jsonl in/model.h5' ;;
	questions-import) echo 'questions-import --task lambada in/items.jsonl' ;;
	aifs-order) echo 'aifs-order in/mixed.h5' ;;
	roofline) echo 'roofline --models in/model.h5,qwen2-7b --prompt 8 --generate 8' ;;
	tensor-info) echo 'tensor-info in/codes.h5' ;;
	tensor-stats) echo 'tensor-stats in/codes.h5' ;;
	tensor-diff) echo 'tensor-diff --reference in/model.h5 in/codes.h5' ;;
	esac
}
# with CLOSED COMMAND...: the command with the descriptors of CLOSED (0, 1, 2) closed
with() {
	closed=$1; shift
	case $closed in *0*) exec 0<&- ;; esac
	case $closed in *1*) exec 1>&- ;; esac
	case $closed in *2*) exec 2>&- ;; esac
	exec timeout 300 "$@"
}
for entry in $commands; do
	name=${entry%:*} kind=${entry#*:} bad_of=
	# shellcheck disable=SC2046
	set -- $(arguments "$name")
	"$@" -o out/wanted >out/text 2>/dev/null
	for closed in none 0 1 2 01 02 12 012; do
		# to -o FILE: the complete result for any closed descriptors; a text needs its standard output
		rm -f out/r
		( with $closed "$@" -o out/r >out/said 2>out/error ); s=$?
		case $kind:$closed in
		text:*1*) [ $s = 1 ] && [ ! -e out/r ] || bad_of="$bad_of $closed: status $s;" ;;
		*) [ $s = 0 ] && cmp -s out/r out/wanted || bad_of="$bad_of $closed: status $s, or another result;" ;;
		esac
		[ "$kind:$s" != text:0 ] || cmp -s out/said out/text || bad_of="$bad_of $closed: another answer;"
		# to standard output
		( with $closed "$@" >out/r 2>out/error ); s=$?
		case $kind:$closed in
		*:*1*) [ $s = 1 ] && [ ! -s out/r ] || bad_of="$bad_of $closed, to standard output: status $s;" ;;
		file:*) [ $s = 0 ] && cmp -s out/r out/wanted ||
			bad_of="$bad_of $closed, to standard output: status $s, or another result;" ;;
		text:*) [ $s = 0 ] && cmp -s out/r out/text ||
			bad_of="$bad_of $closed, to standard output: status $s, or another answer;" ;;
		esac
		case $closed in *2*) ;; *1*) grep -q '<stdout>: is closed' out/error ||
			bad_of="$bad_of $closed: $(cat out/error);" ;; esac
		unchanged || bad_of="$bad_of $closed: an input has changed;"
		[ -z "$(find . -name '.ptq*')" ] || bad_of="$bad_of $closed: something is left;"
	done
	is "$name: every combination of closed descriptors" "$bad_of" ''
	rm -f out/*
done
# A folder or a file, not a stream: the result is complete for any closed descriptors.
for t in gguf hf compressed-tensors; do
	model-export -q --to $t in/codes.h5 -o out/wanted 2>/dev/null
	bad_of=
	for closed in none 0 1 2 01 02 12 012; do
		rm -rf out/r
		( with $closed model-export --to $t in/codes.h5 -o out/r >out/said 2>out/error ); s=$?
		[ $s = 0 ] && diff -r out/r out/wanted >/dev/null ||
			bad_of="$bad_of $closed: status $s, or another result;"
	done
	is "model-export --to $t: every combination of closed descriptors" "$bad_of" ''
	rm -rf out/*
done
ok 'no input has changed' unchanged
for t in model-import model-export tokenize images-import sample-tokens hessian-accum gar-order dpq-run fbq-run \
	exmy-pack ln2rms hadamard-rotate smooth-scale awq-scale qep-correct rms-suppress msq-calib exmy-sweep eval-ppl \
	eval-choice eval-compare eval-generate questions-import aifs-order roofline tensor-info tensor-stats \
	tensor-diff tensor-join plan-bits; do
	no "$t: --help without a standard output" 1 '<stdout>: cannot write' sh -c "$t --help >&-"
done
for c in 'gar-order -q' 'dpq-run -q --compensate none' 'exmy-pack -q' 'ln2rms -q' 'hadamard-rotate -q' \
	'tensor-stats -q' tensor-info 'sample-tokens -q --length 8' \
	'tensor-diff -q --reference in/model.h5' 'eval-ppl -q --tokens in/tokens.h5 --ctx 8' \
	'eval-choice -q --questions in/questions.jsonl' 'aifs-order -q' 'tokenize --bytes' \
	'eval-generate -q --questions in/answers.jsonl' 'questions-import --task lambada' \
	'images-import --model in/llava.h5 --tokens in/holes.h5'; do
	no "${c%% *}: a closed standard input as the input" 1 '<stdin>: is closed' sh -c "$c -o out/r <&-"
done

# --- descriptors that are open, but not fit for the result ---
for c in 'gar-order -q in/hessian.h5' 'dpq-run -q --compensate none in/model.h5' 'exmy-pack -q in/codes.h5' \
	'tensor-stats -q in/model.h5' 'eval-ppl -q --tokens in/tokens.h5 --ctx 8 in/model.h5' \
	'eval-choice -q --questions in/questions.jsonl in/model.h5' 'aifs-order -q in/mixed.h5'; do
	f=${c##* }
	no "${c%% *}: standard output is the input, opened for reading" 1 'is open for reading only' sh -c "$c 1<$f"
	no "${c%% *}: standard output is the input, opened for reading and writing" 1 'is an input' sh -c "$c 1<>$f"
	no "${c%% *}: standard output appends to the input" 1 'is an input' sh -c "$c >>$f"
done
no 'standard output is a second input' 1 'is an input' \
	sh -c 'dpq-run -q --group 4 --hessian in/hessian.h5 in/model.h5 1<>in/hessian.h5'
no 'standard output is the text' 1 'is an input' sh -c 'tokenize --bytes in/text 1<>in/text'
no 'standard output is the image' 1 'is an input' \
	sh -c 'images-import --model in/llava.h5 --tokens in/holes.h5 in/rgb8.png 1<>in/rgb8.png'
no 'standard output is the standard input' 1 'is an input' \
	sh -c 'dpq-run -q --compensate none <in/model.h5 1<>in/model.h5'
cp "$top/tests/tiny/model.safetensors" "$top/tests/tiny/config.json" in; cp in/*.safetensors in/config.json keep
no 'standard output is a file of weights in the imported folder' 1 'is an input' \
	sh -c 'model-import -q in 1<>in/model.safetensors'
ok 'no input has changed' unchanged
printf AAA >add
ok '-o /dev/stdout appends to a file' sh -c 'dpq-run -q --compensate none --group 4 in/model.h5 -o /dev/stdout >>add'
is '... after the earlier contents' "$(head -c 3 add)" AAA
tail -c +4 add >stream
ok '... a complete stream' \
	sh -c 'exmy-pack -q stream -o out/a && exmy-pack -q in/codes.h5 -o out/b && h5diff out/a out/b'
for name in /dev/stdout /dev/fd/1 /proc/self/fd/1 -; do
	ok "-o $name, a new file" \
		sh -c "dpq-run -q --compensate none --group 4 in/model.h5 -o $name >out/r && cmp out/r in/codes.h5"
done
ok '-o /dev/fd/3' \
	sh -c 'dpq-run -q --compensate none --group 4 in/model.h5 -o /dev/fd/3 3>out/r && cmp out/r in/codes.h5'
ok '... which is a pipe' \
	sh -c '{ dpq-run -q --compensate none --group 4 in/model.h5 -o /dev/fd/3 3>&1 >/dev/null;
		} | exmy-pack -q -o out/a && h5diff out/a out/b'
no '-o a descriptor that is closed' 1 '/dev/fd/9: is closed' dpq-run -q --compensate none in/model.h5 -o /dev/fd/9
no '-o a descriptor that is open for reading' 1 '/dev/fd/4: is open for reading only' \
	sh -c 'dpq-run -q --compensate none in/model.h5 -o /dev/fd/4 4<in/text'
for c in 'eval-ppl -q --tokens in/tokens.h5 --ctx 8 in/model.h5' \
	'eval-choice -q --questions in/questions.jsonl in/model.h5' \
	'eval-generate -q --questions in/answers.jsonl in/model.h5' 'tensor-stats -q in/model.h5' \
	'exmy-sweep --tsv --formats int4' \
	'tensor-diff --reference in/model.h5 in/codes.h5'; do
	for name in - /dev/stdout /dev/fd/1; do
		no "${c%% *} -o $name: standard output, which gets the text" 2 'standard output gets the text' \
			sh -c "$c -o $name >out/x"
	done
done
ok 'standard input is read from its current position' \
	sh -c '{ head -c 7 >/dev/null; tokenize --bytes -o out/a; } <in/text;
		h5dump -d /tokens out/a | grep -q "(0): 10"'
no 'half a file on standard input' 1 'not an HDF5' sh -c '{ head -c 100 >/dev/null; tensor-stats; } <in/model.h5'
no 'standard input that another tool has read to its end' 1 '<stdin>: is empty' \
	sh -c '{ tensor-stats -q >/dev/null; tensor-stats; } <in/model.h5'
ok 'no input has changed' unchanged
is 'no file is left' "$(find . -name '.ptq*')" ''
done_testing
