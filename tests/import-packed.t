#!/bin/sh
# import-packed.t -- packed checkpoints become codes and parameters, bit for bit
#
# The checkpoints are written in numpy from the description of their formats, or by model-export. `make check-doors`
# tests checkpoints of other packages.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! has_h5py; then
	skip 'packed checkpoints' 'no h5py'
	done_testing
fi
ref=$top/tests/ref
for m in llama-gqa phi3-window neox-parallel gpt2; do py plain "$ref/$m.h5" $m.h5; done
model-export -q -o plain llama-gqa.h5
# quiet COMMAND...: it succeeds and prints nothing but the warning that a model has no tokenizer
quiet() { "$@" 2>said && ! grep -v -e 'has no tokenizer' -e "${but:-no other}" said; }

# differ FILE FILE: whether weights differ, and whether any exist
differ() {
	tensor-diff -q -r "$1" "$2" 2>/dev/null | awk -F'\t' 'NR > 1 && $3 != 0 && $3 != "-" { bad = 1 }
		END { print (bad ? "yes" : "no") " of " (NR > 1 ? "some" : "none") }'
}

# Written by hand.
for s in int2 int3 int4 int5 int6 int7 int8 uint2 uint3 uint4 uint5 uint6 uint7 uint8 old3 old4 old5 old6 old7 \
	bare3 bare4 bare5 bare6 bare7 new5 new7 \
	bytes channel half order w8 w8a8 w8a8s w8u w4a8 fp8 fp8d fp8s block mxfp4 nvfp4 \
	deepseek powers autofp8; do
	py make plain $s $s
	but=
	case $s in deepseek | powers) but='dynamic scales of groups of inputs or of all tokens' ;; esac
	ok "$s: imports" quiet model-import $s -o $s.h5
	[ -z "$but" ] || is '... and warns that inputs are not rounded' "$(grep -c "$but" said)" 1
	but=
	ok "$s: codes and parameters bit for bit" py holds $s $s.h5
done
py make plain mixed uint4:q_proj w8a8:down_proj fp8:gate int4
ok 'several groups: imports' quiet model-import mixed -o mixed.h5
ok '... bit for bit' py holds mixed mixed.h5

# Conv1D layers are transposed in a checkpoint of plain weights, but not in a packed one.
model-export -q -o plain-gpt2 gpt2.h5
py make plain-gpt2 conv uint4
ok 'Conv1D: imports' quiet model-import conv -o conv.h5
ok '... in the shapes of model files' py holds conv conv.h5

# Bad input: the message names it, and no file is written.
# wrong NAME WHY FOLDER WHAT ARGUMENT...: the import of the folder, changed by spoil(), fails
wrong() {
	name=$1 why=$2; shift 2
	rm -rf spoilt; py spoil "$1" spoilt "$2" "${3:-}" "${4:-null}"
	no "$name" 1 "$why" model-import -q spoilt -o no.h5
}
up='spoilt/model.safetensors: model.layers.0.mlp.up_proj'
wrong 'a plain weight next to a packed one' "$up.weight: is not expected" uint4 extra weight 1
wrong 'no codes' "$up.weight_packed: is missing" uint4 gone weight_packed
wrong 'no shape' 'up_proj.weight_shape: is missing' uint4 gone weight_shape
wrong 'no scales' 'up_proj.weight_scale: is missing, .* needs it' uint4 gone weight_scale
wrong 'no zero points' 'up_proj.weight_zero_point: is missing' uint4 gone weight_zero_point
wrong 'zero points of signed integers' "$up.weight_zero_point: is not expected" \
	int4 extra weight_zero_point 1
wrong 'a static scale of inputs that are not rounded' "$up.input_scale: is not expected" \
	int4 extra input_scale 1
wrong 'no static scale' 'up_proj.input_scale: is missing' w8a8s gone input_scale
wrong 'packed codes of another shape' "$up.weight_packed: its shape is .*, expected .44, 4." int4 shorter weight_packed
wrong 'scales of another shape' "$up.weight_scale: its shape is .*, expected .44, 8." int4 shorter weight_scale
wrong 'zero points of another shape' "$up.weight_zero_point: its shape is" uint4 shorter weight_zero_point
wrong 'a type that is two names' "$up.weight_scale: is stored as F32 F16, expected" \
	int4 type weight_scale '"F32 F16"'
wrong 'a type without a name' "$up.weight_scale: is stored as , expected F32" int4 type weight_scale '""'
wrong 'codes in bytes of another shape' 'up_proj.weight: its shape is not the .44, 32. of config.json' w8 shorter weight
wrong 'a shape that differs from config.json' 'up_proj.weight: its shape is not the' int4 first weight_shape 45
wrong 'a shape below 1' 'up_proj.weight_shape: is .-1, 32., expected rows and columns' int4 first weight_shape -1
for v in 0 -1; do
	wrong "a scale of $v" "$up.weight: its scale holds $v, expected positive scales" int4 first weight_scale $v
done
wrong 'a scale that is NaN' "$up.weight: its scale holds -?nan, expected positive" fp8 first weight_scale NaN
wrong 'a scale that is infinite' "$up.weight: its scale holds inf" int4 first weight_scale Infinity
wrong 'a block with a scale of 0' "$up.weight: its scale holds 0, expected" deepseek first weight_scale_inv 0
wrong 'an exponent that is NaN' "$up.weight_scale: holds code 255, which is NaN" mxfp4 first weight_scale 255
wrong 'an FP8 scale that is NaN' "$up.weight_scale: holds code 127, which is NaN" nvfp4 first weight_scale 127
wrong 'a divisor of 0' 'up_proj.weight: its scale_tensor holds 0' nvfp4 first weight_global_scale 0
wrong 'FP8 that is NaN' "$up.weight: its codes holds code 127, which is not valid in e4m3fn" fp8 first weight 127
wrong 'a static scale of 0' "$up.weight: its act_scale holds 0" w8a8s first input_scale 0
wrong 'an integer beyond its bits' "$up.weight: holds 8, expected integers of 4 bits" w4a8 first weight 8
wrong 'a group beyond the last' "$up.weight: its group_index column 0 is in group 8 of 8" order first weight_g_idx 8
wrong 'a column order that the scheme does not have' 'weight_g_idx: is not expected' order weights actorder '"weight"'
wrong 'a layer that the class does not have' 'new_proj.weight: is quantized, but is not a linear layer' int4 stranger
wrong 'a packed layer in the list ignore' 'up_proj: is stored packed, but is in no group .*, or is in .ignore.' \
	int4 config ignore '["re:.*up_proj$"]'
wrong 'a layer in no group' 'down_proj: is stored packed, but is in no group' int4 group targets '["re:.*q_proj$"]'
wrong 'an invalid pattern' 'PCRE2 refuses the pattern' int4 group targets '["re:("]'
wrong 'a number in place of a list' 'ignore: expected a list of names' int4 config ignore 3
wrong 'an unknown method' "quant_method 'x' is not known, expected one of" int4 config quant_method '"x"'
wrong 'an unknown format' "format is 'marlin-24', expected one of pack-quantized" int4 group format '"marlin-24"'
wrong 'an invalid version' "version is 'new', expected one like" int4 config version '"new"'
wrong 'weights that are not packed yet' \
	"$up.weight: is stored as F32, expected codes; quantization_status is 'frozen'" \
	int4 frozen
wrong 'sparse weights' "sparsity_config: format is 'sparse-24-bitmask'" int4 config sparsity_config \
	'{"format": "sparse-24-bitmask"}'
wrong 'rotations' 'transform_config: online rotations' int4 config transform_config '{"config_groups": {"a": {}}}'
wrong 'too large a version' "version is '99999999999.9', expected one like" int4 config version '"99999999999.9"'
wrong 'no groups' 'config_groups: expected an object of groups' int4 config config_groups '[]'
wrong 'rounded outputs' 'output_activations: rounding of outputs is not' int4 group output_activations '{"a": 1}'
wrong '9 bits' 'num_bits is 9, expected 2 to 8' int4 weights num_bits 9
wrong 'a group of 0' 'group_size: expected a whole number from 1' int4 weights group_size 0
wrong 'an unknown strategy' "strategy is 'attn_head', expected tensor" int4 weights strategy '"attn_head"'
wrong 'an unknown order' "actorder is 'odd', expected group or weight" int4 weights actorder '"odd"'
wrong 'floats in a format of integers' "type is 'float', expected int in this format" int4 weights type '"float"'
wrong 'a block size of 0' 'weight_block_size: expected two whole numbers' deepseek config weight_block_size '[0, 128]'
wrong 'FP8 of another kind' "fmt is 'e5m2', expected 'e4m3'" deepseek config fmt '"e5m2"'
wrong 'an unknown activation scheme' "activation_scheme is 'odd'" deepseek config activation_scheme '"odd"'
model-export -q --to compressed-tensors --file-size 4K -o shards uint4.h5
rm shards/model-00002-of-*
no 'a shard that is missing' 1 'shards/model-00002-of-.*: cannot open' model-import -q shards -o no.h5
ok 'failed imports leave no file' sh -c 'test ! -e no.h5 && test -z "$(ls .no.h5* 2>/dev/null)"'

# Some checkpoints have the status frozen for packed weights, and the key compression_config.
model-import -q int4 -o int4.h5 2>said
py spoil int4 frozen config quantization_status '"frozen"'
py spoil frozen compression renamed
ok 'packed weights with the status frozen' quiet model-import compression -o frozen.h5
is '... the same codes' "$(differ int4.h5 frozen.h5)" 'no of some'
ok '... and the same configuration' py same_config plain frozen.h5
ok 'the history has bits and groups' py history int4.h5 config_groups.group_0.weights.num_bits=4 \
	config_groups.group_0.weights.group_size=4 config_groups.group_0.weights.symmetric=true

py spoil int4 words words 300000
ok 'a configuration of 300,000 words takes seconds' sh -c 'ulimit -t 10 && exec model-import -q words -o words.h5'

# Unaligned data are copied one block at a time. Peak memory in MiB, independent of what malloc() keeps.
py unaligned even 0 && py unaligned odd 1
peak() {
	MALLOC_MMAP_THRESHOLD_=65536 model-import -v "$1" -o "$1.h5" 2>&1 |
		sed -n 's/.*peak memory \([0-9]*\).*MiB.*/\1/p'
}
even=$(peak even) odd=$(peak odd)
ok 'unaligned data are not in memory as a whole' test "$odd" -lt $((even + 8))
is '... and the same model' "$(differ even.h5 odd.h5)" 'no of some'

# Settings that model files do not support are left out, with a warning.
py spoil int4 left keys 0 '{"num_bits": 8}'
model-import -q left -o left.h5 2>said
is 'rounded keys and values: a warning' "$(grep -c 'kv_cache_scheme: keys and values are not rounded' said)" 1
is '... and one for their scales' "$(grep -c 'k_scale: scales of keys and values are not supported' said)" 1
is '... and the weights are imported' "$(differ int4.h5 left.h5)" 'no of some'
py spoil fp8 left2 inputs null '{"strategy": "group", "group_size": 128}'
model-import -q left2 -o left2.h5 2>said
is 'inputs with scales of groups: a warning' \
	"$(grep -c "inputs of 8 bits with scales by 'group' are not supported" said)" 1
ok '... and the codes are imported' py 'h5py.File("left2.h5")["model/layers/0/mlp/up_proj/codes"]'
py spoil w8a8s left3 asymmetric
model-import -q left3 -o left3.h5 2>said
is 'static inputs with zero points: a warning' \
	"$(grep -c "inputs of 8 bits with scales by 'tensor' are not supported" said)" 1
is '... and the codes are imported' "$(differ w8a8s.h5 left3.h5)" 'no of some'
ok 'changed bytes' py fuzz mixed

# back NAME OPTION...: exported and imported again, no value differs
back() {
	name=$1; shift
	dpq-run -q --compensate none "$@" -o "$name.h5"
	rm -rf back
	model-export -q --to compressed-tensors -o back "$name.h5" && quiet model-import back -o back.h5
	is "$name exported and imported: no value differs" "$(differ "$name.h5" back.h5)" 'no of some'
	model-export -q --to compressed-tensors -o again back.h5
	ok '... and the second export is the same folder' diff -r back again
	rm -rf again
}
for f in int3 int4 int8 uint3 uint4; do back $f-4 --storage $f -g 4 llama-gqa.h5; done
for d in f16 bf16 e8m0 e4m3fn; do back $d --storage int4 -g 4 --scale-dtype $d llama-gqa.h5; done
back head --storage int4 -g 4 --layers '/*/layers/*' --layers /lm_head llama-gqa.h5
back fp8-channel --storage e4m3fn -g channel llama-gqa.h5
back w8a8-token --storage int8 -g channel --act-format int8 --act-mode dynamic-token llama-gqa.h5
back nvfp4-16 --storage nvfp4 -g 16 --layers '!*/down_proj' llama-gqa.h5
back mxfp4-32 --storage mxfp4 -g 32 --layers '!*/down_proj' llama-gqa.h5
for m in phi3-window neox-parallel; do
	back $m-int4 --storage int4 -g 4 $m.h5
	back $m-fp8 --storage e4m3fn -g tensor $m.h5
done
py plain "$ref/vision/llava-clip.h5" llava-clip.h5
back llava-int4 --storage int4 -g 2 --layers '!*embed*' llava-clip.h5
model-export -q --to compressed-tensors -o whole uint4.h5
model-export -q --to compressed-tensors --file-size 4K -o shards2 uint4.h5
ok 'shards give the same bytes' sh -c 'model-import -q whole -o whole.h5 2>said && model-import -q shards2 \
	-o shards2.h5 2>said && cmp whole.h5 shards2.h5'

# With the basis of the original, its Hessians evaluate and repair models quantized by other packages.
model-import -q plain -o base.h5 2>said
judged() { tensor-diff -q -r base.h5 --hessian hessian.h5 "$1" 2>/dev/null | cut -f1,3-; }
sample-tokens -q --length 256 --ctx 16 base.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 16 base.h5 -o hessian.h5
dpq-run -q --compensate none --storage int4 -g 4 base.h5 -o int4.h5
model-export -q --to compressed-tensors -o theirs int4.h5
ok 'an imported model has a new basis' sh -c 'model-import -q theirs -o own.h5 2>/dev/null &&
	! tensor-diff -q -r base.h5 --hessian hessian.h5 own.h5 >/dev/null 2>&1'
ok '--basis with a checkpoint of codes' quiet model-import -q --basis base.h5 --report far.tsv theirs -o theirs.h5
is '... reports the distance of each layer' "$(awk -F'\t' '$2 > 0 && $2 < .5' far.tsv | grep -c _proj)" 14
is '... its output error is that of the exported model' \
	"$(judged theirs.h5)" "$(judged int4.h5)"
ok '... a branch repairs it' fbq-run -q --method lowrank --rank 4 --reference base.h5 --hessian hessian.h5 \
	theirs.h5 -o repaired.h5
no 'a checkpoint of other weights' 1 'its relative difference from that of base.h5 is .* expected less than 0.5' \
	model-import -q --basis base.h5 int4 -o no.h5
done_testing
