/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_table.c -- one row an architecture of GGUF files; see gguf_table_private.h */
#include "import/gguf_table_private.h"

#define SIZES(blocks, positions, hidden, intermediate) \
	{ "block_count", blocks, GGUF_SIZE, true }, { "context_length", positions, GGUF_SIZE, true }, \
	{ "embedding_length", hidden, GGUF_SIZE, true }, \
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
	{ "expert_count", experts, GGUF_SIZE, true }, \
	{ "expert_used_count", "num_experts_per_tok", GGUF_SIZE, true }

#define GEMMA \
	LLAMA_HEADS, .window = "sliding_window", .scale = "query_pre_attn_scalar"
#define GEMMA_NAMES \
	LAYER_NAMES(GGUF_AS_IS, GGUF_AS_IS), NORM_NAMES(GGUF_PLUS_ONE, "pre_feedforward_layernorm"), \
	{ "blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm", GGUF_PLUS_ONE }, \
	{ "blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm", GGUF_PLUS_ONE }

#define LLAMA_HEADS \
	.heads = "num_attention_heads", .kv_heads = "num_key_value_heads", .head_dim = "head_dim", \
	.theta = "rope_theta"

#define KEYS(...) .keys = (const struct gguf_key []){ __VA_ARGS__, { NULL, NULL, GGUF_SIZE, false } }
#define NAMES(...) .names = (const struct gguf_name []){ __VA_ARGS__, { NULL, NULL, GGUF_AS_IS } }

const struct gguf_row gguf_rows[] = {
	{ .name = "llama", .model_type = "llama", .class = "LlamaForCausalLM", LLAMA_HEADS,
	  KEYS(LLAMA_SIZES, { "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false },
		{ "blk.0.ffn_up.bias", "mlp_bias", GGUF_TENSOR, false }),
	  NAMES(LLAMA_NAMES(GGUF_PAIRS_Q, GGUF_PAIRS_K)) },

	{ .name = "qwen2", .model_type = "qwen2", .class = "Qwen2ForCausalLM", LLAMA_HEADS,
	  KEYS(LLAMA_SIZES), NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS)) },

	{ .name = "qwen3", .model_type = "qwen3", .class = "Qwen3ForCausalLM", LLAMA_HEADS,
	  KEYS(LLAMA_SIZES, { "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false }),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), HEAD_NORM_NAMES(GGUF_AS_IS)) },

	{ .name = "llama", .model_type = "mixtral", .class = "MixtralForCausalLM", .experts = true,
	  LLAMA_HEADS,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_local_experts")),
	  NAMES(LLAMA_NAMES(GGUF_PAIRS_Q, GGUF_PAIRS_K), EXPERT_NAMES("block_sparse_moe.gate",
		"block_sparse_moe.experts.@.w1", "block_sparse_moe.experts.@.w3",
		"block_sparse_moe.experts.@.w2")) },

	{ .name = "qwen2moe", .model_type = "qwen2_moe", .class = "Qwen2MoeForCausalLM", .experts = true,
	  LLAMA_HEADS,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_experts"),
		{ "expert_feed_forward_length", "moe_intermediate_size", GGUF_SIZE, true },
		{ "expert_shared_feed_forward_length", "shared_expert_intermediate_size", GGUF_SIZE, true }),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), QWEN_EXPERT_NAMES,
		{ "blk.#.ffn_gate_inp_shexp", "model.layers.#.mlp.shared_expert_gate", GGUF_ONE_ROW },
		{ "blk.#.ffn_gate_shexp", "model.layers.#.mlp.shared_expert.gate_proj", GGUF_AS_IS },
		{ "blk.#.ffn_up_shexp", "model.layers.#.mlp.shared_expert.up_proj", GGUF_AS_IS },
		{ "blk.#.ffn_down_shexp", "model.layers.#.mlp.shared_expert.down_proj", GGUF_AS_IS }) },

	{ .name = "qwen3moe", .model_type = "qwen3_moe", .class = "Qwen3MoeForCausalLM", .experts = true,
	  LLAMA_HEADS,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_experts"),
		{ "expert_feed_forward_length", "moe_intermediate_size", GGUF_SIZE, true },
		{ "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false },
		{ "", "norm_topk_prob", GGUF_TRUE, false }),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), HEAD_NORM_NAMES(GGUF_AS_IS), QWEN_EXPERT_NAMES) },

	{ .name = "phi3", .model_type = "phi3", .class = "Phi3ForCausalLM", .heads = "num_attention_heads",
	  .kv_heads = "num_key_value_heads", .theta = "rope_theta", .rotary = "partial_rotary_factor",
	  .longrope = true, .window = "sliding_window",
	  KEYS(LLAMA_SIZES, { "rope.scaling.original_context_length", "original_max_position_embeddings",
		GGUF_SIZE, false }),
	  NAMES(STEM_NAMES, NORM_NAMES(GGUF_AS_IS, "post_attention_layernorm"),
		{ "blk.#.attn_qkv", "model.layers.#.self_attn.qkv_proj", GGUF_AS_IS },
		{ "blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj", GGUF_AS_IS }) },

	{ .name = "gemma", .model_type = "gemma", .class = "GemmaForCausalLM", LLAMA_HEADS, KEYS(LLAMA_SIZES),
	  NAMES(LAYER_NAMES(GGUF_AS_IS, GGUF_AS_IS), NORM_NAMES(GGUF_PLUS_ONE, "post_attention_layernorm")) },

	{ .name = "gemma2", .model_type = "gemma2", .class = "Gemma2ForCausalLM", GEMMA, .scale_blocks = 46,
	  KEYS(LLAMA_SIZES, { "attn_logit_softcapping", "attn_logit_softcapping", GGUF_REAL, false },
		{ "final_logit_softcapping", "final_logit_softcapping", GGUF_REAL, false }),
	  NAMES(GEMMA_NAMES) },

	{ .name = "gemma3", .model_type = "gemma3_text", .class = "Gemma3ForCausalLM", GEMMA,
	  .scale_blocks = 62,
	  KEYS(LLAMA_SIZES, { "final_logit_softcapping", "final_logit_softcapping", GGUF_REAL, false },
		{ "rope.freq_base_swa", "rope_local_base_freq", GGUF_REAL, false },
		{ "attention.sliding_window_pattern", "sliding_window_pattern", GGUF_SIZE, false }),
	  NAMES(GEMMA_NAMES, HEAD_NORM_NAMES(GGUF_PLUS_ONE)) },

	{ .name = "gpt2", .model_type = "gpt2", .class = "GPT2LMHeadModel", .heads = "n_head",
	  KEYS(SIZES("n_layer", "n_positions", "n_embd", "n_inner"),
		{ "attention.layer_norm_epsilon", "layer_norm_epsilon", GGUF_REAL, true }),
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
	  .heads = "num_attention_heads", .theta = "rotary_emb_base", .rotary = "rotary_pct",
	  KEYS(SIZES("num_hidden_layers", "max_position_embeddings", "hidden_size", "intermediate_size"),
		{ "attention.layer_norm_epsilon", "layer_norm_eps", GGUF_REAL, true },
		{ "use_parallel_residual", "use_parallel_residual", GGUF_FLAG, true },
		{ "blk.0.attn_qkv.bias", "attention_bias", GGUF_TENSOR, false }),
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
