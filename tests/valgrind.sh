#!/bin/sh
# valgrind.sh -- `make valgrind`: the short unit tests, and every tool on the smallest model, to a file and to a pipe
#
# Errors are reads and writes outside of allocated memory, and branches on uninitialized values.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
build=${PTQ_BUILD:-$top/build}
# valgrind 3.19 does not support AVX-512
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell PTQ_CPU="${PTQ_CPU:-avx2}"
grind() { valgrind -q --suppressions="$top/tests/valgrind.supp" --max-stackframe=8388608 --error-exitcode=99 "$@"; }
through_pipe() { { grind "$@"; echo $? >status; } | cat >piped && test -s piped && test "$(cat status)" = 0; }
unit() { cd "$top" && grind "$build/tests/$1"; }

for t in format half linear order tokenizer image resample processor tokens; do
	ok "tests/$t.c" unit $t
	cd "$tmp" || exit 1
done
printf 'once on\377\n' >text
# run NAME[, MORE] ARGUMENT...
run() { name=$1; shift; ok "$name" grind "$(command -v "${name%%,*}")" -q "$@"; }
pipe() { name=$1; shift; ok "$name, pipe" through_pipe "$(command -v "$name")" -q "$@"; }
run model-import "$top/tests/tiny" -o model.h5
run tokenize --model model.h5 text -o ids.h5
printf 'A \001 and \001\n' | tokenize -q --bytes -o holes.h5
pictures=$top/tests/fuzz/seeds/image
run images-import --model "$top/tests/images/llava.h5" --tokens holes.h5 "$pictures/rgba8-interlaced.png" \
	"$pictures/progressive.jpg" -o images.h5
run sample-tokens --length 32 --ctx 8 model.h5 -o tokens.h5
run hessian-accum --tokens tokens.h5 --ctx 8 model.h5 -o hessian.h5
run gar-order --group 4 hessian.h5 -o order.h5
run 'dpq-run, RTN' --compensate none --group 4 model.h5 -o rtn.h5
run 'dpq-run, DPQ' --hessian hessian.h5 --order order.h5 --group 4 --compute e4m3fn model.h5 -o dpq.h5
run ln2rms --check "$top/tests/ref/gpt2.h5" -o rms.h5
for m in fbquant lowrank svdquant loftq caldera eora; do
	run fbq-run --method $m --group 8 --rank 2 --steps 2 --hessian hessian.h5 model.h5 -o fbq.h5
done
run eval-ppl --tokens tokens.h5 --ctx 8 fbq.h5
run smooth-scale --check --hessian hessian.h5 model.h5 -o smooth.h5
run awq-scale --check --group 4 --hessian hessian.h5 model.h5 -o scaled.h5
run hessian-accum --tokens tokens.h5 --ctx 8 --pair model.h5 rtn.h5 -o cross.h5
run qep-correct --hessian cross.h5 model.h5 -o corrected.h5
run hadamard-rotate --keys --check model.h5 -o rotated.h5
run rms-suppress --check rotated.h5 -o split.h5
run msq-calib --act-format int8 --tokens tokens.h5 --ctx 8 --clip 99 split.h5 -o inputs.h5
run 'eval-ppl, keys and values' --tokens tokens.h5 --ctx 8 --kv-format uint4 inputs.h5 -o keys.h5
run eval-ppl --tokens tokens.h5 --ctx 8 dpq.h5 -o result.h5
printf '{"task": "t", "context": "once ", "choices": ["on", "no one"], "gold": 0}\n' >questions.jsonl
run eval-generate --questions answers.jsonl --max 4 dpq.h5 -o answers.h5
run eval-choice --questions questions.jsonl --greedy --until ' on' dpq.h5 --reference model.h5 -o choices.h5
py set_modality tokens.h5
run aifs-order tokens.h5 -o ordered.h5
run 'eval-ppl, against' --tokens tokens.h5 --ctx 8 dpq.h5 --reference model.h5 -o against.h5
pipe model-import "$top/tests/tiny"
cp piped stream
pipe dpq-run --compensate none --group 4 stream
for reader in safetensors tokenizer picture; do
	ok "$reader, the seeds of the fuzzer" grind "$build/fuzz/$reader" 200 "$top/tests/fuzz/seeds/$reader"/*
done
done_testing
