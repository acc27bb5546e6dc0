/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_table.c -- one row an architecture of GGUF files; see gguf_table.h */
#include "import/gguf_table.h"

#define SIZES(blocks, positions, hidden, intermediate) \
	{ "block_count", blocks, GGUF_BLOCKS, true }, { "context_length", positions, GGUF_CONTEXT, true }, \
	{ "embedding_length", hidden, GGUF_HIDDEN, true }, \
	{ "feed_forward_length", intermediate, GGUF_SIZE, true }

#define LLAMA_SIZES \
	SIZES("num_hidden_layers", "max_position_embeddings", "hidden_size", "intermediate_size"), \
	{ "attention.layer_norm_rms_epsilon", "rms_norm_eps", GGUF_REAL, true }

#define NORM_NAMES(norm, ffn_norm) \
	{ "output_norm", "model.norm", norm }, \
	{ "blk.#.attn_norm", "model.layers.#.input_layernorm", norm }, \
	{ "blk.#.ffn_norm", "model.layers.#." ffn_norm, norm }

#define STEM_NAMES \
	{ "token_embd", "model.embed_tokens", GGUF_AS_IS }, { "output", "lm_head", GGUF_AS_IS }, \
	{ "blk.#.attn_output", "model.layers.#.self_attn.o_proj", GGUF_AS_IS }, \
	{ "blk.#.ffn_down", "model.layers.#.mlp.down_proj", GGUF_AS_IS }

#define HEAD_NORM_NAMES(norm) \
	{ "blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", norm }, \
	{ "blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", norm }

#define LAYER_NAMES(q, k) \
	STEM_NAMES, { "blk.#.attn_q", "model.layers.#.self_attn.q_proj", q }, \
	{ "blk.#.attn_k", "model.layers.#.self_attn.k_proj", k }, \
	{ "blk.#.attn_v", "model.layers.#.self_attn.v_proj", GGUF_AS_IS }, \
	{ "blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", GGUF_AS_IS }, \
	{ "blk.#.ffn_up", "model.layers.#.mlp.up_proj", GGUF_AS_IS }

#define LLAMA_NAMES(q, k) LAYER_NAMES(q, k), NORM_NAMES(GGUF_AS_IS, "post_attention_layernorm")

#define EXPERT_NAMES(router, gate, up, down) \
	{ "blk.#.ffn_gate_inp", "model.layers.#." router, GGUF_AS_IS }, \
	{ "blk.#.ffn_gate_exps", "model.layers.#." gate, GGUF_AS_IS }, \
	{ "blk.#.ffn_up_exps", "model.layers.#." up, GGUF_AS_IS }, \
	{ "blk.#.ffn_down_exps", "model.layers.#." down, GGUF_AS_IS }
#define QWEN_EXPERT_NAMES \
	EXPERT_NAMES("mlp.gate", "mlp.experts.@.gate_proj", "mlp.experts.@.up_proj", \
		"mlp.experts.@.down_proj")

#define EXPERT_KEYS(experts) \
	{ GGUF_EXPERT_COUNT, experts, GGUF_EXPERTS, true }, \
	{ "expert_used_count", "num_experts_per_tok", GGUF_SIZE, true }

#define GEMMA_NAMES \
	LAYER_NAMES(GGUF_AS_IS, GGUF_AS_IS), NORM_NAMES(GGUF_PLUS_ONE, "pre_feedforward_layernorm"), \
	{ "blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm", GGUF_PLUS_ONE }, \
	{ "blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm", GGUF_PLUS_ONE }

/* These come last, in this order. NULL: the class has no such key. */
#define HEAD_KEYS(heads, kv_heads, head_dim, window) \
	{ "attention.head_count", heads, GGUF_HEADS, true }, \
	{ "attention.head_count_kv", kv_heads, GGUF_KV_HEADS, false }, \
	{ "attention.key_length", head_dim, GGUF_KEY_LENGTH, false }, \
	{ "attention.value_length", head_dim, GGUF_VALUE_LENGTH, false }, \
	{ "attention.sliding_window", window, GGUF_WINDOW, false }
#define ROTARY_KEYS(theta, rotary) \
	{ "rope.freq_base", theta, GGUF_THETA, false }, \
	{ "rope.dimension_count", rotary, GGUF_ROTATED, false }, \
	{ "rope.scaling.type", "rope_scaling", GGUF_SCALING, false }, \
	{ "rope.scaling.factor", "factor", GGUF_FACTOR, false }, \
	{ "rope.scale_linear", "factor", GGUF_FACTOR, false }
#define LAST_KEYS { "vocab_size", "vocab_size", GGUF_VOCAB, false }
#define LLAMA_KEYS(window) \
	HEAD_KEYS("num_attention_heads", "num_key_value_heads", "head_dim", window), \
	ROTARY_KEYS("rope_theta", NULL), LAST_KEYS
#define GEMMA_KEYS \
	{ "attention.key_length", "query_pre_attn_scalar", GGUF_SCALE, false }, LLAMA_KEYS("sliding_window")

#define KEYS(...) .keys = (const struct gguf_key []){ __VA_ARGS__, { NULL, NULL, GGUF_SIZE, false } }
#define NAMES(...) .names = (const struct gguf_name []){ __VA_ARGS__, { NULL, NULL, GGUF_AS_IS } }

const struct gguf_key gguf_last_keys[] = {
	{ GGUF_BOS_ID, "bos_token_id", GGUF_BOS, false },
	{ GGUF_EOS_ID, "eos_token_id", GGUF_EOS, false },
	{ GGUF_HEAD, "tie_word_embeddings", GGUF_NO_TENSOR, false },
	{ NULL, NULL, GGUF_SIZE, false },
};

const struct gguf_tensor_key gguf_rotary_tensors[] = {
	{ GGUF_ROPE_FREQS, NULL }, { "rope_factors_short.weight", "short_factor" },
	{ "rope_factors_long.weight", "long_factor" }, { NULL, NULL },
};

const struct gguf_row gguf_rows[] = {
	{ .name = "llama", .model_type = "llama", .class = "LlamaForCausalLM",
	  KEYS(LLAMA_SIZES, { "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false },
		{ "blk.0.ffn_up.bias", "mlp_bias", GGUF_TENSOR, false }, LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_PAIRS_Q, GGUF_PAIRS_K)) },

	{ .name = "qwen2", .model_type = "qwen2", .class = "Qwen2ForCausalLM",
	  KEYS(LLAMA_SIZES, LLAMA_KEYS(NULL)), NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS)) },

	{ .name = "qwen3", .model_type = "qwen3", .class = "Qwen3ForCausalLM",
	  KEYS(LLAMA_SIZES, { "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false },
		LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), HEAD_NORM_NAMES(GGUF_AS_IS)) },

	{ .name = "llama", .model_type = "mixtral", .class = "MixtralForCausalLM", .experts = true,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_local_experts"), LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_PAIRS_Q, GGUF_PAIRS_K), EXPERT_NAMES("block_sparse_moe.gate",
		"block_sparse_moe.experts.@.w1", "block_sparse_moe.experts.@.w3",
		"block_sparse_moe.experts.@.w2")) },

	{ .name = "qwen2moe", .model_type = "qwen2_moe", .class = "Qwen2MoeForCausalLM", .experts = true,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_experts"),
		{ "expert_feed_forward_length", "moe_intermediate_size", GGUF_SIZE, true },
		{ "expert_shared_feed_forward_length", "shared_expert_intermediate_size", GGUF_SIZE, true },
		LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), QWEN_EXPERT_NAMES,
		{ "blk.#.ffn_gate_inp_shexp", "model.layers.#.mlp.shared_expert_gate", GGUF_ONE_ROW },
		{ "blk.#.ffn_gate_shexp", "model.layers.#.mlp.shared_expert.gate_proj", GGUF_AS_IS },
		{ "blk.#.ffn_up_shexp", "model.layers.#.mlp.shared_expert.up_proj", GGUF_AS_IS },
		{ "blk.#.ffn_down_shexp", "model.layers.#.mlp.shared_expert.down_proj", GGUF_AS_IS }) },

	{ .name = "qwen3moe", .model_type = "qwen3_moe", .class = "Qwen3MoeForCausalLM", .experts = true,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_experts"),
		{ "expert_feed_forward_length", "moe_intermediate_size", GGUF_SIZE, true },
		{ "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false },
		{ "", "norm_topk_prob", GGUF_TRUE, false }, LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), HEAD_NORM_NAMES(GGUF_AS_IS), QWEN_EXPERT_NAMES) },

	{ .name = "phi3", .model_type = "phi3", .class = "Phi3ForCausalLM", .longrope = true,
	  KEYS(LLAMA_SIZES, { "rope.scaling.original_context_length", "original_max_position_embeddings",
		GGUF_SIZE, false },
		HEAD_KEYS("num_attention_heads", "num_key_value_heads", NULL, "sliding_window"),
		ROTARY_KEYS("rope_theta", "partial_rotary_factor"), LAST_KEYS),
	  NAMES(STEM_NAMES, NORM_NAMES(GGUF_AS_IS, "post_attention_layernorm"),
		{ "blk.#.attn_qkv", "model.layers.#.self_attn.qkv_proj", GGUF_AS_IS },
		{ "blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj", GGUF_AS_IS }) },

	{ .name = "gemma", .model_type = "gemma", .class = "GemmaForCausalLM",
	  KEYS(LLAMA_SIZES, LLAMA_KEYS(NULL)),
	  NAMES(LAYER_NAMES(GGUF_AS_IS, GGUF_AS_IS), NORM_NAMES(GGUF_PLUS_ONE, "post_attention_layernorm")) },

	{ .name = "gemma2", .model_type = "gemma2", .class = "Gemma2ForCausalLM", .scale_blocks = 46,
	  KEYS(LLAMA_SIZES, { "attn_logit_softcapping", "attn_logit_softcapping", GGUF_REAL, false },
		{ "final_logit_softcapping", "final_logit_softcapping", GGUF_REAL, false }, GEMMA_KEYS),
	  NAMES(GEMMA_NAMES) },

	{ .name = "gemma3", .model_type = "gemma3_text", .class = "Gemma3ForCausalLM",
	  .scale_blocks = 62,
	  KEYS(LLAMA_SIZES, { "final_logit_softcapping", "final_logit_softcapping", GGUF_REAL, false },
		{ "rope.freq_base_swa", "rope_local_base_freq", GGUF_REAL, false },
		{ "attention.sliding_window_pattern", "sliding_window_pattern", GGUF_SIZE, false },
		GEMMA_KEYS),
	  NAMES(GEMMA_NAMES, HEAD_NORM_NAMES(GGUF_PLUS_ONE)) },

	{ .name = "gpt2", .model_type = "gpt2", .class = "GPT2LMHeadModel",
	  KEYS(SIZES("n_layer", "n_positions", "n_embd", "n_inner"),
		{ "attention.layer_norm_epsilon", "layer_norm_epsilon", GGUF_REAL, true },
		HEAD_KEYS("n_head", NULL, NULL, NULL), LAST_KEYS),
	  NAMES({ "token_embd", "transformer.wte", GGUF_AS_IS },
		{ "position_embd", "transformer.wpe", GGUF_AS_IS },
		{ "output_norm", "transformer.ln_f", GGUF_AS_IS }, { "output", "lm_head", GGUF_AS_IS },
		{ "blk.#.attn_norm", "transformer.h.#.ln_1", GGUF_AS_IS },
		{ "blk.#.ffn_norm", "transformer.h.#.ln_2", GGUF_AS_IS },
		{ "blk.#.attn_qkv", "transformer.h.#.attn.c_attn", GGUF_TRANSPOSED },
		{ "blk.#.attn_output", "transformer.h.#.attn.c_proj", GGUF_TRANSPOSED },
		{ "blk.#.ffn_up", "transformer.h.#.mlp.c_fc", GGUF_TRANSPOSED },
		{ "blk.#.ffn_down", "transformer.h.#.mlp.c_proj", GGUF_TRANSPOSED }) },

	{ .name = "gptneox", .model_type = "gpt_neox", .class = "GPTNeoXForCausalLM",
	  KEYS(SIZES("num_hidden_layers", "max_position_embeddings", "hidden_size", "intermediate_size"),
		{ "attention.layer_norm_epsilon", "layer_norm_eps", GGUF_REAL, true },
		{ "use_parallel_residual", "use_parallel_residual", GGUF_FLAG, true },
		{ "blk.0.attn_qkv.bias", "attention_bias", GGUF_TENSOR, false },
		HEAD_KEYS("num_attention_heads", NULL, NULL, NULL),
		ROTARY_KEYS("rotary_emb_base", "rotary_pct"), LAST_KEYS),
	  NAMES({ "token_embd", "gpt_neox.embed_in", GGUF_AS_IS }, { "output", "embed_out", GGUF_AS_IS },
		{ "output_norm", "gpt_neox.final_layer_norm", GGUF_AS_IS },
		{ "blk.#.attn_norm", "gpt_neox.layers.#.input_layernorm", GGUF_AS_IS },
		{ "blk.#.ffn_norm", "gpt_neox.layers.#.post_attention_layernorm", GGUF_AS_IS },
		{ "blk.#.attn_qkv", "gpt_neox.layers.#.attention.query_key_value", GGUF_HEADS_APART },
		{ "blk.#.attn_output", "gpt_neox.layers.#.attention.dense", GGUF_AS_IS },
		{ "blk.#.ffn_up", "gpt_neox.layers.#.mlp.dense_h_to_4h", GGUF_AS_IS },
		{ "blk.#.ffn_down", "gpt_neox.layers.#.mlp.dense_4h_to_h", GGUF_AS_IS }) },

	{ .name = NULL },
};
