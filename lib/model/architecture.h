/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * architecture.h -- the table of architectures: what the models of a class have in common
 *
 * A row says where tensors stand in the tree and how checkpoints keep them, what a block is made of, which
 * linear layers share an input, and what its class in transformers makes of keys that config.json does not
 * have. A block is, with norms where the row has some,
 *	x += output(attention(norm(x)))
 *	x += down(act(gate) · up), or down(act(up)), of norm(x)
 * and the products of one shared input (a "projection") stand side by side in one row,
 * so that a fused query-key-value layer is just a projection with one layer. In a mixture of experts the MLP
 * of some blocks, or of all, is instead
 *	x += Σ share_e expert_e(norm(x)), and sigmoid(switch) · shared(norm(x)) where there is such an expert
 * over the few experts of each token that its router has the largest logits for (forward/experts.h).
 * What makes embeddings of images for a language model is stacks too: the blocks of an encoder, and a
 * projector, which is one block without attention that adds nothing: down(act(up)) of norm(x).
 */
#ifndef MODEL_ARCHITECTURE_H
#define MODEL_ARCHITECTURE_H
#include <stdbool.h>
#include <stddef.h>

enum norm_kind { NORM_RMS, NORM_LAYER };
/* Norms of a block: of what a branch is fed, and of what it adds to the residual stream. */
enum norm_place { BEFORE_ATTENTION, BEFORE_MLP, AFTER_ATTENTION, AFTER_MLP, NORM_PLACES };
/* Norms of queries and keys before they are rotated: of each head, or of all heads together. */
enum head_norm_kind { HEAD_NORM_EACH, HEAD_NORM_ALL };
/*
 * Blocks that sliding_window holds for: none; all, be it always or if use_sliding_window, whatever
 * layer_types says; those that layer_types lists, and without such a list all, those from max_window_layers
 * on, of those before it every other one (these two if use_sliding_window), or all but each nth.
 */
enum sliding_kind {
	SLIDING_NONE, SLIDING_WHOLE, SLIDING_SWITCHED,
	SLIDING_ALL, SLIDING_LATE, SLIDING_EVEN, SLIDING_PATTERN
};

/* What a linear layer makes; its width follows from the config. */
enum role {
	ROLE_Q, ROLE_K, ROLE_V, ROLE_QKV, ROLE_OUTPUT, ROLE_GATE, ROLE_UP, ROLE_DOWN,
	/* of a block with experts, in the place of the last three */
	ROLE_SHARED_GATE, ROLE_SHARED_UP,	/* of the shared expert */
	ROLE_ROUTER,			/* a logit an expert */
	ROLE_SHARED_SWITCH,		/* the logit of the shared expert's gate */
	ROLE_SHARED_DOWN, ROLE_EXPERT_GATE, ROLE_EXPERT_UP, ROLE_EXPERT_DOWN, ROLES
};

/* Inputs that linear layers share, in the order in which a block meets them; the head's is behind all. */
enum projection_name {
	PROJECTION_QKV, PROJECTION_OUTPUT, PROJECTION_GATE_UP, PROJECTION_DOWN,
	PROJECTION_ROUTER,		/* and what else of a block with experts sees all tokens */
	PROJECTION_SHARED_DOWN,
	PROJECTION_EXPERT_GATE_UP, PROJECTION_EXPERT_DOWN,	/* of each expert */
	PROJECTIONS,
	PROJECTION_HEAD = PROJECTIONS,	/* of no block */
	PROJECTION_PATCH,		/* patches of images: of none either */
	PROJECTION_NONE			/* of embeddings of tokens, which are looked up */
};

/* How a checkpoint keeps the rows (outputs) of a linear layer. */
enum row_order {
	ROWS_AS_IS,		/* [out, in] */
	ROWS_TRANSPOSED,	/* [in, out], as Conv1D has them */
	ROWS_FUSED,		/* one tensor for several layers: all rows of the first, then of the next */
	ROWS_INTERLEAVED,	/* such a tensor for every head of keys, one after the other */
};

enum { LINEARS = 16 };

struct linear_row {
	const char *name;	/* below the block: "self_attn/q_proj", "experts/#/up"; NULL ends the list */
	enum role role;
	enum projection_name projection; /* rows of one are neighbours, in the order of their outputs */
	enum row_order order;
	const char *fused;		/* below the block: the checkpoint's layer with its rows, or NULL */
};

struct architecture {
	const char *name, *model_type;	/* "LlamaForCausalLM", "llama" */

	/* The tree. */
	const char *const *layout;	/* parts of a stream, see part.h */
	const char *embedding;		/* group of weight [vocab, hidden], of an encoder [hidden, a patch] */
	const char *position;		/* group of weight [positions, hidden]; NULL: positions are rotary */
	size_t position_offset;		/* rows of it before that of position 0 */
	const char *class_token;	/* of an encoder: [hidden], the first row of each image; NULL: none */
	const char *embedding_norm;	/* of an encoder: group of the norm before the blocks; NULL: none */
	const char *blocks;		/* group whose numbered children are the blocks, or the projector */
	const char *norm[NORM_PLACES];	/* below the block; NULL: none (BEFORE_MLP: attention's serves) */
	const char *head_norm[2];	/* below the block: of queries, of keys; NULL: none */
	const char *final_norm, *head;	/* of a language model alone (tests/config.c) */
	struct linear_row linear[LINEARS + 1];	/* without a ROLE_GATE the MLP has no gate */

	/* The checkpoint. */
	const char *prefix;		/* first word of the names, which some leave out; NULL: none do */
	const char *const *buffers;	/* patterns of tensors that follow from the config; ends with NULL */

	/* The block. */
	bool projector;			/* one block at the path `blocks`: x = mlp(norm(x)) */
	bool bidirectional;		/* rows see all of their sequence */
	size_t axes;			/* numbers of a rotary position, as stack.axes */
	enum norm_kind norm_kind;
	enum head_norm_kind head_norm_kind;
	float norm_offset;		/* a norm's gain is its weight plus this */
	bool embedding_scaled;		/* embeddings of tokens are multiplied by √hidden */
	bool parallel;			/* the MLP too sees the block's input */
	bool rotary_interleaved;	/* pairs (x_2i, x_2i+1); otherwise (x_i, x_i+width/2) */
	enum sliding_kind sliding_kind;
	bool bias[ROLES];		/* layers that have a bias, where config.json has no bias_key */
	bool embedding_bias;		/* of an encoder: that of patches has one */

	/* config.json. */
	const char *bias_key[ROLES];	/* says whether such layers have a bias; NULL: there is no key */
	const char *parallel_key;	/* says whether it is; NULL: there is no such key */
	const char *before_key;		/* says whether norms are before the branches: stack.norms_last */
	const char *width_key;		/* of embeddings: hidden, or null; NULL: there is no such key */
	const char *local_theta_key;	/* rope_theta of blocks with a window; NULL: it is that of all */
	const char *pattern_key;	/* says n of SLIDING_PATTERN; NULL: there is no such key */
	const char *scale_key;		/* attention's scale is 1/√ of it; NULL: 1/√head_dim */
	const char *attention_cap_key, *logit_cap_key;	/* soft-caps; NULL: there is no such key */
	bool gelu_is_tanh;		/* activation "gelu" stands for its form with tanh */
	const char *const *longrope;	/* older names of this rotary kind; ends with NULL, may be NULL */
	const struct key_row *keys;	/* names that differ from Llama's; ends with NULL, may be NULL */
	const struct switch_row *switches;	/* ends with NULL, may be NULL */
	struct {			/* values of absent keys */
		size_t vocab, hidden, blocks, heads;
		size_t kv_heads;	/* 0: as many as heads */
		size_t head_dim;	/* 0: hidden / heads, for null too */
		size_t intermediate;	/* 0: 4 times hidden, for null too */
		size_t positions;
		long bos, eos;		/* -1: none */
		bool tied;
		double eps;
		size_t window, pattern;	/* sliding_window, 0: none; of pattern_key */
		double scale, attention_cap, logit_cap;	/* of their keys; no cap: 0 */
		double rotary;		/* part of a head that is rotated; 0: all, there is no key */
		double theta, local_theta;	/* 0: 10000 */
		size_t original;	/* original_max_position_embeddings, never one inside; 0: positions */
		size_t experts;		/* 0: no mixture of experts */
		size_t chosen;		/* of them for each token */
		size_t image, patch;	/* of an encoder: pixels of a side */
		size_t expert;		/* intermediate size of an expert, */
		size_t shared;		/* of the shared one; 0: there is none */
		bool normalized;	/* shares of a token add up to 1 */
		const char *act;
	} absent;
};

struct key_row {
	const char *ours, *theirs;	/* theirs NULL: the class has no such key */
	/* Whether the class knows ours too, and which of both wins. */
	enum { ONE_NAME, OURS_FIRST, THEIRS_FIRST } both;
};

/* A key that changes what the model computes. */
struct switch_row {
	const char *key;
	bool supported;			/* the only value that is, and the default */
};

/* Ends with a row without a name. */
extern const struct architecture architectures[];

/* By model_type, as AutoModelForCausalLM; where that is NULL by the class that saved the model. */
const struct architecture *architecture_find(const char *model_type, const char *name);
#endif
