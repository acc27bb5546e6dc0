/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * architecture.c -- the table of architectures; see architecture.h
 *
 * A new architecture is a row here, and rows of tests/ref/make.py and checkpoints.py that compare it with
 * transformers.
 */
#include "model/architecture.h"
#include <string.h>

#define LLAMA_STEM \
	.layout = (const char *const []){ "/model/embed_tokens", "/model/layers/#", "*", NULL }, \
	.embedding = "/model/embed_tokens", .blocks = "/model/layers", \
	.final_norm = "/model/norm", .head = "/lm_head", \
	.buffers = (const char *const []){ "*.rotary_emb.inv_freq", NULL }, \
	.norm_kind = NORM_RMS

#define LLAMA_NORMS \
	.norm = { "input_layernorm", "post_attention_layernorm" }

/* Rows of linear layers. */
#define ATTENTION_ROWS \
	{ "self_attn/q_proj", ROLE_Q, PROJECTION_QKV, ROWS_AS_IS, NULL }, \
	{ "self_attn/k_proj", ROLE_K, PROJECTION_QKV, ROWS_AS_IS, NULL }, \
	{ "self_attn/v_proj", ROLE_V, PROJECTION_QKV, ROWS_AS_IS, NULL }, \
	{ "self_attn/o_proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL }
#define MLP_ROWS \
	{ "mlp/gate_proj", ROLE_GATE, PROJECTION_GATE_UP, ROWS_AS_IS, NULL }, \
	{ "mlp/up_proj", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL }, \
	{ "mlp/down_proj", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL }

#define LLAMA_LAYERS \
	.linear = { ATTENTION_ROWS, MLP_ROWS }

#define LLAMA_TREE \
	LLAMA_STEM, LLAMA_NORMS, LLAMA_LAYERS

#define ATTENTION_BIAS \
	[ROLE_Q] = "attention_bias", [ROLE_K] = "attention_bias", [ROLE_V] = "attention_bias", \
	[ROLE_OUTPUT] = "attention_bias"

#define MISTRAL \
	LLAMA_TREE, .sliding_kind = SLIDING_ALL, \
	.absent = { .vocab = 32000, .hidden = 4096, .blocks = 32, .heads = 32, .kv_heads = 8, \
		.intermediate = 14336, .positions = 131072, .bos = 1, .eos = 2, .window = 4096, .eps = 1e-6, \
		.act = "silu" }

/* A Llama whose MLP may be a mixture of experts, with a shared expert or without. */
#define SPARSE_ROWS(shared) \
	.linear = { ATTENTION_ROWS, MLP_ROWS, \
		shared \
		{ "mlp/experts/#/gate_proj", ROLE_EXPERT_GATE, PROJECTION_EXPERT_GATE_UP, ROWS_AS_IS, \
			NULL }, \
		{ "mlp/experts/#/up_proj", ROLE_EXPERT_UP, PROJECTION_EXPERT_GATE_UP, ROWS_AS_IS, \
			NULL }, \
		{ "mlp/experts/#/down_proj", ROLE_EXPERT_DOWN, PROJECTION_EXPERT_DOWN, ROWS_AS_IS, \
			NULL }, \
	}
#define ROUTER { "mlp/gate", ROLE_ROUTER, PROJECTION_ROUTER, ROWS_AS_IS, NULL },
#define SHARED_EXPERT \
	{ "mlp/shared_expert/gate_proj", ROLE_SHARED_GATE, PROJECTION_ROUTER, ROWS_AS_IS, NULL }, \
	{ "mlp/shared_expert/up_proj", ROLE_SHARED_UP, PROJECTION_ROUTER, ROWS_AS_IS, NULL }, \
	ROUTER \
	{ "mlp/shared_expert_gate", ROLE_SHARED_SWITCH, PROJECTION_ROUTER, ROWS_AS_IS, NULL }, \
	{ "mlp/shared_expert/down_proj", ROLE_SHARED_DOWN, PROJECTION_SHARED_DOWN, ROWS_AS_IS, NULL },

#define QWEN_ABSENT \
	.vocab = 151936, .hidden = 4096, .blocks = 32, .heads = 32, .kv_heads = 32, .intermediate = 22016, \
	.positions = 32768, .bos = -1, .eos = -1, .window = 4096, .eps = 1e-6, .act = "silu"

/* Of Qwen2-VL and Qwen2.5-VL. */
#define QWEN_VL_TEXT \
	LLAMA_TREE, .sliding_kind = SLIDING_LATE, .axes = 3, \
	.bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true }, \
	.absent = { .vocab = 152064, .hidden = 8192, .blocks = 80, .heads = 64, .kv_heads = 8, \
		.intermediate = 29568, .positions = 32768, .bos = 151643, .eos = 151645, .window = 4096, \
		.eps = 1e-5, .act = "silu", .theta = 1e6 }

#define GEMMA \
	LLAMA_STEM, LLAMA_LAYERS, .norm_offset = 1, .embedding_scaled = true, \
	.bias_key = { ATTENTION_BIAS }, \
	.switches = (const struct switch_row []){ { "use_bidirectional_attention", false }, { NULL, false } }

#define GEMMA_NORMS \
	.norm = { [BEFORE_ATTENTION] = "input_layernorm", [AFTER_ATTENTION] = "post_attention_layernorm", \
		[BEFORE_MLP] = "pre_feedforward_layernorm", [AFTER_MLP] = "post_feedforward_layernorm" }, \
	.keys = (const struct key_row []){ { "hidden_act", "hidden_activation", ONE_NAME }, \
		{ NULL, NULL, ONE_NAME } }, \
	.sliding_kind = SLIDING_PATTERN, .scale_key = "query_pre_attn_scalar", \
	.logit_cap_key = "final_logit_softcapping"

#define GEMMA_ABSENT \
	.hidden = 2304, .blocks = 26, .heads = 8, .kv_heads = 4, .head_dim = 256, .intermediate = 9216, \
	.bos = 2, .eos = 1, .tied = true, .eps = 1e-6, .window = 4096, .scale = 256, \
	.act = "gelu_pytorch_tanh"

const struct architecture architectures[] = {
	{ .name = "LlamaForCausalLM", .model_type = "llama", LLAMA_TREE,
	  .bias_key = { ATTENTION_BIAS, [ROLE_GATE] = "mlp_bias", [ROLE_UP] = "mlp_bias",
		[ROLE_DOWN] = "mlp_bias" },
	  .absent = { .vocab = 32000, .hidden = 4096, .blocks = 32, .heads = 32, .intermediate = 11008,
		.positions = 2048, .bos = 1, .eos = 2, .eps = 1e-6, .act = "silu" } },

	{ .name = "MistralForCausalLM", .model_type = "mistral", MISTRAL },
	{ .name = "MinistralForCausalLM", .model_type = "ministral", MISTRAL },	/* has layer_types */

	{ .name = "Qwen2ForCausalLM", .model_type = "qwen2", LLAMA_TREE, .sliding_kind = SLIDING_LATE,
	  .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true }, .absent = { QWEN_ABSENT } },

	{ .name = "Qwen2VLTextModel", .model_type = "qwen2_vl_text", QWEN_VL_TEXT },
	{ .name = "Qwen2_5_VLTextModel", .model_type = "qwen2_5_vl_text", QWEN_VL_TEXT },

	{ .name = "Qwen3ForCausalLM", .model_type = "qwen3", LLAMA_TREE, .sliding_kind = SLIDING_LATE,
	  .head_norm = { "self_attn/q_norm", "self_attn/k_norm" },
	  .bias_key = { ATTENTION_BIAS }, .absent = { QWEN_ABSENT, .head_dim = 128 } },

	{ .name = "MixtralForCausalLM", .model_type = "mixtral", LLAMA_STEM, LLAMA_NORMS,
	  .sliding_kind = SLIDING_WHOLE,
	  .linear = { ATTENTION_ROWS,
		{ "block_sparse_moe/gate", ROLE_ROUTER, PROJECTION_ROUTER, ROWS_AS_IS, NULL },
		{ "block_sparse_moe/experts/#/w1", ROLE_EXPERT_GATE, PROJECTION_EXPERT_GATE_UP, ROWS_AS_IS,
			NULL },
		{ "block_sparse_moe/experts/#/w3", ROLE_EXPERT_UP, PROJECTION_EXPERT_GATE_UP, ROWS_AS_IS,
			NULL },
		{ "block_sparse_moe/experts/#/w2", ROLE_EXPERT_DOWN, PROJECTION_EXPERT_DOWN, ROWS_AS_IS,
			NULL },
	  },
	  .keys = (const struct key_row []){ { "num_experts", "num_local_experts", OURS_FIRST },
		{ "moe_intermediate_size", "intermediate_size", ONE_NAME },
		{ "norm_topk_prob", NULL, ONE_NAME }, { "decoder_sparse_step", NULL, ONE_NAME },
		{ "mlp_only_layers", NULL, ONE_NAME }, { NULL, NULL, ONE_NAME } },
	  .absent = { .vocab = 32000, .hidden = 4096, .blocks = 32, .heads = 32, .kv_heads = 8,
		.intermediate = 14336, .positions = 131072, .bos = 1, .eos = 2, .eps = 1e-5, .act = "silu",
		.theta = 1e6, .experts = 8, .chosen = 2, .expert = 14336, .normalized = true } },

	{ .name = "Qwen2MoeForCausalLM", .model_type = "qwen2_moe", LLAMA_STEM, LLAMA_NORMS,
	  SPARSE_ROWS(SHARED_EXPERT),
	  .sliding_kind = SLIDING_EVEN, .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true },
	  .bias_key = { [ROLE_Q] = "qkv_bias", [ROLE_K] = "qkv_bias", [ROLE_V] = "qkv_bias" },
	  .absent = { .vocab = 151936, .hidden = 2048, .blocks = 24, .heads = 16, .kv_heads = 16,
		.intermediate = 5632, .positions = 32768, .bos = -1, .eos = -1, .eps = 1e-6, .act = "silu",
		.window = 4096, .experts = 60, .chosen = 4, .expert = 1408, .shared = 5632 } },

	{ .name = "Qwen3MoeForCausalLM", .model_type = "qwen3_moe", LLAMA_STEM, LLAMA_NORMS,
	  SPARSE_ROWS(ROUTER), .sliding_kind = SLIDING_SWITCHED,
	  .head_norm = { "self_attn/q_norm", "self_attn/k_norm" },
	  .bias_key = { ATTENTION_BIAS },
	  .keys = (const struct key_row []){ { "num_experts", "num_local_experts", THEIRS_FIRST },
		{ NULL, NULL, ONE_NAME } },
	  .absent = { .vocab = 151936, .hidden = 2048, .blocks = 24, .heads = 32, .kv_heads = 4,
		.intermediate = 6144, .positions = 32768, .bos = -1, .eos = -1, .eps = 1e-6, .act = "silu",
		.window = 4096, .experts = 128, .chosen = 8, .expert = 768 } },

	{ .name = "Phi3ForCausalLM", .model_type = "phi3", LLAMA_STEM, LLAMA_NORMS,
	  .sliding_kind = SLIDING_WHOLE,
	  .linear = {
		{ "self_attn/q_proj", ROLE_Q, PROJECTION_QKV, ROWS_FUSED, "self_attn/qkv_proj" },
		{ "self_attn/k_proj", ROLE_K, PROJECTION_QKV, ROWS_FUSED, "self_attn/qkv_proj" },
		{ "self_attn/v_proj", ROLE_V, PROJECTION_QKV, ROWS_FUSED, "self_attn/qkv_proj" },
		{ "self_attn/o_proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL },
		{ "mlp/gate_proj", ROLE_GATE, PROJECTION_GATE_UP, ROWS_FUSED, "mlp/gate_up_proj" },
		{ "mlp/up_proj", ROLE_UP, PROJECTION_GATE_UP, ROWS_FUSED, "mlp/gate_up_proj" },
		{ "mlp/down_proj", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL },
	  },
	  .longrope = (const char *const []){ "su", "yarn", NULL },
	  .absent = { .vocab = 32064, .hidden = 3072, .blocks = 32, .heads = 32, .intermediate = 8192,
		.positions = 4096, .bos = 1, .eos = 32000, .eps = 1e-5, .rotary = 1, .original = 4096,
		.act = "silu" } },

	{ .name = "GemmaForCausalLM", .model_type = "gemma", GEMMA, LLAMA_NORMS, .gelu_is_tanh = true,
	  .absent = { .vocab = 256000, .hidden = 3072, .blocks = 28, .heads = 16, .kv_heads = 16,
		.head_dim = 256, .intermediate = 24576, .positions = 8192, .bos = 2, .eos = 1, .tied = true,
		.eps = 1e-6, .act = "gelu_pytorch_tanh" } },

	{ .name = "Gemma2ForCausalLM", .model_type = "gemma2", GEMMA, GEMMA_NORMS,
	  .attention_cap_key = "attn_logit_softcapping",
	  .absent = { GEMMA_ABSENT, .vocab = 256000, .positions = 8192, .pattern = 2, .attention_cap = 50,
		.logit_cap = 30 } },

	{ .name = "Gemma3ForCausalLM", .model_type = "gemma3_text", GEMMA, GEMMA_NORMS,
	  .head_norm = { "self_attn/q_norm", "self_attn/k_norm" },
	  .local_theta_key = "rope_local_base_freq", .pattern_key = "sliding_window_pattern",
	  .absent = { GEMMA_ABSENT, .vocab = 262208, .positions = 131072, .pattern = 6, .theta = 1e6 } },

	{ .name = "GPT2LMHeadModel", .model_type = "gpt2",
	  .layout = (const char *const []){ "/transformer/wte", "/transformer/wpe", "/transformer/h/#", "*",
		NULL },
	  .embedding = "/transformer/wte", .position = "/transformer/wpe", .blocks = "/transformer/h",
	  .norm = { "ln_1", "ln_2" }, .final_norm = "/transformer/ln_f", .head = "/lm_head",
	  .linear = {
		{ "attn/c_attn", ROLE_QKV, PROJECTION_QKV, ROWS_TRANSPOSED, NULL },
		{ "attn/c_proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_TRANSPOSED, NULL },
		{ "mlp/c_fc", ROLE_UP, PROJECTION_GATE_UP, ROWS_TRANSPOSED, NULL },
		{ "mlp/c_proj", ROLE_DOWN, PROJECTION_DOWN, ROWS_TRANSPOSED, NULL },
	  },
	  .prefix = "transformer",
	  .buffers = (const char *const []){ "*.attn.bias", "*.attn.masked_bias", "*.crossattention.bias",
		"*.crossattention.masked_bias", NULL },
	  .norm_kind = NORM_LAYER,
	  .bias = { [ROLE_QKV] = true, [ROLE_OUTPUT] = true, [ROLE_UP] = true, [ROLE_DOWN] = true },
	  .keys = (const struct key_row []){
		{ "hidden_size", "n_embd", OURS_FIRST }, { "num_attention_heads", "n_head", OURS_FIRST },
		{ "num_hidden_layers", "n_layer", OURS_FIRST },
		{ "max_position_embeddings", "n_positions", OURS_FIRST },
		{ "intermediate_size", "n_inner", ONE_NAME },
		{ "rms_norm_eps", "layer_norm_epsilon", ONE_NAME },
		{ "hidden_act", "activation_function", ONE_NAME }, { "num_key_value_heads", NULL, ONE_NAME },
		{ "head_dim", NULL, ONE_NAME }, { NULL, NULL, ONE_NAME } },
	  .switches = (const struct switch_row []){ { "scale_attn_weights", true },
		{ "scale_attn_by_inverse_layer_idx", false }, { NULL, false } },
	  .absent = { .vocab = 50257, .hidden = 768, .blocks = 12, .heads = 12, .positions = 1024,
		.bos = 50256, .eos = 50256, .tied = true, .eps = 1e-5, .act = "gelu_new" } },

	{ .name = "OPTForCausalLM", .model_type = "opt",
	  .layout = (const char *const []){ "/model/decoder/embed_tokens", "/model/decoder/embed_positions",
		"/model/decoder/layers/#", "*", NULL },
	  .embedding = "/model/decoder/embed_tokens", .blocks = "/model/decoder/layers",
	  .position = "/model/decoder/embed_positions", .position_offset = 2,
	  .norm = { "self_attn_layer_norm", "final_layer_norm" },
	  .final_norm = "/model/decoder/final_layer_norm", .head = "/lm_head",
	  .linear = {
		{ "self_attn/q_proj", ROLE_Q, PROJECTION_QKV, ROWS_AS_IS, NULL },
		{ "self_attn/k_proj", ROLE_K, PROJECTION_QKV, ROWS_AS_IS, NULL },
		{ "self_attn/v_proj", ROLE_V, PROJECTION_QKV, ROWS_AS_IS, NULL },
		{ "self_attn/out_proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL },
		{ "fc1", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
		{ "fc2", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL },
	  },
	  .prefix = "model", .buffers = (const char *const []){ NULL }, .norm_kind = NORM_LAYER,
	  .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true, [ROLE_OUTPUT] = true, [ROLE_UP] = true,
		[ROLE_DOWN] = true },
	  .bias_key = { [ROLE_Q] = "enable_bias", [ROLE_K] = "enable_bias", [ROLE_V] = "enable_bias",
		[ROLE_OUTPUT] = "enable_bias", [ROLE_UP] = "enable_bias", [ROLE_DOWN] = "enable_bias" },
	  .before_key = "do_layer_norm_before", .width_key = "word_embed_proj_dim",
	  .keys = (const struct key_row []){
		{ "intermediate_size", "ffn_dim", ONE_NAME },
		{ "hidden_act", "activation_function", ONE_NAME },
		{ "rms_norm_eps", NULL, ONE_NAME }, { "num_key_value_heads", NULL, ONE_NAME },
		{ "head_dim", NULL, ONE_NAME }, { NULL, NULL, ONE_NAME } },
	  .switches = (const struct switch_row []){ { "layer_norm_elementwise_affine", true },
		{ "_remove_final_layer_norm", false }, { NULL, false } },
	  .absent = { .vocab = 50272, .hidden = 768, .blocks = 12, .heads = 12, .intermediate = 3072,
		.positions = 2048, .bos = 2, .eos = 2, .tied = true, .eps = 1e-5, .act = "relu" } },

	{ .name = "GPTNeoXForCausalLM", .model_type = "gpt_neox",
	  .layout = (const char *const []){ "/gpt_neox/embed_in", "/gpt_neox/layers/#", "*", NULL },
	  .embedding = "/gpt_neox/embed_in", .blocks = "/gpt_neox/layers",
	  .norm = { "input_layernorm", "post_attention_layernorm" },
	  .final_norm = "/gpt_neox/final_layer_norm", .head = "/embed_out",
	  .linear = {
		{ "attention/q_proj", ROLE_Q, PROJECTION_QKV, ROWS_INTERLEAVED, "attention/query_key_value" },
		{ "attention/k_proj", ROLE_K, PROJECTION_QKV, ROWS_INTERLEAVED, "attention/query_key_value" },
		{ "attention/v_proj", ROLE_V, PROJECTION_QKV, ROWS_INTERLEAVED, "attention/query_key_value" },
		{ "attention/dense", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL },
		{ "mlp/dense_h_to_4h", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
		{ "mlp/dense_4h_to_h", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL },
	  },
	  .buffers = (const char *const []){ "*.attention.bias", "*.attention.masked_bias",
		"*.rotary_emb.inv_freq", NULL },
	  .norm_kind = NORM_LAYER, .parallel = true,
	  .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true, [ROLE_OUTPUT] = true, [ROLE_UP] = true,
		[ROLE_DOWN] = true },
	  .bias_key = { ATTENTION_BIAS }, .parallel_key = "use_parallel_residual",
	  .keys = (const struct key_row []){
		{ "rms_norm_eps", "layer_norm_eps", ONE_NAME }, { "num_key_value_heads", NULL, ONE_NAME },
		{ "head_dim", NULL, ONE_NAME }, { "rope_theta", "rotary_emb_base", ONE_NAME },
		{ "partial_rotary_factor", "rotary_pct", ONE_NAME }, { NULL, NULL, ONE_NAME } },
	  .absent = { .vocab = 50432, .hidden = 6144, .blocks = 44, .heads = 64, .intermediate = 24576,
		.positions = 2048, .bos = 0, .eos = 2, .eps = 1e-5, .rotary = 0.25, .act = "gelu" } },

	{ .name = NULL },
};

bool architecture_norms_heads(const struct architecture *a)
{
	return a->head_norm[0] || a->head_norm[1];
}

const struct architecture *architecture_find(const char *model_type, const char *name)
{
	for (const struct architecture *a = architectures; a->name; a++)
		if (model_type ? !strcmp(model_type, a->model_type) : name && !strcmp(name, a->name))
			return a;
	return NULL;
}
