#!/bin/sh
# gguf_block.t -- blocks of dpq-run --storage q4_k, q5_k, q6_k and iq4_nl, bit for bit against those of llama.cpp
#
# llama.cpp's ggml_quantize_chunk() makes them, called from the library of the Python package llama-cpp-python, with the
# mean squares of inputs as importances, and without. Weights and importances are those of tests/lib/gguf_block.py; some
# scales are subnormal or 0 as half floats. Weights that need larger scales than a half float are refused by dpq-run.
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers numpy h5py llama_cpp
export OMP_NUM_THREADS=1
model-import -q "$top/data/prose" -o prose.h5
sample-tokens -q --length 2048 --ctx 256 --seed 2 prose.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 256 prose.h5 -o h.h5
kinds=$(peer make_patterns) || bad=1
dpq() { dpq-run -q --compensate none --storage "$@" -o q.h5 2>err || cat err >&2; }
for f in q4_k q5_k q6_k iq4_nl; do
	dpq $f prose.h5
	ok "$f: a model" peer same_blocks prose.h5 q.h5
	dpq $f --hessian h.h5 prose.h5
	ok "$f: a model, with its Hessians" peer same_blocks prose.h5 q.h5 '' h.h5
	dpq $f weights.h5
	ok "$f: other weights" peer same_blocks weights.h5 q.h5
	for kind in $kinds; do
		dpq $f --hessian "h-$kind.h5" weights.h5
		ok "$f: importances: $kind" peer same_blocks weights.h5 q.h5 "$kind"
	done
done

# llama.cpp reads the blocks. On floats the difference is the order of sums. For products with blocks it rounds inputs
# to 8 bits of the largest of 256, at most 1/254 of it, which moves likelihoods by less than the bound here.
py ids tokens.h5 ids
for f in q4_k q5_k q6_k iq4_nl; do
	dpq $f --hessian h.h5 prose.h5
	model-export -q --to gguf -o q.gguf q.h5
	model-export -q --to gguf --blocks none -o plain.gguf q.h5
	peer likelihoods ids 256 plain.gguf q.gguf >rows 2>peers.err || cat peers.err >&2
	eval-ppl -q --tokens tokens.h5 --ctx 256 --convention llama.cpp q.h5 >nll 2>err || cat err >&2
	ours=$(awk '$1 == "nll" { print $2 }' nll)
	near "$f: llama.cpp on F32" "$(sed -n 's/^plain.gguf	//p' rows)" "$ours" 1e-5
	near "$f: llama.cpp on blocks" "$(sed -n 's/^q.gguf	//p' rows)" "$ours" 5e-3
done
done_testing
