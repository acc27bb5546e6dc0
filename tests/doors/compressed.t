#!/bin/sh
# compressed.t -- folders of `model-export --to compressed-tensors`, dequantized by the package and run by transformers
#
# Weights and logits equal those of `--to hf`, bit for bit. PEFT adds the adapters.
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers torch transformers compressed_tensors safetensors peft h5py
export OMP_NUM_THREADS=1 TQDM_DISABLE=1
model-import -q "$top/data/prose" -o prose.h5
small='llama-gqa qwen2-bias opt phi3-window neox-parallel'
for m in $small; do py plain "$top/tests/ref/$m.h5" $m.h5; done
for m in llava-clip qwen2-vl; do py plain "$top/tests/ref/vision/$m.h5" $m.h5; done
sample-tokens -q --length 1024 --ctx 128 prose.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 128 prose.h5 -o hessian.h5
printf '%s\n' '*/down_proj storage=int8 group=channel' '*/q_proj keep' '*/o_proj storage=e4m3fn group=channel' >plan

# make NAME MODEL DTYPE OPTION...: a folder of codes, and a folder of the same weights unquantized
names=
make() {
	name=$1 model=$2 dtype=$3; shift 3
	dpq-run -q --compensate none "$@" "$model.h5" -o "$name.h5"
	model-export -q --to compressed-tensors --dtype "$dtype" -o "$name" "$name.h5"
	model-export -q --weights-only --dtype "$dtype" -o "$name-plain" "$name.h5"
	names="$names $name"
}
make int4 prose f32 --storage int4 -g 32
make int8 prose f32 --storage int8 -g channel
make uint4 prose f32 --storage uint4 -g 64
make uint8 prose f32 --storage uint8 -g channel
make int3 prose f32 --storage int3 -g 64
make int4-bf16 prose bf16 --storage int4 -g 32 --scale-dtype bf16
make uint4-f16 prose f16 --storage uint4 -g 32 --scale-dtype f16
# The package multiplies FP4 in bf16.
make mxfp4 prose bf16 --storage mxfp4 -g 32
make nvfp4 prose bf16 --storage nvfp4 -g 16
make fp8 prose f32 --storage e4m3fn -g channel
make dpq prose f32 --storage uint4 -g 64 --compute e4m3fn --act-mode none
make mixed prose f32 --plan plan --storage int4 -g 64
make w8a8 prose f32 --storage int8 -g channel --act-format int8 --act-mode dynamic-token
make w4a8 prose f32 --storage int4 -g 64 --act-format int8 --act-mode dynamic-token
# The package reports an error for a static scale of inputs, which it does not use.
files=$names
make fp8-static prose f32 --storage e4m3fn -g tensor --act-format e4m3fn --act-mode static-tensor --hessian hessian.h5
before=$names names=
for m in $small; do make $m-int4 $m f32 --storage int4 -g 4; done
for m in mixtral qwen3-moe; do
	py plain "$top/tests/ref/$m.h5" $m.h5
	make $m-int4 $m f32 --storage int4 -g 4 --layers '/*/layers/*' --layers '!*/gate'
done
for m in llava-clip qwen2-vl; do
	make $m-int4 $m f32 --storage int4 -g 2 --layers '!*embed*'
	make $m-text $m f32 --storage int4 -g 2 --layers '/model/layers/*'
done

files=$files$names names=$before$names

# shellcheck disable=SC2086
peer dequantized_by_peer $files >peers 2>peers.err || cat peers.err >&2
for name in $files; do
	is "$name: weights dequantized by compressed-tensors" "$(sed -n "s/^$name	//p" peers)" equal
done
# shellcheck disable=SC2086
peer loaded_by_peer $names >peers 2>peers.err || cat peers.err >&2
for name in $names; do
	is "$name: weights and logits by transformers" "$(sed -n "s/^$name	//p" peers)" equal
done

# A branch: the products of an adapter are summed in another order than those of one matrix.
fbq-run -q --storage int4 -g 64 --rank 8 --steps 3 --hessian hessian.h5 prose.h5 -o branch.h5
model-export -q --to compressed-tensors --adapter adapter -o branch branch.h5
model-export -q -o branch-plain branch.h5
peer with_adapter branch adapter branch-plain >peers 2>peers.err || cat peers.err >&2
near 'a branch as an adapter of PEFT: likelihood' "$(cut -f1 peers)" "$(cut -f2 peers)" 1e-6
is '... another likelihood without the adapter' "$(awk '{ d = $3 - $2; print (d * d > 1e-8 ? "yes" : d) }' peers)" yes
done_testing
