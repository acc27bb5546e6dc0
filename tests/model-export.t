#!/bin/sh
# model-export.t -- exported folders, compared with a reader of safetensors in numpy and with the imported model
#
# `make check-doors` tests that transformers loads them.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if ! has_h5py; then
	skip 'model-export' 'no h5py'
	done_testing
fi

# Every architecture: the tensors of its class, bit for bit, and the same model after another import.
for f in "$top"/tests/ref/*.h5 "$top"/tests/ref/vision/*.h5; do
	m=$(basename "$f" .h5)
	case $m in checkpoints | conventions | fp4 | hessians | texts) continue ;; esac
	py plain "$f" "$m.h5"
	ok "$m: is exported" sh -c "model-export -o $m $m.h5 2>$m.err && test ! -s $m.err"
	ok "$m: has the tensors of its class" py exported "$m.h5" "$m"
	model-import -q "$m" -o "$m-again.h5" 2>again.err
	ok "$m: imported again, the same model" py same_model "$m.h5" "$m-again.h5"
	model-export -q -o "$m-twice" "$m-again.h5"
	ok "$m: exported again, the same bytes" diff -r "$m" "$m-twice"
done
is 'the encoder ends with the block whose features are used' \
	"$(py members llava-siglip vision_config.num_hidden_layers vision_feature_layer | tr '\n' ' ')" '1 -1 '

# Types, shards, streams.
for d in f16 bf16; do
	model-export -q --dtype $d -o $d llama-gqa.h5
	ok "$d: each number is rounded once" py exported llama-gqa.h5 $d "$(echo $d | tr a-z A-Z)"
done
model-export -q --file-size 16K -o shards llama-gqa.h5
ok 'shards with an index' py exported llama-gqa.h5 shards
ok '... has more than one file' test -e shards/model-00002-of-*.safetensors
model-import -q shards -o shards.h5 && model-import -q llama-gqa -o one.h5
ok '... is the same model' h5diff shards.h5 one.h5
ok 'a stream: the same bytes' \
	sh -c 'model-import -q shards | model-export -q -o streamed && diff -r llama-gqa streamed'

# The head.
model-import -q "$top/tests/tiny" -o tiny.h5
model-export -q -o tiny tiny.h5
is 'a tied head has no tensor' "$(py members tiny tie_word_embeddings)" True
ok '... from a stream, too' sh -c 'model-import -q tiny | model-export -q -o tiny2 && diff -r tiny tiny2'
hadamard-rotate -q --seed 3 tiny.h5 -o rotated.h5
model-export -q -o rotated rotated.h5
is 'a rotated model has an untied head' "$(py members rotated tie_word_embeddings)" False

# Codes, branches, rotations and split columns become one weight.
sample-tokens -q --length 64 --ctx 16 rotated.h5 -o tokens.h5
hessian-accum -q --tokens tokens.h5 --ctx 16 rotated.h5 -o hessian.h5
fbq-run -q --storage int4 --group 4 --rank 2 --steps 3 --hessian hessian.h5 rotated.h5 -o branch.h5
model-export -q -o branch branch.h5 && model-import -q branch -o branch-again.h5
ok 'codes, a branch and an online Hadamard are one matrix' py effective branch.h5 branch-again.h5
dpq-run -q --compensate none --storage int4 --group 4 tiny.h5 -o codes.h5
model-export -q -o codes codes.h5 && model-import -q codes -o codes-again.h5
ok 'codes are one matrix' py effective codes.h5 codes-again.h5
exmy-pack -q codes.h5 -o packed.h5
ok 'packed codes: the same bytes' sh -c 'model-export -q -o packed packed.h5 && diff -r codes packed'
rms-suppress -q rotated.h5 -o split.h5
model-export -q -o split split.h5
py two_sided tiny.h5 two.h5
model-export -q -o two two.h5 && model-import -q two -o two-again.h5
ok 'signs and rotations of outputs are rotated back' py close tiny.h5 two-again.h5
nll() { eval-ppl -q --tokens tokens.h5 --ctx 16 "$1" 2>/dev/null | awk '$1 == "nll" { printf "%.5f", $2 }'; }
for m in branch codes; do is "$m: nll of the folder" "$(nll $m-again.h5)" "$(nll $m.h5)"; done
model-import -q split -o split-again.h5
is 'split columns: nll of the folder' "$(nll split-again.h5)" "$(nll split.h5)"

# GGUF: codes as blocks. gguf.t tests plain models.
gguf() {
	rm -f b-again.h5
	model-export -q --to gguf "$@" -o b.gguf b.h5 2>/dev/null && model-import -q b.gguf -o b-again.h5 2>/dev/null
}
hf() { rm -rf b b-hf.h5 && model-export -q -o b b.h5 && model-import -q b -o b-hf.h5 2>/dev/null; }
rtn() { dpq-run -q --compensate none --group 32 "$@" -o b.h5 2>/dev/null; }
no 'a window that GGUF cannot express' 1 "GGUF's llama cannot express the window of a block: it is 9" \
	model-export -q --to gguf -o no mixtral.h5
py no_window mixtral.h5
py numbers phi3-long.h5 numbers.h5
ok 'numbers that a float rounds are exported as the float' model-export -q --to gguf -o numbers.gguf numbers.h5
model-import -q numbers.gguf -o again.h5 2>/dev/null && model-export -q --to gguf -o again.gguf again.h5
ok '... and exported again the same' cmp numbers.gguf again.gguf
py configured gemma3.h5 slides.h5 \
	'{"query_pre_attn_scalar": 10, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention"]}'
ok 'a model with a window in all blocks' model-export -q --to gguf -o slides.gguf slides.h5
py configured llama-gqa.h5 ends.h5 '{"eos_token_id": [2, 5, 7]}'
warns 'several ids that end a text' 'eos_token_id: GGUF stores only one of the 3 ids that end a text, 2$' \
	model-export --to gguf -o ends.gguf ends.h5
for m in llama-gqa mixtral gpt2 neox-parallel phi3-window; do
	rtn --storage int4 --scale-dtype f16 $m.h5
	gguf && hf
	[ $m != llama-gqa ] || is 'rows of 44 columns are plain' "$(py blocks b.gguf | tr '\n' ' ')" '6 3 '
	ok "$m: permuted, fused or stacked rows keep their codes" py same_weights b-hf.h5 b-again.h5
done
for s in 'int3 Q4_0' 'int5 Q5_0' 'int8 Q8_0' 'uint6 Q8_0' 'e1m2 Q4_0' 'e2m1 Q5_0' 'e2m3 Q8_0' \
	'mxfp4 MXFP4' 'nf4 F32'; do
	set -- $s
	# shellcheck disable=SC2046
	rtn --storage "$1" $([ "$1" = mxfp4 ] || echo --scale-dtype f16) llama-gqa.h5
	gguf && hf
	ok "$1: the same numbers" py same_weights b-hf.h5 b-again.h5
	ok "... as $2" py holds b.gguf "$2"
done
for d in bf16 e8m0 e4m3fn; do
	rtn --storage int4 --scale-dtype $d llama-gqa.h5
	py divisor b.h5
	gguf && hf
	ok "scales of $d: the same numbers" py same_weights b-hf.h5 b-again.h5
	ok '... as blocks' py holds b.gguf Q4_0
done
rtn --storage int4 --scale-dtype e4m3fn llama-gqa.h5
no 'scales whose divisor is not a power of two' 1 'blocks of Q4_0 would have a scale that f16 rounds' \
	model-export -q --to gguf -o no b.h5
rtn --storage int4 --scale-dtype f16 --layers '/*/layers/*' --layers /lm_head llama-gqa.h5
gguf && hf
ok 'a quantized head: the same numbers' py same_weights b-hf.h5 b-again.h5
ok '... as blocks' py holds b.gguf Q4_0 output.weight
for s in 'uint3 7 Q4_0 Q4_0' 'uint4 7 Q4_1 Q4_0' 'uint5 6 Q5_1 Q5_0' 'uint8 7 F32 Q8_0'; do
	set -- $s
	rtn --storage "$1" --scale-dtype f16 --scale-bits "$2" llama-gqa.h5
	gguf && hf
	ok "$1 with scales of $2 bits: the same numbers" py same_weights b-hf.h5 b-again.h5
	ok "... as $3" py holds b.gguf "$3"
	py middle b.h5 b-middle.h5 && mv b-middle.h5 b.h5
	gguf && hf
	ok "$1 with all zero points in the middle: the same numbers" py same_weights b-hf.h5 b-again.h5
	ok "... as $4" py holds b.gguf "$4"
done
sample-tokens -q --length 64 --ctx 16 gpt2.h5 -o gpt2-tokens.h5
hessian-accum -q --tokens gpt2-tokens.h5 --ctx 16 gpt2.h5 -o gpt2-hessian.h5
solved() { dpq-run -q --hessian gpt2-hessian.h5 --group 32 --storage int4 --scale-dtype f16 "$@" gpt2.h5 -o b.h5 \
	2>/dev/null; }
solved --reorder gar
gguf && hf
ok 'columns quantized in group-aware order: the same numbers' py same_weights b-hf.h5 b-again.h5
ok '... as blocks' py holds b.gguf Q4_0 blk.0.ffn_down.weight
solved --reorder full
no 'a column order with stored groups' 1 \
	'mlp.c_proj: its groups are not neighbouring columns.*--reorder none or gar.*--blocks none' \
	model-export -q --to gguf -o no b.h5
gguf --blocks none && hf
ok '... with plain weights: the same numbers' py same_weights b-hf.h5 b-again.h5
rtn --storage uint5 --scale-dtype f16 llama-gqa.h5
no 'a product of zero point and scale of 5 bits that f16 rounds' 1 \
	'Q5_1 .* dpq-run --scale-dtype f16 --scale-bits 6, --blocks q8_0' \
	model-export -q --to gguf -o no b.h5
rtn --storage uint4 --scale-dtype f16 llama-gqa.h5
no 'a product of zero point and scale that f16 rounds' 1 \
	'[0-9]+ blocks of Q4_1 would have a scale or zero point times scale .*--scale-bits 7, --blocks q8_0' \
	model-export -q --to gguf -o no b.h5
gguf --blocks q8_0 && hf
ok '... in Q8_0, which has no zero point: the same numbers' py same_weights b-hf.h5 b-again.h5
gguf --allow-rounding --report report.tsv
ok '... is rounded with --allow-rounding, as reported' py changed b.h5 b-again.h5 report.tsv
gguf --blocks none && ok 'plain weights' py same_weights b-hf.h5 b-again.h5
rtn --storage int4 llama-gqa.h5
no 'a scale that f16 rounds' 1 \
	'blocks of Q4_0 would have a scale that f16 rounds; expected one of: dpq-run --scale-dtype f16, --blocks none' \
	model-export -q --to gguf -o no b.h5
rtn --storage nvfp4 llama-gqa.h5
no 'a scale that f16 rounds, of a format with fixed scales' 1 \
	'a scale that f16 rounds; expected one of: --blocks none, --allow-rounding$' model-export --to gguf -o no b.h5
rtn --storage int4 llama-gqa.h5
py one_scale b.h5
gguf --allow-rounding --report report.tsv
ok 'one rounded scale: the report has the change of the whole weight' py changed b.h5 b-again.h5 report.tsv
rtn --storage int4 --scale-dtype f16 --group 16 llama-gqa.h5
warns 'groups that do not fit blocks' \
	'plainly: 2 with rows .* 32 columns \(model.*down_proj and others\), 12 with groups .* 32 columns \(' \
	model-export --to gguf -o plain.gguf b.h5
ok '... without a warning for --blocks none' \
	sh -c 'model-export --to gguf --blocks none -o plain.gguf b.h5 2>err && ! grep warning err'
py stray_expert mixtral.h5 stray.h5
no 'one expert too many' 1 ': has a weight of expert 99, the model has 4' model-export --to gguf -o no stray.h5
py second_expert mixtral.h5 stray.h5
no 'an expert of another size' 1 'ffn_gate_exps.weight: expert 3 has .* bytes of weights, earlier experts have ' \
	model-export --to gguf -o no stray.h5
for m in opt llava-siglip; do
	no "$m: GGUF has no architecture" 1 'GGUF has no architecture for' model-export --to gguf -o no $m.h5
done
model-import -q "$top/tests/tiny" -o whole.h5
warns 'a tokenizer that GGUF cannot express' \
	'none: GGUF cannot express the tokenizer: it has no token of byte 0; it is stored' \
	model-export --to gguf -o tiny.gguf whole.h5
model-import -q tiny.gguf -o tiny-again.h5
ok '... is imported again unchanged' py same_text tokenizer whole.h5 tiny-again.h5

# Texts.
cp -r "$top/tests/tiny" texts && py texts texts
model-import -q texts | model-export -q -o texts-again
ok 'texts are copied' sh -c 'for f in tokenizer tokenizer_config special_tokens_map generation_config; do
	cmp texts/$f.json texts-again/$f.json || exit 1; done
	cmp texts/chat_template.jinja texts-again/chat_template.jinja'

# Options that a target does not use.
while read -r to idle; do
	for o in $idle; do
		no "--to $to and $o" 2 "${o%%=*}: --to $to does not use it" \
			model-export --to "$to" --allow-rounding "$o" -o no tiny.h5
	done
done <<'EOF'
compressed-tensors --blocks=none
gptq --blocks=none --unify-scales
gguf --skip-compute --unify-scales --file-size=1M
EOF
for o in --allow-rounding --blocks=none --unify-scales --report=report.tsv; do
	no "--to hf and $o" 2 "${o%%=*}: --to hf does not use it" model-export "$o" -o no tiny.h5
done
for to in hf compressed-tensors gptq gguf; do
	ok "--help describes $to" sh -c "model-export --help | grep -q '^  *$to: a'"
done

# Settings that the target does not support, and other errors.
dpq-run -q --compensate none --act-format int8 --act-mode dynamic-token --group 4 tiny.h5 -o inputs.h5
no 'rounded inputs' 1 'rounds its inputs, which --to hf does not write; --weights-only leaves their rounding out' \
	model-export -o no inputs.h5
ok '... are left out with --weights-only' model-export -q --weights-only -o inputs inputs.h5
dpq-run -q --compensate none --kv-format int8 --group 4 tiny.h5 -o keys.h5
no '... in GGUF neither' 1 'rounds its inputs, which --to gguf does not write' model-export --to gguf -o no inputs.h5
no 'rounded keys and values' 1 'rounds keys and values to int8, which --to hf does not write' model-export -o no keys.h5
warns '... are left out with --weights-only' \
	'keys and values are not rounded to int8' model-export --weights-only -o keys keys.h5
ln2rms -q opt.h5 -o rms.h5
no 'a norm of another kind' 1 'of kind rms, but checkpoints of a OPTForCausalLM have' model-export -o no rms.h5
for m in head_bias norm_bias; do
	py $m llama-gqa.h5 $m.h5
	no "$m" 1 'bias: a LlamaForCausalLM .*has no such bias' model-export -o no $m.h5
done
for m in model/layers/0/self_attn/q_proj model/layers/1/input_layernorm model/layers/1 lm_head; do
	cp llama-gqa.h5 gone.h5 && py remove gone.h5 $m
	for to in hf gguf; do
		no "$m is missing, --to $to" 1 "gone.h5: /$m.*/weight: is missing, a LlamaForCausalLM needs it" \
			model-export --to $to -o no gone.h5
	done
done
cp phi3-window.h5 gone.h5 && py remove gone.h5 model/layers/0/self_attn/q_proj
no 'a fused tensor without its first layer' 1 'q_proj/weight: is missing' model-export -o no gone.h5
py large tiny.h5 large.h5
no 'a number beyond f16' 1 'norm.weight: has a number beyond the range of f16' model-export --dtype f16 -o no large.h5
py stranger tiny.h5 stranger.h5
warns 'a tensor of integers that the class does not have' \
	'/other/ids: is int32.* left out' model-export -o strange stranger.h5
py strangers llama-gqa.h5 many.h5 6000 5 && model-export -q -o many many.h5
ok 'thousands of tensors of one number' py exported many.h5 many
py strangers llama-gqa.h5 long.h5 2 50000 && model-export -q -o long long.h5
ok 'very long names' py exported long.h5 long
dpq-run -q --compensate none --group 4 --shard 1/2 tiny.h5 -o shard.h5
no 'a shard of a model' 1 'is one of several shards' model-export -o no shard.h5
no 'no folder' 2 '-o FOLDER.FILE is expected' model-export tiny.h5
mkdir full && touch full/x
no 'a folder that exists' 1 'full: exists already' model-export -o full tiny.h5
mkdir empty
ok 'an empty folder is used' sh -c 'model-export -q -o empty tiny.h5 && diff -r empty tiny'
no 'a folder below a file' 1 'tiny.h5/x: cannot create a folder: Not a directory' model-export -o tiny.h5/x tiny.h5
no 'a file in place of a folder' 1 'tiny.h5: exists already' model-export -o tiny.h5 codes.h5
mkdir here
no 'the current folder' 1 ': ./[.]: exists already' sh -c 'cd here && model-export -o ./. ../tiny.h5'
is '... stays empty' "$(ls -A here)" ''
no 'a folder in a missing folder' 1 'cannot create a folder' model-export -o none/x tiny.h5
head -c 20000 codes.h5 >cut.h5
no 'a file cut short' 1 'cut.h5' model-export -o no cut.h5
ok 'a stream that ends early leaves no file' \
	sh -c '! model-import -q texts | head -c 30000 | model-export -q -o no 2>/dev/null'
ok 'failed exports leave no file' sh -c 'test ! -e no && test -z "$(ls -d .ptq.* 2>/dev/null)"'
done_testing
