#!/bin/sh
# gguf.t -- GGUF files: import, export and import again, tokenizers; bad input
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1

if ! has_h5py; then
	skip 'model-import of GGUF' 'no h5py'
	done_testing
fi

# The models of tests/forward.c, whose logits equal those of transformers, as GGUF; and one file per fault.
py make "$top" || exit 1

# same_tensors OURS REFERENCE: the same tensors, bit for bit; equal likelihoods show that the configs are equivalent
py make_tokens
nll() { eval-ppl -q --tokens tokens.h5 --ctx 37 "$1"; }
for f in llama-gqa llama-rope llama-linear llama-tied qwen2-bias qwen3 gpt2 neox-parallel neox-serial mixtral \
	qwen2-moe qwen3-moe \
	phi3-window phi3-long phi3-linear gemma gemma2 gemma3; do
	[ -e "$f.gguf" ] || { skip "$f" 'no such model in tests/ref'; continue; }
	ok "$f: is imported with one warning, about its tokenizer" \
		sh -c "model-import $f.gguf -o $f-gguf.h5 2>warning && test \$(wc -l <warning) = 1 &&
			grep -q 'has no tokenizer' warning"
	ok "$f: every tensor is unchanged" py same_tensors $f-gguf.h5 $f.h5
	is "$f: the same likelihoods" "$(nll $f-gguf.h5)" "$(nll $f.h5)"
	if [ $f = neox-serial ]; then
		no "$f: a head tied to the embedding" 1 'llama.cpp needs a separate head for a GPTNeoX' \
			model-export --to gguf -o $f-out.gguf $f-gguf.h5
		continue
	fi
	ok "$f: is exported" model-export --to gguf -o $f-out.gguf $f-gguf.h5
	model-import -q $f-out.gguf -o $f-out.h5 2>/dev/null
	ok "$f: imported again, every tensor is unchanged" py same_tensors $f-out.h5 $f.h5
	is "$f: ... with the same likelihoods" "$(nll $f-out.h5)" "$(nll $f.h5)"
	model-export -q --to gguf -o again.gguf $f-out.h5
	ok "$f: exported again, the same bytes" cmp $f-out.gguf again.gguf
done
hadamard-rotate -q --seed 1 gemma-gguf.h5 -o rotated.h5
no 'a Gemma with an untied head' 1 \
	'rotated.h5: /lm_head: is a head apart from the embedding, .* a GemmaForCausalLM; --to hf writes it' \
	model-export --to gguf -o rotated.gguf rotated.h5
is 'a likelihood is printed' "$(nll llama-gqa.h5 | grep -c '^nll	')" 1
for f in v2.gguf align.gguf order.gguf no-name wide.gguf few.gguf; do	# the last is used below
	model-import -q $f -o other.h5
	ok "$f: the same tensors" py same_tensors other.h5 llama-gqa.h5
done
is 'keys absent from the file take their defaults' \
	"$(nll other.h5)" "$(nll llama-gqa.h5)"
ok 'decimal numbers are restored' py decimals
ok '16-bit types are kept' sh -c 'model-import -q halves.gguf -o halves.h5' && ok '... bit for bit' py bits_16
model-import types.gguf -o types.h5 2>warning
ok 'every type is read, and rows permuted in pairs are restored' py types
model-import strange.gguf -o strange.h5 2>warning
is 'unknown tensors are kept if they can be read' \
	"$(grep -c 'blk.0.attn_rot.weight: .* it is kept' warning) $(grep -c 'ids: .* left out' warning)" '1 1'
ok 'import to a pipe' sh -c 'model-import -q llama-gqa.gguf | tensor-stats -q'

# Tokens by a plain loop that merges the pair with the best score.
for f in spm spm-bare; do model-import $f.gguf -o $f.h5; done
ok 'merges by score are merges by rank' py merges
ok "each family's tokenizer.json" py families
for f in bpe-gpt-2 bpe-default bpe-smollm bpe-llama-bpe bpe-dbrx bpe-qwen2 bpe-gpt-4o bpe-tekken bpe-ends spm-bytes \
	spm-bytes-bare; do
	model-import -q $f.gguf -o $f.h5 2>/dev/null
	ok "$f: is exported without a message" \
		sh -c "model-export --to gguf -o $f-out.gguf $f.h5 2>$f.err && test ! -s $f.err"
	model-import -q $f-out.gguf -o $f-again.h5
	ok "... as keys that give the same tokenizer.json" py same_tokenizer $f $f-out
done
model-import -q bpe-qwen2.gguf -o said.h5 2>/dev/null
py said
inexpressible() {	# inexpressible NAME WHY: a tokenizer that GGUF cannot express
	warns "a tokenizer that GGUF cannot express: $1" \
		"tokenizer.ggml.model: none: GGUF cannot express the tokenizer: $2.*pass token ids to llama.cpp" \
		model-export --to gguf -o said.gguf said-$1.h5
	model-import -q said.gguf -o again.h5
	ok '... is kept unchanged' py same_text tokenizer said-$1.h5 again.h5
}
inexpressible json 'it is not valid JSON'
inexpressible unigram 'its model is Unigram, not BPE'
inexpressible dropout 'it has a dropout'
inexpressible id "its token 'zz' has no id from 0 to 60"
inexpressible twice "its token 'a' has two ids"
inexpressible pattern 'its pre-tokenizer has no name in tokenizer.ggml.pre'
inexpressible space 'its pre-tokenizer has no name'
inexpressible ignore 'its pre-tokenizer has no name'
inexpressible lower 'it normalizes texts'
inexpressible merge 'its merge 0 is not of two tokens'
inexpressible ends 'it adds 4 before a text, config.json has 5'
inexpressible bert 'its post-processor is of type BertProcessing'
inexpressible order 'its merges are not in the order of scores'
inexpressible missing 'its merges are not in the order of scores'
inexpressible bytes 'it has no token of byte 65'
inexpressible words 'its pre-tokenizer is neither byte-level nor that of SentencePiece'
warns 'a tokenizer with the normalizer NFC' 'leaves out its normalizer NFC' \
	model-export --to gguf -o said.gguf said-nfc.h5
warns 'an added token with options about spaces' 'leaves out lstrip, rstrip and single_word of added tokens' \
	model-export --to gguf -o said.gguf said-rstrip.h5
warns "warns that 'add no space' is lost" 'leaves out that no space is added' \
	model-export --to gguf -o said.gguf said-metaspace.h5
model-export -q --to gguf -o said.gguf said-pairs.h5 && model-import -q said.gguf -o again.h5
ok "a token's merges are kept in another order; an id without a token gets one" py pairs again.h5
model-export -q --to gguf -o said.gguf said-texts.h5 && model-import -q said.gguf -o again.h5
is 'the chat templates, the padding and the end' "$(py texts_said said.gguf again.h5)" \
	"chat 6 <tool> <|end|> [{'name': 'other', 'template': 'x'}]"
model-export -q --to gguf -o said.gguf said-chats.h5 2>warnings
is 'a chat template without a name or a text of its own: a warning' \
	"$(sed -n 's/.*chat_template: number \([0-9]\) is left out.*/\1/p' warnings | xargs)" '1 2 4'
model-import -q said.gguf -o again.h5
is '... the others are there, also one with a long name' "$(py templates_of again.h5 | tr -s l | xargs)" 'a A l L'
warns 'a chat template with NUL' 'said.gguf: tokenizer_config.json: chat_template is left out: it has a NUL' \
	model-export --to gguf -o said.gguf said-nul.h5
warns 'a tokenizer without the name of its pre-tokenizer' \
	'tokenizer.ggml.pre: is missing; words are cut as llama.cpp does' \
	model-import bpe-none.gguf -o none.h5
warns 'no tokenizer' 'has no tokenizer' model-import no-tokens.gguf -o none.h5
rm -f none.h5

bad() { no "$1: $2" 1 "bad-$1.gguf: (.*[ .])?$2" model-import -q "bad-$1.gguf" -o no.h5; }
bad magic 'is not a GGUF file: it does not begin with GGUF'
bad version1 'is GGUF of version 1, expected 2 or 3'
bad version4 'is GGUF of version 4, expected 2 or 3'
bad big 'is a GGUF file for big-endian machines'
bad kinds "general.architecture: is 'mamba', expected one of llama, qwen2, "
bad no-kind 'general.architecture: is missing, expected one of llama'
bad adapter "general.type: is 'adapter', expected 'model'"
bad split 'split.count: is one of 3 files of a model'
bad quant 'general.quantization_version: is 1, expected 2'
bad tensors 'its tensors: 2305843009213693952 elements of at least 24 bytes'
bad values 'its values: 18446744073709551615 elements of at least 13 bytes'
bad text 'general.name: goes beyond the end of the file'
bad list 'a.list: 4611686018427387904 elements of at least 8 bytes'
bad lists 'a.list: 1152921504606846976 elements of at least 8 bytes'
bad type 'a.value: has a value of type 99, expected one of 0 to 12'
bad element 'a.value: has a value of type 13, '
bad deep 'a.list: has arrays inside each other, expected at most 8'
bad key 'the key of a value: is empty'
bad nul 'the key of a value: is a name with a NUL byte'
bad align 'general.alignment: is 24, expected a power of two'
bad align0 'general.alignment: is 0, expected a power of two'
bad align-text 'general.alignment: is of type string, expected a whole number'
bad offset 'token_embd.weight: its data are at 8, expected a multiple of 32'
bad outside 'token_embd.weight: its data begin 1099511627776 bytes after the header'
bad overlap 'needs [0-9]* bytes of data, only [0-9]* precede the next tensor or the end'
bad rank 'a: has 5 dimensions, expected at most 4'
bad overflow 'token_embd.weight: the shape overflows'
bad large 'token_embd.weight: needs 137438953472 bytes of data, '
bad stored 'blk.0.attn_q.weight: is stored as IQ4_XS, expected one of F32, F16, BF16, Q4_0, .*, Q6_K, IQ4_NL, MXFP4$'
bad unknown 'token_embd.weight: is stored as type 77, expected one of F32'
bad row 'blk.0.attn_q.weight: has rows of 33 numbers, Q8_0 has blocks of 32'
bad missing 'model.layers.1.mlp.up_proj.weight: is missing, a LlamaForCausalLM needs it'
bad shape 'model.layers.1.mlp.up_proj.weight: its shape is not the \[44, 32\]'
bad turned 'model.layers.1.self_attn.q_proj.weight: its shape is not the \[32, 32\]'
bad inf 'model.layers.1.self_attn.v_proj.weight: element 0 is NaN or infinite'
bad hidden 'model.embed_tokens.weight: its shape is not the \[61, 64\]'
bad blocks 'model.layers.2.input_layernorm.weight: is missing'
bad vocab 'model.embed_tokens.weight: its shape is not the \[60, 32\]'
bad heads "/config: hidden size 32 is not a multiple of 3 heads"
bad no-heads "'num_attention_heads' must be a whole number from 1"
bad kv '4 attention heads are not a multiple of 3 key and value heads'
bad array 'llama.feed_forward_length: is an array of i32, expected a whole number'
bad negative 'llama.block_count: is -2, expected 0 or more'
bad word 'llama.block_count: is of type string, expected a whole number'
bad real 'llama.attention.layer_norm_rms_epsilon: holds a number that is not finite'
bad value-length 'llama.attention.value_length: is 4, expected the length of keys, 8'
bad rotary 'llama.rope.dimension_count: is 4, a LlamaForCausalLM rotates all 8 channels'
bad yarn "llama.rope.scaling.type: rotary scaling 'yarn' is not supported"
bad longrope "rope_factors_long.weight: rotary scaling 'longrope' is not supported"
bad experts "general.architecture: is 'gpt2' with experts, expected one of llama, "
for f in stack flat hollow; do bad $f 'blk.0.ffn_up_exps.weight: is not a stack of the matrices of 4 experts'; done
bad stored-stack 'blk.0.ffn_up_exps.weight: is stored as Q2_K, expected one of F32'
bad phi3-short 'rope_factors_short.weight: is missing, or not 4 numbers of type F32'
bad phi3-none 'rope_factors_short.weight: is missing'
bad phi3-yarn "phi3.rope.scaling.type: rotary scaling 'yarn' is not supported, expected none, linear or longrope"
bad phi3-few 'rope_factors_short.weight: is missing, or not 4 numbers of type F32'
bad phi3-factor 'rope_factors_short.weight: element 1 is 0, expected a positive divisor'
bad window 'llama.attention.sliding_window: is 7, expected attention to all positions'
bad rope-freqs 'rope_freqs.weight: does not scale as Llama 3 does'
bad rope-blunt 'rope_freqs.weight: does not scale as Llama 3 does'
bad rope-short 'rope_freqs.weight: expected 4 numbers of type F32'
bad rope-below 'rope_freqs.weight: element 0 is 0.5, expected a divisor of at least 1'
bad rope-both 'rope_freqs.weight: rotary scaling by frequency is not supported with other scalings'
for k in block_count context_length embedding_length feed_forward_length attention.head_count \
	attention.layer_norm_rms_epsilon; do
	bad no-$k "llama.$k: is missing"
done
bad twice 'general.architecture: occurs twice'
bad tensor-twice 'output.weight: the tensor occurs twice'
bad neox-none 'gptneox.rope.dimension_count: is 0, expected 1 to the 8 channels'
bad neox-wide 'gptneox.rope.dimension_count: is 9, expected 1 to the 8 channels'
bad neox-apart 'gptneox.attention.head_count_kv: is 1, a GPTNeoXForCausalLM needs the number of heads, 3'
bad neox-heads 'query_key_value.weight: its shape is not the \[72, 24\]'
bad tok-kind "tokenizer.ggml.model: 'bert' is not known, expected one of gpt2, llama"
bad tok-none 'tokenizer.ggml.tokens: is missing'
bad tok-empty 'tokenizer.ggml.tokens: is empty'
bad tok-type 'tokenizer.ggml.tokens: is an array of i32, expected an array of strings'
bad tok-twice "tokenizer.ggml.tokens: 'a' occurs twice, as 4 and 60"
bad tok-blank 'tokenizer.ggml.tokens: number 60 is empty'
bad tok-utf8 'tokenizer.ggml.tokens: number 60 is not valid UTF-8'
bad tok-nul 'tokenizer.ggml.tokens: number 60 is with a NUL byte'
bad tok-types 'tokenizer.ggml.token_type: has 60 elements, expected one for each of 61'
bad tok-scores 'tokenizer.ggml.scores: has 60 elements'
bad tok-no-scores 'tokenizer.ggml.scores: has 0 elements'
bad tok-nan 'tokenizer.ggml.scores: holds a number that is not finite'
bad tok-bytes 'has 1 of the 256 tokens <0x00> to <0xFF>'
bad tok-long 'number 60 has 513 bytes, expected at most 512'
bad tok-unk 'tokenizer.ggml.unknown_token_id: is 61, expected an id from 0 to 60'
bad tok-bos 'tokenizer.ggml.bos_token_id: is -1, expected an id'
bad tok-no-bos 'tokenizer.ggml.add_bos_token: is true, but tokenizer.ggml.bos_token_id is missing'
bad tok-more 'model.embed_tokens.weight: its shape is not the \[62, 32\]'
bad bpe-pre "tokenizer.ggml.pre: 'odd' is not known, expected one of default, gpt-2, "
bad bpe-no-merges 'tokenizer.ggml.merges: is missing'
bad bpe-merge 'tokenizer.ggml.merges: number 1 is not two texts with a space'
bad bpe-part "tokenizer.ggml.merges: number 0: 'ac', or a part of it, is not a token"
bad bpe-whole "tokenizer.ggml.merges: number 0: 'ba', or a part of it, is not a token"
bad bpe-flag 'tokenizer.ggml.add_bos_token: is of type u32, expected a bool'
bad bpe-eos 'tokenizer.ggml.add_eos_token: is true, but tokenizer.ggml.eos_token_id is missing'
no 'a result with the name of the input' 1 'llama-gqa.gguf: is an input \(no model\)' \
	model-import -q llama-gqa.gguf -o llama-gqa.gguf
cp "$top/tests/ref/llama-gqa.h5" own.h5
no 'a model as the GGUF file of its export' 1 'own.h5: is an input, the result would destroy it' \
	model-export -q --to gguf -o own.h5 own.h5
ok '... it is unchanged' cmp own.h5 "$top/tests/ref/llama-gqa.h5"
no 'a vocabulary without tensors' 1 'only-words.gguf: model.embed_tokens.weight: is missing' \
	model-import -q only-words.gguf -o no.h5
for f in cut-*.gguf; do
	no "$f" 1 \
		"$f: .*(expected at least 24|goes beyond the end|in the [0-9]* bytes left|\
beyond the end of the file|needs [0-9]* bytes)" \
		model-import -q "$f" -o no.h5
done
ok 'no file is left' sh -c 'test ! -e no.h5 && ! ls .ptq.* 2>/dev/null'

# Changed bytes, mostly in the header: success or one line of error, never a crash.
ok 'changed bytes' py fuzz
done_testing
