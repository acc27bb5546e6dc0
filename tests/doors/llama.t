#!/bin/sh
# llama.t -- GGUF files of `model-export --to gguf` as llama.cpp and the Python package gguf read them
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers numpy gguf llama_cpp
export OMP_NUM_THREADS=1
model-import -q "$top/data/prose" -o prose.h5
sample-tokens -q --length 2048 --ctx 256 --seed 2 prose.h5 -o tokens.h5
py ids tokens.h5 ids
nll() { eval-ppl -q --tokens tokens.h5 --ctx 256 --convention llama.cpp "$1" | awk '$1 == "nll" { print $2 }'; }
theirs() { peer nll "$1" ids 256 2>/dev/null; }

# Floats: sums in another order.
model-export -q --to gguf -o f32.gguf prose.h5
near 'f32: llama.cpp' "$(theirs f32.gguf)" "$(nll prose.h5)" 1e-5
for s in int4 mxfp4; do
	# shellcheck disable=SC2046
	dpq-run -q --compensate none --storage $s --group 32 $([ $s = mxfp4 ] || echo --scale-dtype f16) prose.h5 \
		-o q.h5
	model-export -q --to gguf -o q.gguf q.h5
	model-export -q --to gguf --blocks none -o plain.gguf q.h5
	near "$s, dequantized: llama.cpp" "$(theirs plain.gguf)" "$(nll q.h5)" 1e-5
	ok "$s: the same numbers by the package gguf" peer same q.gguf plain.gguf
	# llama.cpp rounds the inputs of blocks to Q8_0: errors below 1/254 of the largest of 32 in each product.
	near "$s: llama.cpp on blocks and on the dequantized file" "$(theirs q.gguf)" "$(theirs plain.gguf)" 1e-2
done
done_testing
