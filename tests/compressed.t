#!/bin/sh
# compressed.t -- folders of `model-export --to compressed-tensors`: codes, zero points, scales and configuration
# They are compared with a reader in numpy, written from the description of the format. `make check-doors` tests them
# with compressed-tensors and transformers.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! has_h5py; then
	skip 'model-export --to compressed-tensors' 'no h5py'
	done_testing
fi
ref=$top/tests/ref
for m in llama-gqa phi3-window neox-parallel gpt2 opt; do py plain "$ref/$m.h5" $m.h5; done
sample-tokens -q --length 64 --ctx 16 llama-gqa.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 16 llama-gqa.h5 -o hessian.h5
codes() { dpq-run -q --compensate none "$@"; }
ct() { model-export --to compressed-tensors "$@"; }
# same NAME KINDS OPTION...: the folder has the codes of dpq-run OPTION... bit for bit, under this scheme
same() {
	name=$1 kinds=$2; shift 2
	codes "$@" -o "$name.h5" && ct -o "$name" "$name.h5"
	is "$name: the scheme" "$(py kinds "$name")" "$kinds"
	ok "$name: codes and parameters bit for bit" py packed "$name.h5" "$name"
}

# Weights without activation formats.
for b in 2 3 4 5 6 7 8; do
	same int$b "pack-quantized $b symmetric group 4 None" --storage int$b -g 4 llama-gqa.h5
	same uint$b "pack-quantized $b asymmetric group 4 None" --storage uint$b -g 4 llama-gqa.h5
done
same channel 'pack-quantized 4 symmetric channel None None' --storage int4 -g channel llama-gqa.h5
same uchannel 'pack-quantized 4 asymmetric channel None None' --storage uint4 -g channel llama-gqa.h5
same wide 'pack-quantized 4 symmetric channel None None' --storage int4 -g 64 llama-gqa.h5
same tensor 'pack-quantized 4 symmetric channel None None' --storage int4 -g tensor llama-gqa.h5
same fp8 'float-quantized 8 symmetric channel None None' --storage e4m3fn -g channel llama-gqa.h5
same fp8t 'float-quantized 8 symmetric tensor None None' --storage e4m3fn -g tensor llama-gqa.h5
but='--layers !*/down_proj'
mxfp4='mxfp4-pack-quantized 4 symmetric group 32 None'
nvfp4='nvfp4-pack-quantized 4 symmetric tensor_group 16 None'
# shellcheck disable=SC2086
{
same mxfp4 "$mxfp4" --storage mxfp4 -g 32 $but llama-gqa.h5
same nvfp4 "$nvfp4" --storage nvfp4 -g 16 $but llama-gqa.h5
same twice "$nvfp4" --storage nvfp4 -g 32 $but llama-gqa.h5
}
same head 'pack-quantized 4 symmetric group 4 None' --storage int4 -g 4 \
	--layers '/*/layers/*' --layers /lm_head llama-gqa.h5
ok '... the head is quantized too' py packs head lm_head
for d in f16 bf16 e8m0 e4m3fn; do
	same $d "pack-quantized 4 symmetric group 4 None" --storage int4 -g 4 --scale-dtype $d llama-gqa.h5
done
same bytes-e4m3fn 'float-quantized 8 symmetric channel None None' --storage e4m3fn -g channel --scale-dtype e4m3fn \
	llama-gqa.h5
exmy-pack -q uint3.h5 -o packed.h5
ct -q -o packed packed.h5
ok 'packed codes give the same bytes' diff -r uint3 packed

ct -q --file-size 4K -o shards uint4.h5
ok 'shards with an index' py packed uint4.h5 shards
ok '... more than one shard' test -e shards/model-00002-of-*.safetensors

# Weights with activation formats.
# shellcheck disable=SC2086
{
h='--hessian hessian.h5'
int8='--act-format int8 --act-mode'
fp8='--act-format e4m3fn --act-mode'
same w8a8 'int-quantized 8 symmetric channel None int token' --storage int8 -g channel $int8 dynamic-token llama-gqa.h5
same w8a8t 'int-quantized 8 symmetric tensor None int tensor' \
	--storage int8 -g tensor $int8 static-tensor $h llama-gqa.h5
same w4a8 'int-quantized 4 symmetric group 4 int token' --storage int4 -g 4 $int8 dynamic-token llama-gqa.h5
same w4afp8 'pack-quantized 4 symmetric group 4 float token' --storage int4 -g 4 $fp8 dynamic-token llama-gqa.h5
same u4afp8 'pack-quantized 4 asymmetric channel None float token' \
	--storage uint4 -g channel $fp8 dynamic-token llama-gqa.h5
model-import -q w4afp8 -o w4afp8-again.h5 2>/dev/null && ct -q -o w4afp8-twice w4afp8-again.h5
ok 'integers with FP8 activations, imported and exported again: the same bytes' diff -r w4afp8 w4afp8-twice
same fp8d 'float-quantized 8 symmetric channel None float token' \
	--storage e4m3fn -g channel $fp8 dynamic-token llama-gqa.h5
same fp8s 'float-quantized 8 symmetric tensor None float tensor' \
	--storage e4m3fn -g tensor $fp8 static-tensor $h llama-gqa.h5
same dpq 'float-quantized 8 symmetric tensor None float tensor' \
	--storage uint4 -g 4 --compute e4m3fn $h llama-gqa.h5
same dpqc 'float-quantized 8 symmetric channel None float token' \
	--storage int4 -g 4 --compute e4m3fn --scale8 channel --act-mode dynamic-token llama-gqa.h5
same recipe 'float-quantized 8 symmetric tensor None None' --storage uint4 -g 4 --compute e4m3fn --act-mode none \
	--recipe paper --saturate 240 llama-gqa.h5
}
codes --storage int4 -g 4 neox-parallel.h5 -o neox.h5 && ct -q -o neox neox.h5
ct -q --weights-only -o alone w8a8.h5
is '--weights-only leaves out the activation format' "$(py kinds alone)" 'pack-quantized 8 symmetric channel None None'

is 'the head is ignored under both its names' "$(py ignored neox)" 'embed_out lm_head'

# Several schemes.
printf '%s\n' '*/down_proj storage=uint8 group=channel' '*/q_proj keep' '*/o_proj storage=e4m3fn group=channel' >plan
same mixed 'pack-quantized 8 asymmetric channel None None
pack-quantized 4 symmetric group 8 None
float-quantized 8 symmetric channel None None' --plan plan --storage int4 -g 8 llama-gqa.h5
printf '%s\n' '*/q_proj keep' >plan
codes --plan plan --storage int4 -g 4 llama-gqa.h5 -o fuse.h5
warns 'layers that vLLM fuses have different schemes' \
	'fuses .*k_proj and .*q_proj into one layer, .* different schemes, or one is plain: .* \(2 such pairs\)' \
	ct -o fuse fuse.h5
py plain "$ref/mixtral.h5" mixtral.h5
printf '%s\n' '/model/layers/0/block_sparse_moe/experts/2/w2 storage=int8' >plan
codes --plan plan --storage int4 -g 4 --layers '!*/gate' mixtral.h5 -o experts.h5
warns 'experts of a block have different schemes' \
	'vLLM fuses .*experts.0.w1 and .*experts.2.w2 into one layer, but they have .* schemes.* \(1 such pairs\)' \
	ct -o experts experts.h5
codes --storage int4 -g 4 --layers '!*/gate' mixtral.h5 -o experts.h5
ok '... or the same scheme: no warning' \
	sh -c 'model-export --to compressed-tensors -o experts-int4 experts.h5 2>err && ! grep vLLM err'
rm -rf nvfp4
warns '... or different divisors' 'vLLM fuses .*gate_proj and .*up_proj into one layer, but .* different divisors' \
	ct -o nvfp4 nvfp4.h5
py middle uint4.h5 middle.h5
ct -q -o middle middle.h5
is 'zero points in the middle of the codes are signed integers' "$(py kinds middle)" \
	'pack-quantized 4 symmetric group 4 None'
ok '... with all 2^b codes' py packed middle.h5 middle

# Tensors of several layers.
for m in phi3-window neox-parallel; do
	for f in 'int4 -g 4' 'uint4 -g 4' 'int4 -g tensor' 'e4m3fn -g tensor'; do
		# shellcheck disable=SC2086
		codes --storage $f $m.h5 -o fused.h5
		rm -rf fused plain
		ct -q -o fused fused.h5 && model-export -q -o plain fused.h5
		ok "$m, $f: layers that are rows of one tensor" py dequantized fused plain
	done
done
# Vision-language models: patterns fit the names in checkpoints.
for m in llava-clip qwen2-vl qwen2.5-vl idefics3; do
	py plain "$ref/vision/$m.h5" $m.h5
	for l in '!*embed*' '/model/layers/*'; do
		codes --storage int4 -g 2 --layers "$l" $m.h5 -o sees.h5
		rm -rf sees plain
		ct -q -o sees sees.h5 && model-export -q -o plain sees.h5
		ok "$m: $l" py dequantized sees plain
	done
done
codes --storage int4 -g 4 --layers '*/q_proj' phi3-window.h5 -o parts.h5
no 'layers of one tensor with different formats' 1 \
	'k_proj: is one tensor of the checkpoint with .*q_proj, but of another format' \
	ct -o no parts.h5

# Dtypes.
codes --storage uint4 -g 4 --scale-dtype bf16 llama-gqa.h5 -o fit.h5
ct -q --dtype bf16 -o fit fit.h5
ok 'scales that fit the dtype' py packed fit.h5 fit
no 'scales that do not fit the dtype' 1 \
	'down_proj: the scale .* of row 0, group 0, is not a number of f16; .*--scale-dtype f16' \
	ct --dtype f16 -o no uint4.h5
warns '... are rounded with --allow-rounding' 'rounding changed weights, most model.layers.[01].*_proj: by 0.00' \
	ct --dtype bf16 --allow-rounding --report report.tsv -o rounded uint4.h5
ok '... and the report has the changes' py changed uint4.h5 rounded report.tsv
ok 'scales of 8-bit schemes are floats for any dtype' ct -q --dtype bf16 -o w8 w8a8.h5
ok '... bit for bit' py packed w8a8.h5 w8
no '--skip-compute without --allow-rounding' 2 'skip-compute .*requires --allow-rounding' \
	ct --skip-compute -o no dpq.h5
warns '... with --allow-rounding' 'rounding changed weights' \
	ct --skip-compute --weights-only --allow-rounding --report report.tsv -o w4a16 dpq.h5
ct -q --unify-scales -o unified w8a8t.h5
is '--unify-scales: one scale for a tensor becomes one for each channel' "$(py kinds unified)" \
	'int-quantized 8 symmetric channel None int tensor'
ok '... bit for bit' py packed w8a8t.h5 unified
ct -q --unify-scales -o unified8 dpq.h5
is '... also of FP8' "$(py kinds unified8)" 'float-quantized 8 symmetric channel None float tensor'
ok '... bit for bit' py packed dpq.h5 unified8
is '--skip-compute writes the codes' "$(py kinds w4a16)" 'pack-quantized 4 asymmetric group 4 None'
ok '... and the report has the changes' py changed dpq.h5 w4a16 report.tsv

for s in 1e-9 1e6; do
	py scale $s int4.h5 scale.h5
	no "a later scale of $s does not fit f16, even rounded" 1 \
		'down_proj: the scale .* of row 1, group 0, would be (0|inf) in f16; .*makes scales that fit$' \
		ct --dtype f16 --allow-rounding -o no scale.h5
done
codes --storage e4m3fn -g channel --compute e4m3fn --act-mode none llama-gqa.h5 -o fp8fp8.h5
warns 'FP8 codes without their compute format' 'rounding changed weights' \
	ct --skip-compute --allow-rounding --report report.tsv -o fp8w fp8fp8.h5
ok '... and the report has the changes' py changed fp8fp8.h5 fp8w report.tsv
for f in 'mxfp4 -g 32' 'nvfp4 -g 16'; do
	# shellcheck disable=SC2086
	codes --storage $f --compute e4m3fn --act-mode none $but llama-gqa.h5 -o fp4.h5
	no "$f has no room for second scales" 1 \
		'is ..fp4 with the compute format e4m3fn, .*expected no --skip-compute' \
		ct --skip-compute --allow-rounding -o no fp4.h5
done

# Layers that no scheme has.
refused() {
	what=$1 why=$2; shift 2
	codes "$@" -o refused.h5
	no "$what" 1 "/model/layers/0/.*: $why" ct -o no refused.h5
}
refused 'a float of 5 bits' 'is e2m2, which no scheme has; expected .*' --storage e2m2 -g 4 llama-gqa.h5
refused 'integers of one bit' 'is uint1, which no scheme has: integers have 2 to 8 bits' \
	--storage uint1 -g 4 llama-gqa.h5
refused 'nf4' 'is nf4, which no scheme has' --storage nf4 -g 4 llama-gqa.h5
refused 'another compute format' 'is rounded to e5m2ieee, which no scheme has' \
	--storage int4 -g 4 --compute e5m2ieee --act-mode none llama-gqa.h5
# shellcheck disable=SC2086
{
refused 'int4 with static activation scales' \
	'is int4 with inputs of int8 and one scale: no scheme has both; expected int8' \
	--storage int4 -g 4 $int8 static-tensor $h llama-gqa.h5
refused 'int8 in groups with rounded activations' 'is int8 in groups of 4 with rounded inputs' \
	--storage int8 -g 4 $int8 dynamic-token llama-gqa.h5
refused 'zero points with rounded activations' 'has zero points and rounded inputs: no scheme has both, expected int8' \
	--storage uint8 -g channel $int8 dynamic-token llama-gqa.h5
refused 'activations in another format' \
	'rounds its inputs to e5m2ieee; with int8 weights this target writes inputs of int8, or e4m3fn with' \
	--storage int8 -g channel --act-format e5m2ieee --act-mode dynamic-token llama-gqa.h5
refused 'integers with FP8 activations and one scale for them' \
	'is int4 and rounds its inputs to e4m3fn with one scale; .* such inputs with one scale per token' \
	--storage int4 -g 4 $fp8 static-tensor $h llama-gqa.h5
refused 'clipped activation scales' 'rounds its inputs with a clipped scale' \
	--storage int8 -g channel $int8 dynamic-token --act-clip 0.5 llama-gqa.h5
refused 'mxfp4 with rounded activations' 'is mxfp4 and rounds its inputs' \
	--storage mxfp4 -g 32 $but $fp8 dynamic-token llama-gqa.h5
}
refused 'FP8 in groups' 'is e4m3fn in groups of 4: no scheme has both' --storage e4m3fn -g 4 llama-gqa.h5
refused 'groups that do not divide the columns' 'has 44 columns, not a multiple of its group of 32' \
	--storage int4 -g 32 llama-gqa.h5
refused 'mxfp4 with columns that are not a multiple of 32' 'has 44 columns in groups of 32, expected multiples of 32' \
	--storage mxfp4 -g 32 llama-gqa.h5
no 'Conv1D' 1 'is transposed in a checkpoint of its class \(Conv1D\)' sh -c \
	'dpq-run -q --compensate none --storage int4 -g 4 gpt2.h5 | model-export --to compressed-tensors -o no'
codes --storage int4 -g 4 --layers '*/embed_tokens' llama-gqa.h5 -o embedding.h5
no 'an embedding' 1 '/model/embed_tokens: is an embedding, for which' ct -o no embedding.h5
no 'an unquantized model' 1 'has no quantized layer; --to hf writes plain ones' ct -o no llama-gqa.h5
for m in order hadamard signs split; do
	py $m int4.h5 $m.h5
	no "$m" 1 '/model/layers/0/mlp/down_proj: (has .* merges it into|its groups are not n)' ct -o no $m.h5
done
fbq-run -q --storage int4 -g 4 --rank 2 --steps 1 $h llama-gqa.h5 -o branch.h5
no 'a low-rank branch' 1 'has a low-rank branch, which --to compressed-tensors does not write; --adapter' \
	ct -o no branch.h5
ct -q --adapter adapter -o beside branch.h5
ok '... is written as an adapter' py adapter branch.h5 adapter
ok '... next to the codes' py packed branch.h5 beside
ct -q --dtype bf16 --allow-rounding --adapter half -o beside-half branch.h5 2>half.err
ok '... in the dtype of --dtype' py adapter branch.h5 half BF16
# shellcheck disable=SC2086
fbq-run -q --storage int4 -g 4 --rank 2 --steps 1 --layers '*/up_proj' $h llama-gqa.h5 2>/dev/null |
	fbq-run -q --storage int4 -g 4 --rank 3 --steps 1 --layers '*/down_proj' $h -o ranks.h5 2>/dev/null
ct -q --adapter ranks -o beside-ranks ranks.h5
ok '... of several ranks' py adapter ranks.h5 ranks
sample-tokens -q --length 64 --ctx 16 phi3-window.h5 -o t.h5
hessian-accum -q --tokens t.h5 --ctx 16 phi3-window.h5 -o hp.h5
fbq-run -q --storage int4 -g 4 --rank 2 --steps 1 --hessian hp.h5 phi3-window.h5 -o fused.h5
model-export -q --adapter fused-a -o fused-w fused.h5 && model-export -q -o fused-p fused.h5
ok '... of several layers of one tensor' py joined fused-w fused-a fused-p
py dense branch.h5 dense-branch.h5
no '... is not written if the rest of the export fails' 1 'has no quantized layer' \
	ct --adapter no-a -o no dense-branch.h5
ok '... nor is its folder' test ! -e no-a
mkdir at
no 'an adapter in the folder of the model' 2 '--adapter and -o are the same folder' \
	ct --adapter ./at/../no/ -o no branch.h5
no '... also of GGUF' 2 '--adapter and -o are the same folder' model-export --to gguf --adapter no -o no branch.h5
no 'an adapter folder that exists' 1 'half: exists already' ct --adapter half -o no branch.h5
no '--adapter without a branch' 1 '--adapter: no layer has a low-rank branch' ct --adapter no-a -o no int4.h5
py hadamard branch.h5 turned.h5
no 'a branch after a Hadamard matrix' 1 'down_proj: its branch is between rotations' ct --adapter no-a -o no turned.h5
no 'an adapter of a vision-language model' 1 'modules of a .* have other names' \
	model-export --adapter no-a -o no llava-clip.h5
codes --storage int4 -g 4 --kv-format int8 llama-gqa.h5 -o keys.h5
no 'rounded keys and values' 1 'rounds keys and values to int8' ct -o no keys.h5
ok 'failed exports leave no files' sh -c 'test ! -e no && test ! -e no-a && test -z "$(ls -d .ptq.* 2>/dev/null)"'
done_testing
