#!/bin/sh
# gptq.t -- folders of `model-export --to gptq`, and import of folders of GPTQ and AWQ
# A reader and a writer in numpy follow the description of the format: codes, zero points, scales, groups and
# configuration. `make check-doors` tests what GPTQModel reads and writes.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! has_h5py; then
	skip 'GPTQ and AWQ' 'no h5py'
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
# same NAME CONFIGURATION OPTION...: the folder has the codes of dpq-run OPTION... bit for bit
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
for d in bf16 e8m0 e4m3fn; do
	# the divisor of e4m3fn scales is a power of two: quotients are numbers of f16
	dpq-run -q --compensate none --scale-dtype $d --storage int4 -g 16 --layers "$blocks" llama.h5 -o $d.h5
	py divisor $d.h5
	gptq -q -o $d $d.h5
	ok "$d: scales divided, bit for bit" py packed $d.h5 $d
done
same wide 'gptq 4 -1 symmetric neighbours' --storage int4 -g 64 --layers "$blocks" llama.h5
same whole 'gptq 4 32 symmetric neighbours' --storage int4 -g 32 --layers "$blocks" llama.h5
same head 'gptq 4 16 symmetric neighbours' --storage int4 -g 16 llama.h5
gptq_of() { codes --compensate both --compute none --hessian hessian.h5 --storage uint4 -g 16 "$@"; }
gptq_of --reorder full llama.h5 -o order.h5 && gptq -q -o order order.h5
is 'full order: the groups of reordered columns are stored' "$(py says order)" 'gptq_v2 4 16 asymmetric reordered'
ok '... bit for bit' py packed order.h5 order
gptq_of --reorder gar llama.h5 -o gar.h5 && gptq -q -o gar gar.h5
is 'gar: the groups are neighbouring columns' "$(py says gar)" 'gptq_v2 4 16 asymmetric neighbours'
ok '... bit for bit' py packed gar.h5 gar
exmy-pack -q uint3.h5 -o packed.h5
gptq -q -o packed packed.h5
ok 'packed codes give the same bytes' diff -r uint3 packed
py middle uint4.h5 middle.h5 && gptq -q -o middle middle.h5
is 'zero points in the middle of the codes are symmetric' "$(py says middle)" 'gptq 4 16 symmetric neighbours'
ok '... with all 2^b codes' py packed middle.h5 middle
py middle uint4.h5 but.h5 1/mlp/down_proj && gptq -q -o but but.h5
is '... but not if the last layer has others' "$(py says but)" 'gptq_v2 4 16 asymmetric neighbours'
ok '... bit for bit' py packed but.h5 but
gptq -q --file-size 4K -o shards uint4.h5
ok 'shards with an index' py packed uint4.h5 shards
gptq -q --dtype bf16 -o half uint4.h5 && codes --storage uint4 -g 16 --layers "$blocks" llama.h5 |
	model-export -q -o half-plain
is 'scales are f16 for any dtype' "$(py says half)" 'gptq_v2 4 16 asymmetric neighbours'

# Tensors of several layers, and routers, which stay unquantized.
for m in phi3-window neox-parallel; do
	codes --storage uint8 -g 4 --layers "$blocks" $m.h5 -o fused.h5
	rm -rf fused plain
	gptq -q -o fused fused.h5 && model-export -q -o plain fused.h5
	ok "$m: layers that are rows of one tensor" py dequantized fused plain
done
same experts 'gptq 8 4 symmetric neighbours' --storage int8 -g 4 --layers "$blocks" --layers '!*/gate' mixtral.h5
codes --storage int8 -g 2 --layers '/model/layers/*' llava.h5 -o sees.h5
gptq -q -o sees sees.h5 && model-export -q -o sees-plain sees.h5
ok 'the language model of a vision-language model' py dequantized sees sees-plain

# Scales that f16 cannot store.
dpq-run -q --compensate none --storage int4 -g 16 --layers "$blocks" llama.h5 -o f32.h5
no 'scales that f16 rounds' 1 \
	'_proj: the scale .* of row 0, group 0, is not a number of f16; --to compressed-tensors .*--scale-dtype f16' \
	gptq -o no f32.h5
warns '... are rounded with --allow-rounding' 'rounding changed weights, most model.layers.[01].*_proj: by 0.000' \
	gptq --allow-rounding --report report.tsv -o rounded f32.h5
ok '... and the report has the changes' py changed f32.h5 rounded report.tsv
py scale 1e6 f32.h5 scale.h5
no '... but not beyond the largest number of f16' 1 \
	'down_proj: the scale 1000000 of row 1, group 0, would be inf in f16' \
	gptq --allow-rounding -o no scale.h5
dpq-run -q --compensate none --storage uint4 -g 16 --compute e4m3fn --act-mode none --layers "$blocks" llama.h5 \
	-o dpq.h5
no 'a compute format' 1 '_proj: is rounded to e4m3fn, .*--to compressed-tensors writes it, --skip-compute' \
	gptq -o no dpq.h5
warns '... is left out with --skip-compute --allow-rounding' 'rounding changed weights' \
	gptq --skip-compute --allow-rounding --report report.tsv -o w4a16 dpq.h5
ok '... and the report has the changes' py changed dpq.h5 w4a16 report.tsv

for format in e4m3ieee int8; do
	dpq-run -q --compensate none --storage uint4 -g 16 --compute $format --act-mode none --layers "$blocks" \
		llama.h5 -o for-$format.h5
	said=$(gptq -o no for-$format.h5 2>&1)
	target=${said#*--to } target=${target%% *}
	ok "$format: the target that is named, $target, writes it" \
		model-export -q --to "$target" -o "for-$format" for-$format.h5
done

# Models that GPTQ cannot store.
refused() {
	what=$1 why=$2; shift 2
	codes "$@" -o refused.h5
	no "$what" 1 "/.*: $why" gptq -o no refused.h5
}
refused 'a float of 5 bits' 'is e2m2, which GPTQ cannot express: it has int and uint of 2, 3, 4 and 8 bits' \
	--storage e2m2 -g 16 --layers "$blocks" llama.h5
echo '*/up_proj storage=iq4_nl compensate=none' >block.plan
echo '*/up_proj storage=e8p group=channel layer-rotation=none' >e8p.plan
refused 'blocks of llama.cpp' 'is iq4_nl, .*; --to gguf holds it' --storage int4 -g 16 --plan block.plan llama.h5
refused 'codes of several weights' 'is e8p, .*; --to hf holds it' --storage int4 -g 16 --plan e8p.plan llama.h5
refused '5 bits' 'is int5, .*; --to compressed-tensors holds it' --storage int5 -g 16 --layers "$blocks" llama.h5
refused 'rounded activations' 'rounds its inputs, which --to gptq does not write; --weights-only' \
	--storage int8 -g channel --act-format int8 --act-mode dynamic-token --layers "$blocks" llama.h5
gptq -q --weights-only -o alone refused.h5
is '... are left out with --weights-only' "$(py says alone)" 'gptq 8 -1 symmetric neighbours'
refused 'an unquantized layer' 'is not quantized, but --to gptq needs all layers of blocks quantized; dpq-run' \
	--storage int4 -g 16 --layers "$blocks" --layers '!*/up_proj' llama.h5
printf '%s\n' '*/down_proj storage=int8' >bits
refused 'two widths' 'is int4, but /model/layers/0/mlp/down_proj has 8 bits: this target writes one width for all' \
	--plan bits --storage int4 -g 16 --layers "$blocks" llama.h5
printf '%s\n' '*/q_proj group=channel' >sizes
refused 'two sizes of groups' 'has groups of 32 columns, unlike .*_proj: this target writes one size' \
	--plan sizes --storage int4 -g 16 --layers "$blocks" llama.h5
refused 'groups that do not divide the columns' 'has (32|64) columns, not a multiple of its group of 24' \
	--storage uint4 -g 24 --layers "$blocks" llama.h5
refused 'words that are not filled' 'has 24 rows and 44 columns: .* codes of 4 bits does not fill words of 32 bits' \
	--storage int4 -g 4 --layers '*/down_proj' phi3-window.h5
refused 'Conv1D' 'is transposed in a checkpoint of its class' --storage int8 -g 4 gpt2.h5
refused 'an embedding' 'is an embedding, for which' --storage int4 -g 16 --layers '*/embed_tokens' llama.h5
refused 'a vision encoder' '(is quantized, but --to gptq has no codes|is a convolution)' --storage int8 -g 2 llava.h5
printf '%s\n' '*/gate storage=int8' >router
refused 'a router' 'is quantized, but --to gptq has no codes for this layer' \
	--plan router --storage int8 -g 4 --layers '/*/layers/*' mixtral.h5
no 'an unquantized model' 1 '(has no quantized layer|is not quantized)' gptq -o no llama.h5
py groups int4.h5 uneven.h5 uneven
no 'groups of several sizes' 1 'down_proj: its group 1 has 48 columns \(group_index\), --to gptq needs 16 in each' \
	gptq -o no uneven.h5
codes --storage uint8 -g 4 --layers "$blocks" phi3-window.h5 -o fused.h5
py groups fused.h5 orders.h5 orders
no 'layers of one tensor in two orders' 1 'k_proj: is one tensor of .* with .*q_proj, but has other groups' \
	gptq -o no orders.h5
ok 'failed exports leave no files' sh -c 'test ! -e no && test -z "$(ls -d .ptq.* 2>/dev/null)"'

# Import: codes and parameters bit for bit.
model-export -q -o source llama.h5
# quiet COMMAND...: its only message is that a model has no tokenizer
quiet() { "$@" 2>said && ! grep -v 'has no tokenizer' said; }
for s in v1-2 v1-3 v1-4 v1-8 v2-2 v2-3 v2-4 v2-8 sym symv2 channel ragged order old awq awqsym awqrow; do
	py make source in-$s $s
	ok "$s: imports" quiet model-import in-$s -o in-$s.h5
	ok "$s: codes and parameters bit for bit" py holds in-$s in-$s.h5
done
# Old folders of AutoGPTQ.
py beside in-old in-beside
ok 'quantize_config.json alone: imports' quiet model-import in-beside -o in-beside.h5
ok '... the same codes and parameters' py holds in-beside in-beside.h5
sed -i 's/"bits": 4/"bits": 5/' in-beside/quantize_config.json
no '... with wrong bits' 1 'in-beside/quantize_config.json: bits is 5, expected 2, 3, 4 or 8' \
	model-import -q in-beside -o no.h5
echo '[' >in-beside/quantize_config.json
no '... that is not JSON' 1 'in-beside/quantize_config.json: line 2: ' model-import -q in-beside -o no.h5
echo '[]' >in-beside/quantize_config.json
no '... that is not an object' 1 'in-beside/quantize_config.json: line 1: expected an object' \
	model-import -q in-beside -o no.h5
rm in-beside/quantize_config.json
no 'codes without a configuration' 1 \
	'_proj.qweight: config.json has no quantization_config, and in-beside/quantize_config.json does not exist' \
	model-import -q in-beside -o no.h5
gptq -q -o again in-sym.h5
is 'symmetric codes are symmetric again' "$(py says again)" 'gptq 4 16 symmetric neighbours'

# Export, import and export: no value differs, and both folders are the same.
back() {
	rm -rf back again
	gptq -q --dtype f16 -o back "$2" && quiet model-import back -o back.h5
	is "$1 exported and imported: no value differs" "$(tensor-diff -q -r "$2" back.h5 2>/dev/null | awk -F'\t' '
		NR > 1 && $3 != 0 && $3 != "-" && $1 ~ /_proj$|head$/ { bad = 1 }
		END { print (bad ? "yes" : "no") " of " (NR > 1 ? "some" : "none") }')" 'no of some'
	gptq -q --dtype f16 -o again back.h5
	ok '... exported again: the same folder' diff -r back again
}
for f in int2 uint3 int4 uint4 int8 uchannel order head middle experts; do back $f $f.h5; done
for m in phi3-window neox-parallel; do
	codes --storage uint8 -g 4 --layers "$blocks" $m.h5 -o fused.h5
	back $m fused.h5
done

# Bad input: the message names it, and no file is left.
# wrong NAME WHY FOLDER CHANGE ARGUMENT...: the folder with this change is refused
wrong() {
	name=$1 why=$2; shift 2
	rm -rf spoilt; py spoil "$1" spoilt "$2" "${3:-}" "${4:-null}"
	no "$name" 1 "$why" model-import -q spoilt -o no.h5
}
up='spoilt/model.safetensors: model.layers.0.mlp.up_proj'
wrong 'no zero points' 'up_proj.qzeros: is missing, .* needs it' in-v2-4 gone qzeros
wrong 'no scales' 'up_proj.scales: is missing' in-v1-4 gone scales
wrong 'no groups of reordered columns' 'up_proj.g_idx: is missing' in-order gone g_idx
wrong 'a plain weight next to codes' "$up.weight: is not expected" in-v1-4 extra weight 1
wrong 'codes of another shape' 'up_proj.weight: its shape is not the .64, 32. of config.json' in-v1-4 shorter qweight
wrong 'zero points of another shape' "$up.qzeros: its shape is .2, 7., expected .2, 8." in-v1-4 shorter qzeros
wrong 'scales of another shape' "$up.scales: its shape is .2, 63., expected .2, 64." in-v1-4 shorter scales
wrong 'codes of AWQ of another shape' 'its shape is' in-awq shorter qweight
wrong 'words that codes do not fill' 'proj.qweight: its shape is .*, expected words filled by codes of 3 bits' \
	in-v1-4 config bits 3
wrong 'a group beyond the last' "$up.g_idx: column 0 is in group 2 of 2" in-order first g_idx 2
wrong 'a group below the first' "$up.g_idx: column 0 is in group -1 of 2" in-v1-4 first g_idx -1
wrong 'reordered groups where desc_act is false' \
	"down_proj.g_idx: column .* in group .*, expected .* where 'desc_act' is false" in-order config desc_act false
wrong 'a scale of 0' "$up.weight: its scale holds 0, expected positive scales" in-v1-4 first scales 0
wrong 'a scale that is NaN' "$up.weight: its scale holds -?nan, expected positive" in-awq first scales NaN
wrong 'v2 labelled v1' "qzeros: the zero point of row .* is 16, beyond codes of 4 bits; .*'gptq_v2' would fit" \
	in-v2-4 config checkpoint_format '"gptq"'
wrong 'v2 labelled v1, symmetric' "is 9, expected 8 of symmetric codes; checkpoint_format 'gptq_v2' would fit" \
	in-symv2 config checkpoint_format '"gptq"'
wrong 'v1 labelled v2, symmetric' "is 7, expected 8 of symmetric codes; checkpoint_format 'gptq' would fit" \
	in-sym config checkpoint_format '"gptq_v2"'
wrong 'zero points where sym is true' "expected 8 of symmetric codes; 'sym': false would fit" in-v1-4 config sym true
wrong 'zero points where zero_point is false' "expected 8 of symmetric codes; 'zero_point': true would fit" \
	in-awq config zero_point false
wrong '5 bits' 'bits is 5, expected 2, 3, 4 or 8' in-v1-4 config bits 5
wrong 'bits that are a text' 'bits: expected a whole number' in-v1-4 config bits '"4"'
wrong '8 bits of AWQ' 'bits is 8, expected 4' in-awq config bits 8
wrong 'a group of 0' 'group_size is 0, expected -1 or a number of columns' in-v1-4 config group_size 0
wrong 'sym that is a number' 'sym: expected true or false' in-v1-4 config sym 1
wrong 'an unknown format' "checkpoint_format is 'marlin', expected 'gptq' or 'gptq_v2'" \
	in-v1-4 config checkpoint_format '"marlin"'
wrong 'Marlin' 'is_marlin_format is true' in-v1-4 config is_marlin_format true
wrong 'words of 16 bits' "pack_dtype is 'int16', expected 'int32'" in-v1-4 config pack_dtype '"int16"'
wrong 'settings for single layers' "dynamic: '.:.*up': settings for single layers" \
	in-v1-4 config dynamic '{"-:.*down": {}, "+:.*up": {"bits": 8}}'
wrong 'another version of AWQ' "version is 'gemv', expected 'gemm'" in-awq config version '"gemv"'
ok 'failed imports leave no files' sh -c 'test ! -e no.h5 && test -z "$(ls .no.h5* 2>/dev/null)"'
done_testing
