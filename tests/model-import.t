#!/bin/sh
# model-import.t -- Hugging Face folders as models: every tensor bit for bit, warnings, and errors
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1

if ! has_h5py; then
	skip 'model-import' 'no h5py'
	done_testing
fi

# Hugging Face folders: one without a fault, and one for each fault.
py make

for f in good odd half brain untied shards; do
	ok "$f: imports" model-import $f -o $f.h5
	ok "$f: every tensor is unchanged" py same_tensors $f $f.h5
done
ok 'an unaligned file gives the same bytes' cmp good.h5 odd.h5
ok 'shards give the same bytes' cmp good.h5 shards.h5
model-import good >stdout.h5
ok 'a file as standard output' cmp good.h5 stdout.h5

ok 'a tied head has the contents of the embedding' py tied
ok 'a tied head is a hard link in a file' py linked

model-import good | cat >good.stream
is 'a stream: root, embeddings, 11 blocks in natural order, tail' "$(py stream_parts)" \
	"/model/embed_tokens/weight ['config', 'tokenizer'] ['model/embed_tokens/weight'] \
['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10'] {9} ['lm_head/weight', 'model/norm/weight']"

model-import own-head -o own-head.h5 2>warning
is 'a head that config.json ties, but that differs from the embedding, is kept with a warning' \
	"$(grep -c 'lm_head.weight: differs from the embedding: it is kept' warning)" 1
ok 'every tensor is unchanged' py same_tensors own-head own-head.h5
for f in same-head head-only; do
	ok "$f: imports" sh -c "model-import $f -o $f.h5 2>warning && test ! -s warning"
	ok "$f: the same bytes as without a head" cmp good.h5 $f.h5
done
model-import biases -o biases.h5 2>warning
is 'biases that the class does not have: one warning' "$(cat warning)" \
	"model-import: warning: biases: lm_head.bias: a LlamaForCausalLM of this config.json has no such bias: \
it and 4 more are left out"
ok '... are left out' cmp good.h5 biases.h5
model-import bias -o bias.h5 2>warning
is 'one such bias: a warning' "$(grep -c 'q_proj.bias: .* has no such bias: it is left out' warning)" 1
model-import beyond -o beyond.h5 2>warning
is 'blocks beyond those of config.json: one warning' "$(cat warning)" \
	"model-import: warning: beyond: model.layers.10.input_layernorm.weight: \
is beyond the 10 blocks of config.json: it and 8 more are left out"
ok '... are left out' py not_there
ok 'names that only resemble reserved names are allowed' \
	sh -c 'model-import -q configs -o configs.h5 && h5ls configs.h5/configs/x && h5ls configs.h5/tokenizers'
ok 'the largest depth of groups, from a stream' \
	sh -c 'model-import -q nested-31 | dpq-run -q --compensate none --group channel -o nested.h5'
model-import -q nested-31 -o nested-31.h5
ok '... and in a file' \
	sh -c 'dpq-run -q --compensate none --group channel nested-31.h5 | cat >nested.stream &&
		tensor-stats -q nested.stream'

py one_block_more
no 'a model file with a block beyond those of its config.json' 1 'more.h5: /model/layers/11.* beyond the last block' \
	dpq-run -q --compensate none --group channel more.h5 -o more-q.h5

model-import buffers -o buffers.h5 2>warning
is 'inverse frequencies are left out without a warning' "$(wc -c <warning)" 0
ok '... are absent' cmp good.h5 buffers.h5
model-import extra -o extra.h5 2>warning
is 'unknown tensors of floats are kept, with a warning' \
	"$(grep -c 'has no such tensor; it is kept' warning) $(grep -c 'ids: .*left out' warning)" '2 1'
ok '... are present' py there
model-import extra -q -o extra2.h5 2>warning
is '... warnings with -q, too' \
	"$(grep -c 'has no such tensor; it is kept' warning) $(grep -c 'ids: .*left out' warning)" '2 1'
model-import no-tokenizer -o no-tokenizer.h5 2>warning
is 'a folder without a tokenizer: a warning' "$(grep -c 'has no tokenizer:' warning)" 1
for f in tokenizer.json chat_template.jinja; do
	rm -rf linked; cp -r no-tokenizer linked; ln -s ../blobs/1 linked/$f
	no "$f is a link to no file" 1 \
		"linked/$f: cannot open what this link leads to: No such file or directory" model-import linked -o x.h5
done

for f in gpt2 gpt2-prefix; do
	ok "$f: imports" model-import $f -o $f.h5
done
ok 'GPT-2: the same bytes with and without the prefix of names' cmp gpt2.h5 gpt2-prefix.h5
ok 'GPT-2: Conv1D is transposed, the mask is left out' py conv1d

# Rows of GPT-NeoX's query_key_value, compared with numpy.
for f in neox neox-half; do
	ok "GPT-NeoX: $f imports without a warning" sh -c "model-import $f -o $f.h5 2>warning && test ! -s warning"
	ok "$f: queries, keys and values are separate layers, buffers are left out" py apart $f
done
model-import neox-no-bias -o neox-no-bias.h5 2>warning
is 'biases of fused layers that the class does not have: each tensor is counted once' "$(cat warning)" \
	"model-import: warning: neox-no-bias: gpt_neox.layers.0.attention.dense.bias: \
a GPTNeoXForCausalLM of this config.json has no such bias: it and 3 more are left out"
model-import neox-more -o neox-more.h5 2>warning
is 'another member of a fused layer is kept, with a warning' \
	"$(grep -c 'query_key_value.scale: .* it is kept' warning)" 1
ok '... undivided' py undivided
ok 'Qwen3: imports' model-import qwen3 -o qwen3.h5
ok 'Qwen3: every tensor is unchanged' py same_tensors qwen3 qwen3.h5

bad() { no "$1: $2" 1 "$2" model-import "$1" -o no.h5; }
bad missing 'model.layers.10.mlp.up_proj.weight: is missing, a LlamaForCausalLM needs it'
bad no-head 'lm_head.weight: is missing'
bad shape 'shape/model.safetensors: model.layers.2.mlp.up_proj.weight: its shape is not the \[12, 8\] of config.json'
bad type 'model.norm.weight: is stored as F64, expected F32, F16 or BF16'
for f in nan inf nan16 inf16; do bad $f 'model.norm.weight: element 5 is NaN or infinite'; done
bad neither 'model.embed_tokens.weight: is missing, a LlamaForCausalLM needs it'
bad double-head 'lm_head.weight: is stored as F64, expected F32, F16 or BF16'
bad flat-head 'lm_head: is a tensor, and a part of the name of model.embed_tokens.weight'
bad no-bias 'model.layers.0.self_attn.q_proj.bias: is missing, a LlamaForCausalLM needs it'
bad unknown "unknown model_type 'other', expected one of llama, mistral, "
bad neox-missing 'gpt_neox.layers.1.attention.query_key_value.weight: is missing, a GPTNeoXForCausalLM needs it'
bad neox-apart 'gpt_neox.layers.1.attention.query_key_value.weight: is missing, a GPTNeoXForCausalLM needs it'
bad neox-both 'neox-both: gpt_neox.*k_proj.weight.* are the same tensor'
bad neox-shape 'query_key_value.weight: its shape is not the \[72, 24\] of config.json'
bad neox-short 'query_key_value.bias: its shape is not the \[72\] of config.json'
bad neox-nan 'query_key_value.weight: element 1727 is NaN or infinite'
bad qwen3-norm 'k_norm.weight: its shape is not the \[4\] of config.json'
bad qwen3-no-norm 'model.layers.0.self_attn.q_norm.weight: is missing, a Qwen3ForCausalLM needs it'
bad slash 'a/b.c'
bad dots 'a\.\.c'
bad config-tensor "'config': no tensor can have this name"
bad below-config "'config.x': no tensor can have this name: a model stores the text of config.json there"
bad below-tokenizer "'tokenizer.y.z': no tensor can have this name"
bad nested-32 'a.b.c: is nested too deeply: 34 words, expected at most 33'
bad zero 'model.layers.03.extra.weight: the number of its block has a zero in front'
bad both 'a.b: is a tensor, and a part of the name of a.b.c'
bad empty 'has neither model.safetensors nor model.safetensors.index.json'
bad shard-lies 'model.norm.weight: is not in'
bad shard-outside 'model.norm.weight: expected the name of a file in the same folder'
bad shard-twice 'model.norm.weight: the tensor is in'
bad shard-gone 'model-00002-of-00003.safetensors: cannot open: No such file'
bad overlap 'overlap'
bad outside 'are not within'
bad backward 'are not within'
bad negative 'not a whole number'
bad product 'the shape overflows'
bad long '320 bytes of data, its shape of F32 needs 360'
bad real 'not a whole number'
bad cut 'are not within the [0-9]* bytes of data; the file is damaged'
bad more '4 bytes after the last tensor'
bad list 'is not a JSON object'
bad junk 'not valid JSON'
bad twice 'not valid JSON: duplicate'
bad deep 'not valid JSON'
bad header 'its header would have'
bad tiny 'is not a safetensors file: it has'
bad missing-folder 'cannot open: No such file or directory; expected a local Hugging Face folder'
bad good/config.json 'cannot be imported, expected a Hugging Face folder'
ok 'errors leave no file' sh -c 'test ! -e no.h5 && ! ls .ptq.* 2>/dev/null'
wrong() { no "config.json: $1" 1 "bad-$1/config.json: /config: $2" model-import "bad-$1" -o no.h5; }
wrong type \
	"unknown model_type 'odd', expected one of llama, mistral, ministral, qwen2, qwen2_vl_text, \
qwen2_5_vl_text, qwen3, mixtral, qwen2_moe, qwen3_moe, phi3, gemma, gemma2, gemma3_text, gpt2, opt, \
gpt_neox, llava, vipllava, qwen2_vl, qwen2_5_vl, idefics3, smolvlm"
wrong no-type "unknown architecture 'OddForCausalLM', expected one of LlamaForCausalLM"
for f in short long text; do wrong types-$f "'layer_types' must be a list of 2 kinds, one a block"; done
wrong types-word "'layer_types': block 1 is 'chunked_attention', expected full_attention or sliding_attention"
wrong types-number "'layer_types': block 0 is ''"
wrong window "'sliding_window' must be a whole number from 1"
for f in no off; do wrong $f-window "block 1 is of kind 'sliding_attention', but there is no 'sliding_window'"; done
wrong late "'max_window_layers' must be a whole number"
wrong rope-text 'the rotary settings must be an object'
wrong rope-kind "rotary scaling 'yarn' is not supported, expected default, linear, llama3 or longrope"
wrong rope-null "'rope_type' must be a string"
wrong rope-factor "'factor' must be a positive number"
for f in theta inside; do wrong rope-$f "'rope_theta' must be a positive number"; done
for f in part beside; do wrong rope-$f 'a LlamaForCausalLM does not have rotary positions on a part of the head'; done
wrong rope-low 'high_freq_factor must be above low_freq_factor'
wrong rope-original "'original_max_position_embeddings' must be a positive number"
wrong long-list "'short_factor' must be a list of 2 numbers, one for each rotary pair"
wrong long-short "'long_factor' must be a list of 2 numbers"
for f in number text; do wrong long-$f "'long_factor': number 1 must be positive"; done
wrong long-one "'original_max_position_embeddings' is 1, expected more than one position"
wrong long-attention "'attention_factor' must be a positive number"
wrong long-factor "'factor' must be a positive number"
wrong opt-width \
	"'word_embed_proj_dim' is 6, the hidden size 8: embeddings of another width, with their projections, \
are not supported"
wrong opt-affine "'layer_norm_elementwise_affine' must be true; other values"
wrong opt-final "'_remove_final_layer_norm' must be false; other values"
wrong opt-before "'do_layer_norm_before' must be true or false"
wrong opt-heads 'hidden size 8 is not a multiple of 3 heads'
wrong gemma-window "block 0 is of kind 'sliding_attention', but there is no 'sliding_window'"
wrong gemma-both "'use_bidirectional_attention' must be false; other values"
wrong gemma-cap "'attn_logit_softcapping' must be a positive number"
wrong gemma-logits "'final_logit_softcapping' must be a positive number"
wrong gemma-scalar "'query_pre_attn_scalar' must be a positive number"
wrong gemma-pattern "'sliding_window_pattern' must be a whole number from 1"
wrong gemma-theta "'rope_local_base_freq' must be a positive number"
wrong gemma-rope 'the rotary settings must be an object'
wrong rope-types "rotary settings of 'full_attention' alone are not supported"
wrong null-size "'hidden_size' must be a whole number"
wrong null-bias "'attention_bias' must be true or false"
wrong null-act "'hidden_act' must be a string"
wrong null-eps "'rms_norm_eps' must be a positive number"
wrong act "unknown activation 'xielu', expected one of silu"
wrong causal "'is_causal' must be true; other values"
wrong each "'per_layer_config': blocks that differ"
wrong groups '2 attention heads are not a multiple of 3 key and value heads'
wrong gpt2-scale "'scale_attn_weights' must be true; other values"
wrong gpt2-layer "'scale_attn_by_inverse_layer_idx' must be false; other values"
wrong gpt2-heads 'hidden size 8 is not a multiple of 5 heads'
for f in odd none over; do wrong neox-$f 'positions rotate [0-9.]* of 8 channels of a head, expected an even'; done
wrong neox-null "'rotary_pct' must be a positive number"
wrong neox-inside "'partial_rotary_factor' must be a positive number"
wrong neox-base "'rotary_emb_base' must be a positive number"
wrong neox-parallel "'use_parallel_residual' must be true or false"
wrong neox-heads 'hidden size 24 is not a multiple of 5 heads'
wrong gpt2-alias "'hidden_size' must be a whole number"
bad bad-quantized \
	"config.json: 'quantization_config': quant_method 'aqlm' is not known, expected one of compressed-tensors, fp8"

no 'no operand' 2 'expected a folder' model-import
no 'two operands' 2 'one operand too many' model-import good half

# Headers and configs with changed bytes: imported, or refused with one line, without a crash.
ok 'changed bytes' py fuzz

# Unusual forms of config.json and names. Likelihoods must equal those of transformers. Rounding changes logits by
# about 1e-6 (tests/forward.c prints it); a misread config changed them by at least 0.03.
/usr/bin/python3 -B "$top/tests/ref/checkpoints.py" "$top/tests/ref/checkpoints.h5" >rows
is 'all rows are tested' "$(wc -l <rows)" "$(grep -c ': Row(' "$top/tests/ref/checkpoints.py")"
while IFS='	' read -r name what; do is "as transformers: $name" "$what" same; done <rows

if [ "$shared" ]; then
	for f in stories260K babyllama-105; do
		ok "$f: imports" model-import "$shared/$f" -o $f.h5
		ok "$f: every tensor is unchanged" py same_tensors "$shared/$f" $f.h5
	done
else
	skip 'real models' 'no shared data'
fi
done_testing
