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
# Blocks: llama.cpp rounds the inputs of their products to 8 bits, which eval-ppl does not. What that costs it shows
# itself, by the same numbers as Q8_0 and as F32: how far likelihoods of tokens are apart, in the mean. The mean
# likelihood by other blocks of these numbers may be as far from that of eval-ppl.
for s in 'int4 Q4_0' 'uint4 Q4_1' 'int5 Q5_0' 'uint5 Q5_1' 'int8 Q8_0' 'mxfp4 MXFP4'; do
	set -- $s
	case $1 in uint5) bits='--scale-bits 6' ;; uint*) bits='--scale-bits 7' ;; *) bits= ;; esac
	[ "$1" = mxfp4 ] || bits="--scale-dtype f16 $bits"
	# shellcheck disable=SC2086
	dpq-run -q --compensate none --storage "$1" --group 32 $bits prose.h5 -o q.h5
	model-export -q --to gguf -o q.gguf q.h5
	model-export -q --to gguf --blocks none -o plain.gguf q.h5
	ok "$2: the same numbers by the package gguf, as blocks and as F32" peer same q.gguf plain.gguf "$2"
	model-export -q --to gguf --blocks q8_0 -o q8.gguf q.h5
	ours=$(nll q.h5) plain=$(theirs plain.gguf) blocks=$(theirs q.gguf) q8=$(theirs q8.gguf)
	near "$2, dequantized: llama.cpp" "$plain" "$ours" 1e-5
	cost=$(peer apart q8.gguf plain.gguf)
	echo "# $2: eval-ppl $ours, llama.cpp on F32 $plain, on Q8_0 $q8, on blocks $blocks"
	near "$2: llama.cpp, but for its inputs" "$blocks" "$ours" "$cost"
done

# Tokenizers: the ids of `tokenize`, of a text with every kind of word, with special tokens or without.
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
		ok "$name $special: the same ids when it is imported again" peer same_ids ids.h5 back.h5
		ok "$name $special: the same ids by llama.cpp, as $kind" \
			peer tokenized "$name.gguf" text ids.h5 "$kind" $special
	done
done <tokenizers
done_testing
