#!/bin/sh
# gptq.t -- folders of `model-export --to gptq`, and imports of folders of GPTQModel
#
# Exported folders are loaded by transformers and dequantized by GPTQModel in f16: the weights equal those of `--to hf
# --dtype f16`, bit for bit. Folders that GPTQModel writes, of GPTQ and in the layout of AutoAWQ, are imported: the
# weights equal those of GPTQModel in f32, bit for bit.
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers torch transformers optimum gptqmodel safetensors h5py
export OMP_NUM_THREADS=1 TQDM_DISABLE=1
model-import -q "$top/data/prose" -o prose.h5
sample-tokens -q --length 1024 --ctx 128 prose.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 128 prose.h5 -o hessian.h5

# make NAME OPTION...: a folder of codes, and a folder of the same weights unquantized
names=
make() {
	name=$1; shift
	dpq-run -q --scale-dtype f16 --layers '/model/layers/*' "$@" prose.h5 -o "$name.h5"
	model-export -q --to gptq --dtype f16 -o "$name" "$name.h5"
	model-export -q --dtype f16 -o "$name-plain" "$name.h5"
	names="$names $name"
}
for b in 2 3 4 8; do
	make int$b --compensate none --storage int$b -g 32
	make uint$b --compensate none --storage uint$b -g 64
done
make channel --compensate none --storage int4 -g channel
make order --compute none --hessian hessian.h5 --reorder full --storage uint4 -g 64
make order-sym --compute none --hessian hessian.h5 --reorder full --storage int4 -g 32
# shellcheck disable=SC2086
peer loaded_by_peer $names >peers 2>peers.err || cat peers.err >&2
for name in $names; do
	is "$name: weights by GPTQModel" "$(sed -n "s/^$name	//p" peers)" equal
done

model-export -q -o source prose.h5
# theirs NAME FUNCTION ARGUMENT...: a folder that the package writes
theirs() {
	name=$1; shift
	peer "$@" "$name" >peers 2>peers.err || cat peers.err >&2
	model-import -q "$name" -o "$name.h5" 2>said || cat said >&2
	model-export -q --weights-only --dtype f32 -o "$name-plain" "$name.h5"
	peer equal_to_peer "$name" "$name-plain" >peers 2>peers.err || cat peers.err >&2
	is "$name: imported weights equal those of GPTQModel" "$(tail -n 1 peers)" equal
}
theirs gptq quantized_by_peer source tokens.h5
theirs awq packed_by_peer source
done_testing
