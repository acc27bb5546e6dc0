#!/bin/sh
# import-packed.t -- imports of checkpoints that compressed-tensors and transformers write
#
# Imported weights equal those that the package dequantizes in float32, bit for bit. Checkpoints with quant_method fp8
# are dequantized by transformers.
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers torch transformers compressed_tensors safetensors h5py
export OMP_NUM_THREADS=1 TQDM_DISABLE=1
model-import -q "$top/data/prose" -o prose.h5
model-export -q -o plain prose.h5
schemes='int2 int3 int4 int5 int6 int7 int8 uint3 uint4 uint8 channel w8a8 w8u fp8 fp8s block mxfp4 nvfp4'
# shellcheck disable=SC2086
peer written_by_peer plain $schemes >peers 2>peers.err || cat peers.err >&2
for s in $schemes; do
	model-import -q "$s" -o "$s.h5" 2>said || cat said >&2
	model-export -q --weights-only --dtype f32 -o "$s-plain" "$s.h5"
	is "$s: weights as compressed-tensors dequantizes them" "$(peer equal_to_peer "$s" "$s-plain")" equal
done
peer written_by_transformers plain deepseek >peers 2>peers.err || cat peers.err >&2
model-import -q deepseek -o deepseek.h5 2>said || cat said >&2
model-export -q --dtype f32 -o deepseek-plain deepseek.h5
is 'fp8: weights as transformers dequantizes them' "$(peer equal_to_peer deepseek deepseek-plain)" equal

# Likelihoods only where inputs are not rounded. With rounded inputs another order of sums changes the mean of either
# program by 1e-3, because an input near a tie changes by a step, and so do all later layers.
sample-tokens -q --length 2048 --ctx 128 prose.h5 -o tokens.h5
py no_bos tokens.h5
few='int4 uint4 fp8 mxfp4'
# shellcheck disable=SC2086
peer likelihoods tokens.h5 $few >peers 2>peers.err || cat peers.err >&2
for s in $few; do
	nll=$(eval-ppl -q --ctx 128 --tokens tokens.h5 "$s.h5" 2>/dev/null | awk '$1 == "nll" { print $2 }')
	near "$s: the likelihood by transformers" "$(sed -n "s/^$s	//p" peers)" "$nll" 1e-6
done
done_testing
