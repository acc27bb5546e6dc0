#!/bin/sh
# Folders of `model-export --to gptq` against a reader in numpy, written from the description of the format: codes, zero
# points, scales, groups and configuration. What GPTQModel reads is tested by `make check-doors`.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! py 'h5py.File' 2>/dev/null; then
	skip 'model-export --to gptq' 'no h5py'
	done_testing
fi
ref=$top/tests/ref
py llama llama.h5
for m in phi3-window neox-parallel mixtral gpt2; do py plain "$ref/$m.h5" $m.h5; done
py plain "$ref/vision/llava-clip.h5" llava.h5
sample-tokens -q --length 256 --ctx 16 llama.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 16 llama.h5 -o hessian.h5
codes() { dpq-run -q --scale-dtype f16 --compensate none "$@"; }
gptq() { model-export --to gptq "$@"; }
blocks='/*/layers/*'
# same NAME CONFIGURATION OPTION...: what dpq-run makes with the options is in the folder bit for bit
same() {
	name=$1 config=$2; shift 2
	codes "$@" -o "$name.h5" && gptq -q -o "$name" "$name.h5"
	is "$name: the configuration" "$(py says "$name")" "$config"
	ok "$name: codes and parameters bit for bit" py packed "$name.h5" "$name"
}

for b in 2 3 4 8; do
	same int$b "gptq $b 16 symmetric neighbours" --storage int$b -g 16 --layers "$blocks" llama.h5
	same uint$b "gptq_v2 $b 16 asymmetric neighbours" --storage uint$b -g 16 --layers "$blocks" llama.h5
done
same channel 'gptq 4 -1 symmetric neighbours' --storage int4 -g channel --layers "$blocks" llama.h5
same uchannel 'gptq_v2 4 -1 asymmetric neighbours' --storage uint4 -g channel --layers "$blocks" llama.h5
same tensor 'gptq 3 -1 symmetric neighbours' --storage int3 -g tensor --layers "$blocks" llama.h5
same utensor 'gptq_v2 3 -1 asymmetric neighbours' --storage uint3 -g tensor --layers "$blocks" llama.h5
same wide 'gptq 4 64 symmetric neighbours' --storage int4 -g 64 --layers "$blocks" llama.h5
same ragged 'gptq_v2 4 24 asymmetric neighbours' --storage uint4 -g 24 --layers "$blocks" llama.h5
same head 'gptq 4 16 symmetric neighbours' --storage int4 -g 16 llama.h5
gptq_of() { codes --compensate both --compute none --hessian hessian.h5 --storage uint4 -g 16 "$@"; }
gptq_of --reorder full llama.h5 -o order.h5 && gptq -q -o order order.h5
is 'groups in the order of rounding' "$(py says order)" 'gptq_v2 4 16 asymmetric reordered'
ok '... bit for bit' py packed order.h5 order
gptq_of --reorder gar llama.h5 -o gar.h5 && gptq -q -o gar gar.h5
is 'groups of neighbours in another order' "$(py says gar)" 'gptq_v2 4 16 asymmetric neighbours'
ok '... bit for bit' py packed gar.h5 gar
exmy-pack -q uint3.h5 -o packed.h5
gptq -q -o packed packed.h5
ok 'packed codes give the same bytes' diff -r uint3 packed
py middle uint4.h5 middle.h5 && gptq -q -o middle middle.h5
is 'zero points in the middle are symmetric' "$(py says middle)" 'gptq 4 16 symmetric neighbours'
ok '... with all 2^b codes' py packed middle.h5 middle
py middle uint4.h5 but.h5 1/mlp/down_proj && gptq -q -o but but.h5
is '... but not if the last layer has others' "$(py says but)" 'gptq_v2 4 16 asymmetric neighbours'
ok '... bit for bit' py packed but.h5 but
gptq -q --file-size 4K -o shards uint4.h5
ok 'shards with an index' py packed uint4.h5 shards
gptq -q --dtype bf16 -o half uint4.h5 && codes --storage uint4 -g 16 --layers "$blocks" llama.h5 |
	model-export -q -o half-plain
is 'scales are f16 whatever the dtype is' "$(py says half)" 'gptq_v2 4 16 asymmetric neighbours'

# Tensors of several layers, and routers, which stay plain.
for m in phi3-window neox-parallel; do
	codes --storage uint8 -g 4 --layers "$blocks" $m.h5 -o fused.h5
	rm -rf fused plain
	gptq -q -o fused fused.h5 && model-export -q -o plain fused.h5
	ok "$m: rows of one tensor" py dequantized fused plain
done
same experts 'gptq 8 4 symmetric neighbours' --storage int8 -g 4 --layers "$blocks" --layers '!*/gate' mixtral.h5
codes --storage int8 -g 2 --layers '/model/layers/*' llava.h5 -o sees.h5
gptq -q -o sees sees.h5 && model-export -q -o sees-plain sees.h5
ok 'the language model of one that sees images' py dequantized sees sees-plain

# Scales beyond f16.
dpq-run -q --compensate none --storage int4 -g 16 --layers "$blocks" llama.h5 -o f32.h5
no 'scales that f16 rounds' 1 \
	'_proj: the scale .* of row 0, group 0, is no number of f16; --to compressed-tensors .*--scale-dtype f16' \
	gptq -o no f32.h5
warns '... are rounded if told' 'rounding changed weights, most model.layers.[01].*_proj: by 0.000' \
	gptq --allow-rounding --report report.tsv -o rounded f32.h5
ok '... by what is reported' py changed f32.h5 rounded report.tsv
dpq-run -q --compensate none --storage uint4 -g 16 --compute e4m3fn --act-mode none --layers "$blocks" llama.h5 \
	-o dpq.h5
no 'a compute format' 1 '_proj: is rounded to e4m3fn, .*--to compressed-tensors writes that, --skip-compute' \
	gptq -o no dpq.h5
warns '... left out if told' 'rounding changed weights' \
	gptq --skip-compute --allow-rounding --report report.tsv -o w4a16 dpq.h5
ok '... by what is reported' py changed dpq.h5 w4a16 report.tsv

# What has no place.
refused() {
	what=$1 why=$2; shift 2
	codes "$@" -o refused.h5
	no "$what" 1 "/.*: $why" gptq -o no refused.h5
}
refused 'a float of 5 bits' 'is e2m2, which --to gptq has no place for: it has int and uint of 2, 3, 4 and 8 bits' \
	--storage e2m2 -g 16 --layers "$blocks" llama.h5
refused '5 bits' 'is int5, .*; --to compressed-tensors holds it' --storage int5 -g 16 --layers "$blocks" llama.h5
refused 'rounded inputs' 'rounds its inputs, which --to gptq has no place for; --weights-only' \
	--storage int8 -g channel --act-format int8 --act-mode dynamic-token --layers "$blocks" llama.h5
gptq -q --weights-only -o alone refused.h5
is '... left out if told' "$(py says alone)" 'gptq 8 -1 symmetric neighbours'
refused 'a layer that is plain' 'is not quantized, as --to gptq needs all layers of blocks; dpq-run without --layers' \
	--storage int4 -g 16 --layers "$blocks" --layers '!*/up_proj' llama.h5
printf '%s\n' '*/down_proj storage=int8' >bits
refused 'two widths' 'is int4, but /model/layers/0/mlp/down_proj has 8 bits: --to gptq has one width for all' \
	--plan bits --storage int4 -g 16 --layers "$blocks" llama.h5
printf '%s\n' '*/q_proj group=channel' >sizes
refused 'two sizes of groups' 'has groups of -1 columns, but .* of 16' \
	--plan sizes --storage int4 -g 16 --layers "$blocks" llama.h5
refused 'words that are not filled' 'is 24 rows of 44 columns: 4 bits of either do not fill words of 32 bits' \
	--storage int4 -g 4 --layers '*/down_proj' phi3-window.h5
refused 'Conv1D' 'is transposed in a checkpoint of its class' --storage int8 -g 4 gpt2.h5
refused 'an embedding' 'is an embedding, of which' --storage int4 -g 16 --layers '*/embed_tokens' llama.h5
refused 'an encoder of images' '(is quantized, and is no layer|is a convolution)' --storage int8 -g 2 llava.h5
printf '%s\n' '*/gate storage=int8' >router
refused 'a router' 'is quantized, and is no layer of which --to gptq has codes' \
	--plan router --storage int8 -g 4 --layers '/*/layers/*' mixtral.h5
no 'a model that is not quantized' 1 '(has no quantized layer|is not quantized)' gptq -o no llama.h5
py groups int4.h5 uneven.h5 uneven
no 'groups of several sizes' 1 'down_proj: its group 1 has 48 columns \(group_index\), --to gptq has 16 of each' \
	gptq -o no uneven.h5
codes --storage uint8 -g 4 --layers "$blocks" phi3-window.h5 -o fused.h5
py groups fused.h5 orders.h5 orders
no 'layers of one tensor in two orders' 1 'k_proj: is one tensor of .* with .*q_proj, but has other groups' \
	gptq -o no orders.h5
ok 'nothing is left of what failed' sh -c 'test ! -e no && test -z "$(ls -d .ptq.* 2>/dev/null)"'
done_testing
