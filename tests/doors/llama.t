#!/bin/sh
# llama.t -- GGUF files of `model-export --to gguf`, read by llama.cpp and by the Python package gguf
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers numpy gguf llama_cpp
export OMP_NUM_THREADS=1
model-import -q "$top/data/prose" -o prose.h5
sample-tokens -q --length 2048 --ctx 256 --seed 2 prose.h5 -o tokens.h5
py ids tokens.h5 ids
nll() { eval-ppl -q --tokens "$2" --ctx "$3" --convention llama.cpp "$1" | awk '$1 == "nll" { print $2 }'; }
# theirs IDS CTX FILE...: likelihoods by llama.cpp; of FILE: prints the likelihood of one file
theirs() { peer likelihoods "$@" >rows 2>peers.err || cat peers.err >&2; }
of() { sed -n "s/^$1	//p" rows; }
# quantized STORAGE [SCALES]: quantizes m.h5 to q.h5; as GGUF: q.gguf; the same numbers in F32: plain.gguf, in Q8_0:
# q8.gguf
quantized() {
	bits=; [ "$1" = mxfp4 ] || bits="--scale-dtype f16 ${2:-}"
	# shellcheck disable=SC2086
	dpq-run -q --compensate none --storage "$1" --group 32 $bits m.h5 -o q.h5
	model-export -q --to gguf -o q.gguf q.h5 2>/dev/null
	model-export -q --to gguf --blocks none -o plain.gguf q.h5
	model-export -q --to gguf --blocks q8_0 -o q8.gguf q.h5 2>/dev/null
}
# compared NAME TOKENS IDS CTX BOUND: llama.cpp and eval-ppl on F32, and on blocks. llama.cpp rounds the inputs of
# products with blocks to 8 bits, eval-ppl does not. The cost of this rounding is measured in llama.cpp, with the same
# numbers in Q8_0 and in F32: the mean difference of likelihoods of tokens. With other blocks, whose inputs are rounded
# in the same way, the mean likelihood may differ from that of eval-ppl by this cost.
compared() {
	theirs "$3" "$4" plain.gguf q8.gguf q.gguf
	ours=$(nll q.h5 "$2" "$4")
	near "$1: llama.cpp on F32" "$(of plain.gguf)" "$ours" "$5"
	cost=$(peer apart q8.gguf plain.gguf "$5")
	echo "# $1: eval-ppl $ours, llama.cpp on F32 $(of plain.gguf), on Q8_0 $(of q8.gguf), on blocks $(of q.gguf)"
	near "$1: llama.cpp on blocks" "$(of q.gguf)" "$ours" "$cost"
}

# Every type of blocks. On floats the difference is the order of sums.
for s in 'int4 Q4_0' 'uint4 Q4_1' 'int5 Q5_0' 'uint5 Q5_1' 'int8 Q8_0' 'mxfp4 MXFP4'; do
	set -- $s
	case $1 in uint5) bits='--scale-bits 6' ;; uint*) bits='--scale-bits 7' ;; *) bits= ;; esac
	ln -sf prose.h5 m.h5 && quantized "$1" "$bits"
	ok "$2: the package gguf reads the same numbers from blocks and from F32" peer same q.gguf plain.gguf "$2"
	compared "$2" tokens.h5 ids 256 1e-5
done

# Every class, rows of 32 columns as blocks. llama.cpp computes GELU by a table with inputs and values in f16, with a
# relative error of 2^-11: logits of order 1 differ by less than that.
py random_ids random.h5 60 768
py ids random.h5 random
names=$(py classes "$top") || bad=1
for m in $names; do
	case $m in gpt2 | neox* | gemma*) bound=5e-4 ;; *) bound=1e-5 ;; esac
	model-import -q "$m.gguf" -o m.h5 2>/dev/null && quantized int4
	compared "$m" random.h5 random 32 $bound
done
skip 'neox-serial' 'llama.cpp does not load it with a tied head'
skip 'phi3-window' 'llama.cpp ignores the window of Phi-3'

# Tokenizers: the ids of `tokenize` for a text with every kind of word, with and without special tokens.
peer tokenizers "$shared" "$top/tests/ref/llama-gqa.h5" "${MODELS:-}" >tokenizers || bad=1
peer text "$shared" text
[ -s tokenizers ] || skip 'tokenizers' 'no shared data'
while read -r name kind; do
	model-export -q --to gguf -o "$name.gguf" "$name.h5"
	model-import -q "$name.gguf" -o again.h5
	for special in '' --special; do
		# shellcheck disable=SC2086
		tokenize -q $special --model "$name.h5" text -o ids.h5
		# shellcheck disable=SC2086
		tokenize -q $special --model again.h5 text -o back.h5
		ok "$name $special: the same ids after import" peer same_ids ids.h5 back.h5
		ok "$name $special: the same ids by llama.cpp, as $kind" \
			peer tokenized "$name.gguf" text ids.h5 "$kind" $special
	done
done <tokenizers
done_testing
