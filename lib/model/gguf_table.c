/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_table.c -- one row an architecture of GGUF files; see gguf_table.h */
#include "model/gguf_table.h"

#define SIZES(blocks, positions, hidden, intermediate) \
	{ "block_count", blocks, GGUF_SIZE, true }, { "context_length", positions, GGUF_SIZE, true }, \
	{ "embedding_length", hidden, GGUF_SIZE, true }, \
	{ "feed_forward_length", intermediate, GGUF_SIZE, true }

#define LLAMA_SIZES \
	SIZES("num_hidden_layers", "max_position_embeddings", "hidden_size", "intermediate_size"), \
	{ "attention.layer_norm_rms_epsilon", "rms_norm_eps", GGUF_REAL, true }

#define LLAMA_NAMES(q, k) \
	{ "token_embd", "model.embed_tokens", GGUF_AS_IS }, { "output_norm", "model.norm", GGUF_AS_IS }, \
	{ "output", "lm_head", GGUF_AS_IS }, \
	{ "blk.#.attn_norm", "model.layers.#.input_layernorm", GGUF_AS_IS }, \
	{ "blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", GGUF_AS_IS }, \
	{ "blk.#.attn_q", "model.layers.#.self_attn.q_proj", q }, \
	{ "blk.#.attn_k", "model.layers.#.self_attn.k_proj", k }, \
	{ "blk.#.attn_v", "model.layers.#.self_attn.v_proj", GGUF_AS_IS }, \
	{ "blk.#.attn_output", "model.layers.#.self_attn.o_proj", GGUF_AS_IS }, \
	{ "blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", GGUF_AS_IS }, \
	{ "blk.#.ffn_up", "model.layers.#.mlp.up_proj", GGUF_AS_IS }, \
	{ "blk.#.ffn_down", "model.layers.#.mlp.down_proj", GGUF_AS_IS }

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
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS),
		{ "blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", GGUF_AS_IS },
		{ "blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", GGUF_AS_IS }) },

	{ .name = "gpt2", .model_type = "gpt2", .class = "GPT2LMHeadModel", .heads = "n_head",
	  KEYS(SIZES("n_layer", "n_positions", "n_embd", "n_inner"),
		{ "attention.layer_norm_epsilon", "layer_norm_epsilon", GGUF_REAL, true }),
	  NAMES({ "token_embd", "transformer.wte", GGUF_AS_IS },
		{ "position_embd", "transformer.wpe", GGUF_AS_IS },
		{ "output_norm", "transformer.ln_f", GGUF_AS_IS }, { "output", "lm_head", GGUF_AS_IS },
		{ "blk.#.attn_norm", "transformer.h.#.ln_1", GGUF_AS_IS },
		{ "blk.#.ffn_norm", "transformer.h.#.ln_2", GGUF_AS_IS },
		{ "blk.#.attn_qkv", "transformer.h.#.attn.c_attn", GGUF_TURNED },
		{ "blk.#.attn_output", "transformer.h.#.attn.c_proj", GGUF_TURNED },
		{ "blk.#.ffn_up", "transformer.h.#.mlp.c_fc", GGUF_TURNED },
		{ "blk.#.ffn_down", "transformer.h.#.mlp.c_proj", GGUF_TURNED }) },

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
