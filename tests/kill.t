#!/bin/sh
# kill.t -- signals at random moments, for all tools: a result is complete or absent
#
# No temporary file is left, except after SIGKILL. PTQ_KILLS: number of signals (96).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
model-import -q "$top/data/prose" -o model.h5
sample-tokens -q --length 510 --ctx 256 model.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 256 model.h5 -o hessian.h5
gar-order -q hessian.h5 -o order.h5
dpq-run -q --compensate none --scale-dtype f16 --scale-bits 7 model.h5 -o codes.h5
hessian-accum -q --tokens tokens.h5 --ctx 256 --pair model.h5 codes.h5 -o cross.h5
hadamard-rotate -q model.h5 -o rotated.h5
cp "$top/tests/ref/gpt2.h5" "$top/tests/images/llava.h5" "$top/tests/fuzz/seeds/image/rgb8.png" .
printf '\001' | tokenize -q --bytes -o holes.h5
py mixed_tokens
echo '{"task": "t", "context": "It was", "answer": "a", "match": "exact"}' >answers.jsonl
echo '{"task": "t", "context": "It was a dark and stormy ", "choices": ["night", "day"], "gold": 0}' >questions.jsonl
head -c 100000 "$top/data/prose/model.safetensors" >text
ok 'signals at random moments' py kill "$top" "${PTQ_KILLS:-96}"
grep '^# ' ok.out
done_testing
