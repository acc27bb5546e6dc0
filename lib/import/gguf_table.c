/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_table.c -- one row per architecture of GGUF files; see gguf_table.h */
#include "import/gguf_table.h"
#include "model/config.h"

/* --- values of keys, from a model's configuration; below 0: the key is not written --- */

#define VALUE(name, v) \
	static double name(const struct config *c) \
	{ \
		const struct stack *s = config_last(c); \
		\
		(void)s; \
		return (double)(v); \
	}
#define IF_ANY(v) ((v) > 0 ? (double)(v) : -1)

/* The smallest n such that every nth block has no window; blocks + 1 if all blocks have one. */
static size_t pattern_of(const struct stack *s)
{
	size_t n = 1;

	while (n <= s->blocks && stack_window(s, n - 1))
		n++;
	return n;
}

/* Whether a layer of one of two roles has a bias. */
static bool has_bias(const struct stack *s, enum role one, enum role other)
{
	bool has = false;

	for (const struct linear_row *r = s->arch->linear; r->name; r++)
		has |= (r->role == one || r->role == other) && s->bias[r->role];
	return has;
}

VALUE(blocks, s->blocks)
VALUE(positions, c->positions)
VALUE(hidden, s->hidden)
VALUE(intermediate, s->intermediate)
VALUE(eps, s->eps)
VALUE(parallel, s->parallel)
VALUE(experts, s->experts)
VALUE(chosen, s->chosen)
VALUE(expert, s->expert)
VALUE(shared, s->shared)
VALUE(heads, s->heads)
VALUE(kv_heads, s->kv_heads)
VALUE(head_dim, s->head_dim)
VALUE(window, IF_ANY(s->sliding_window))
VALUE(pattern, s->slides ? (double)pattern_of(s) : -1)
VALUE(attention_cap, IF_ANY(s->attention_cap))
VALUE(logit_cap, IF_ANY(c->logit_cap))
VALUE(rotary, s->rotary)
VALUE(theta, s->rope[ROPE_FULL].theta)
VALUE(sliding_theta, IF_ANY(s->rope[ROPE_SLIDING].theta))
VALUE(original, s->rope[ROPE_FULL].kind == ROPE_LONG ? s->rope[ROPE_FULL].original : -1)
VALUE(query_bias, has_bias(s, ROLE_Q, ROLE_QKV))
VALUE(up_bias, has_bias(s, ROLE_UP, ROLE_UP))
VALUE(vocab, c->vocab)
VALUE(bos, c->bos)
VALUE(eos, c->eos_count ? c->eos[0] : -1)

/* --- rows --- */

#define SIZES(blocks_key, positions_key, hidden_key, size_key) \
	{ "block_count", blocks_key, GGUF_BLOCKS, true, blocks }, \
	{ "context_length", positions_key, GGUF_CONTEXT, true, positions }, \
	{ "embedding_length", hidden_key, GGUF_HIDDEN, true, hidden }, \
	{ "feed_forward_length", size_key, GGUF_SIZE, true, intermediate }

#define LLAMA_SIZES \
	SIZES("num_hidden_layers", "max_position_embeddings", "hidden_size", "intermediate_size"), \
	{ "attention.layer_norm_rms_epsilon", "rms_norm_eps", GGUF_REAL, true, eps }

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
	{ "blk.#.ffn_gate_inp", "model.layers.#." router, GGUF_ROUTER }, \
	{ "blk.#.ffn_gate_exps", "model.layers.#." gate, GGUF_AS_IS }, \
	{ "blk.#.ffn_up_exps", "model.layers.#." up, GGUF_AS_IS }, \
	{ "blk.#.ffn_down_exps", "model.layers.#." down, GGUF_AS_IS }
#define QWEN_EXPERT_NAMES \
	EXPERT_NAMES("mlp.gate", "mlp.experts.@.gate_proj", "mlp.experts.@.up_proj", \
		"mlp.experts.@.down_proj")

#define EXPERT_KEYS(count_key) \
	{ GGUF_EXPERT_COUNT, count_key, GGUF_EXPERTS, true, experts }, \
	{ "expert_used_count", "num_experts_per_tok", GGUF_SIZE, true, chosen }

#define GEMMA_NAMES \
	LAYER_NAMES(GGUF_AS_IS, GGUF_AS_IS), NORM_NAMES(GGUF_PLUS_ONE, "pre_feedforward_layernorm"), \
	{ "blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm", GGUF_PLUS_ONE }, \
	{ "blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm", GGUF_PLUS_ONE }

/* These keys come last, in this order. NULL: the class has no such key. */
#define HEAD_KEYS(heads_key, kv_key, width_key, window_key) \
	{ "attention.head_count", heads_key, GGUF_HEADS, true, heads }, \
	{ "attention.head_count_kv", kv_key, GGUF_KV_HEADS, false, kv_heads }, \
	{ "attention.key_length", width_key, GGUF_KEY_LENGTH, false, head_dim }, \
	{ "attention.value_length", width_key, GGUF_VALUE_LENGTH, false, head_dim }, \
	{ "attention.sliding_window", window_key, GGUF_WINDOW, false, window }
#define ROTARY_KEYS(theta_key, part_key) \
	{ "rope.freq_base", theta_key, GGUF_THETA, false, theta }, \
	{ "rope.dimension_count", part_key, GGUF_ROTATED, false, rotary }, \
	{ "rope.scaling.type", "rope_scaling", GGUF_SCALING, false, NULL }, \
	{ "rope.scaling.factor", "factor", GGUF_FACTOR, false, NULL }, \
	{ "rope.scale_linear", "factor", GGUF_FACTOR, false, NULL }
#define LAST_KEYS { "vocab_size", "vocab_size", GGUF_VOCAB, false, vocab }
#define LLAMA_KEYS(window_key) \
	HEAD_KEYS("num_attention_heads", "num_key_value_heads", "head_dim", window_key), \
	ROTARY_KEYS("rope_theta", NULL), LAST_KEYS
#define GEMMA_KEYS \
	{ "attention.key_length", "query_pre_attn_scalar", GGUF_SCALE, false, NULL }, \
	LLAMA_KEYS("sliding_window")

#define KEYS(...) \
	.keys = (const struct gguf_key []){ __VA_ARGS__, { NULL, NULL, GGUF_SIZE, false, NULL } }
#define NAMES(...) .names = (const struct gguf_name []){ __VA_ARGS__, { NULL, NULL, GGUF_AS_IS } }

const struct gguf_key gguf_last_keys[] = {
	{ GGUF_BOS_ID, "bos_token_id", GGUF_BOS, false, bos },
	{ GGUF_EOS_ID, "eos_token_id", GGUF_EOS, false, eos },
	{ GGUF_HEAD, "tie_word_embeddings", GGUF_NO_TENSOR, false, NULL },
	{ NULL, NULL, GGUF_SIZE, false, NULL },
};

const struct gguf_tensor_key gguf_rotary_tensors[] = {
	{ GGUF_ROPE_FREQS, NULL }, { "rope_factors_short.weight", "short_factor" },
	{ "rope_factors_long.weight", "long_factor" }, { NULL, NULL },
};

const struct gguf_row gguf_rows[] = {
	{ .name = "llama", .model_type = "llama", .class = "LlamaForCausalLM",
	  KEYS(LLAMA_SIZES, { "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false, query_bias },
		{ "blk.0.ffn_up.bias", "mlp_bias", GGUF_TENSOR, false, up_bias }, LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_PAIRS_Q, GGUF_PAIRS_K)) },

	{ .name = "qwen2", .model_type = "qwen2", .class = "Qwen2ForCausalLM",
	  KEYS(LLAMA_SIZES, LLAMA_KEYS(NULL)), NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS)) },

	{ .name = "qwen3", .model_type = "qwen3", .class = "Qwen3ForCausalLM",
	  KEYS(LLAMA_SIZES, { "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false, query_bias },
		LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), HEAD_NORM_NAMES(GGUF_AS_IS)) },

	{ .name = "llama", .model_type = "mixtral", .class = "MixtralForCausalLM", .experts = true,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_local_experts"), LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_PAIRS_Q, GGUF_PAIRS_K), EXPERT_NAMES("block_sparse_moe.gate",
		"block_sparse_moe.experts.@.w1", "block_sparse_moe.experts.@.w3",
		"block_sparse_moe.experts.@.w2")) },

	{ .name = "qwen2moe", .model_type = "qwen2_moe", .class = "Qwen2MoeForCausalLM", .experts = true,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_experts"),
		{ "expert_feed_forward_length", "moe_intermediate_size", GGUF_SIZE, true, expert },
		{ "expert_shared_feed_forward_length", "shared_expert_intermediate_size", GGUF_SIZE, true,
			shared },
		LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), QWEN_EXPERT_NAMES,
		{ "blk.#.ffn_gate_inp_shexp", "model.layers.#.mlp.shared_expert_gate", GGUF_ONE_ROW },
		{ "blk.#.ffn_gate_shexp", "model.layers.#.mlp.shared_expert.gate_proj", GGUF_AS_IS },
		{ "blk.#.ffn_up_shexp", "model.layers.#.mlp.shared_expert.up_proj", GGUF_AS_IS },
		{ "blk.#.ffn_down_shexp", "model.layers.#.mlp.shared_expert.down_proj", GGUF_AS_IS }) },

	{ .name = "qwen3moe", .model_type = "qwen3_moe", .class = "Qwen3MoeForCausalLM", .experts = true,
	  KEYS(LLAMA_SIZES, EXPERT_KEYS("num_experts"),
		{ "expert_feed_forward_length", "moe_intermediate_size", GGUF_SIZE, true, expert },
		{ "blk.0.attn_q.bias", "attention_bias", GGUF_TENSOR, false, query_bias },
		{ "", "norm_topk_prob", GGUF_TRUE, false, NULL }, LLAMA_KEYS(NULL)),
	  NAMES(LLAMA_NAMES(GGUF_AS_IS, GGUF_AS_IS), HEAD_NORM_NAMES(GGUF_AS_IS), QWEN_EXPERT_NAMES) },

	{ .name = "phi3", .model_type = "phi3", .class = "Phi3ForCausalLM", .longrope = true,
	  KEYS(LLAMA_SIZES, { "rope.scaling.original_context_length", "original_max_position_embeddings",
		GGUF_SIZE, false, original },
		HEAD_KEYS("num_attention_heads", "num_key_value_heads", NULL, "sliding_window"),
		ROTARY_KEYS("rope_theta", "partial_rotary_factor"), LAST_KEYS),
	  NAMES(STEM_NAMES, NORM_NAMES(GGUF_AS_IS, "post_attention_layernorm"),
		{ "blk.#.attn_qkv", "model.layers.#.self_attn.qkv_proj", GGUF_AS_IS },
		{ "blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj", GGUF_AS_IS }) },

	{ .name = "gemma", .model_type = "gemma", .class = "GemmaForCausalLM",
	  .head = GGUF_HEAD_TIED,
	  KEYS(LLAMA_SIZES, LLAMA_KEYS(NULL)),
	  NAMES(LAYER_NAMES(GGUF_AS_IS, GGUF_AS_IS), NORM_NAMES(GGUF_PLUS_ONE, "post_attention_layernorm")) },

	{ .name = "gemma2", .model_type = "gemma2", .class = "Gemma2ForCausalLM",
	  .head = GGUF_HEAD_TIED, .scale_blocks = 46,
	  KEYS(LLAMA_SIZES,
		{ "attn_logit_softcapping", "attn_logit_softcapping", GGUF_REAL, false, attention_cap },
		{ "final_logit_softcapping", "final_logit_softcapping", GGUF_REAL, false, logit_cap },
		GEMMA_KEYS),
	  NAMES(GEMMA_NAMES) },

	{ .name = "gemma3", .model_type = "gemma3_text", .class = "Gemma3ForCausalLM",
	  .scale_blocks = 62,
	  KEYS(LLAMA_SIZES,
		{ "final_logit_softcapping", "final_logit_softcapping", GGUF_REAL, false, logit_cap },
		{ "rope.freq_base_swa", "rope_local_base_freq", GGUF_REAL, false, sliding_theta },
		{ "attention.sliding_window_pattern", "sliding_window_pattern", GGUF_SIZE, false, pattern },
		GEMMA_KEYS),
	  NAMES(GEMMA_NAMES, HEAD_NORM_NAMES(GGUF_PLUS_ONE)) },

	{ .name = "gpt2", .model_type = "gpt2", .class = "GPT2LMHeadModel",
	  KEYS(SIZES("n_layer", "n_positions", "n_embd", "n_inner"),
		{ "attention.layer_norm_epsilon", "layer_norm_epsilon", GGUF_REAL, true, eps },
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

	{ .name = "gptneox", .model_type = "gpt_neox", .class = "GPTNeoXForCausalLM", .head = GGUF_HEAD_OWN,
	  KEYS(SIZES("num_hidden_layers", "max_position_embeddings", "hidden_size", "intermediate_size"),
		{ "attention.layer_norm_epsilon", "layer_norm_eps", GGUF_REAL, true, eps },
		{ "use_parallel_residual", "use_parallel_residual", GGUF_FLAG, true, parallel },
		{ "blk.0.attn_qkv.bias", "attention_bias", GGUF_TENSOR, false, query_bias },
		HEAD_KEYS("num_attention_heads", NULL, NULL, NULL),
		ROTARY_KEYS("rotary_emb_base", "rotary_pct"), LAST_KEYS),
	  NAMES({ "token_embd", "gpt_neox.embed_in", GGUF_AS_IS }, { "output", "embed_out", GGUF_AS_IS },
		{ "output_norm", "gpt_neox.final_layer_norm", GGUF_AS_IS },
		{ "blk.#.attn_norm", "gpt_neox.layers.#.input_layernorm", GGUF_AS_IS },
		{ "blk.#.ffn_norm", "gpt_neox.layers.#.post_attention_layernorm", GGUF_AS_IS },
		{ "blk.#.attn_qkv", "gpt_neox.layers.#.attention.query_key_value", GGUF_SPLIT_QKV },
		{ "blk.#.attn_output", "gpt_neox.layers.#.attention.dense", GGUF_AS_IS },
		{ "blk.#.ffn_up", "gpt_neox.layers.#.mlp.dense_h_to_4h", GGUF_AS_IS },
		{ "blk.#.ffn_down", "gpt_neox.layers.#.mlp.dense_4h_to_h", GGUF_AS_IS }) },

	{ .name = NULL },
};
