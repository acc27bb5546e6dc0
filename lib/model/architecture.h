/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * architecture.h -- the table of architectures: the common properties of the models of a class
 *
 * A row has the paths of tensors in the tree and their layout in checkpoints, the parts of a block, the
 * linear layers that share an input, and the values that its class in transformers uses for keys absent
 * from config.json.
 *
 * A block is, with norms as the row has them,
 *
 *	x += output(attention(norm(x)))
 *	x += down(act(gate) · up), or down(act(up)), of norm(x)
 *
 * Linear layers that share an input are an input group. In the code, "projection" means such a group, not one
 * layer: PROJECTION_QKV are the layers of queries, keys and values, and a fused query-key-value layer is a
 * group of one layer. The outputs of a group are adjacent in one row.
 *
 * In a mixture of experts the MLP of some blocks, or of all, is
 *
 *	x += Σ share_e expert_e(norm(x)), and sigmoid(switch) · shared(norm(x)) if there is a shared expert
 *
 * over the experts with the largest logits of the router, a fixed number for each token
 * (forward/experts.h).
 *
 * An encoder of images and a projector are stacks, too: an encoder has blocks, a projector is one block
 * without attention and without residual, down(act(up)) of norm(x). A projector whose row has one layer, of
 * ROLE_DOWN and PROJECTION_GATE_UP, is down(norm(x)).
 */
#ifndef MODEL_ARCHITECTURE_H
#define MODEL_ARCHITECTURE_H
#include <stdbool.h>
#include <stddef.h>

enum norm_kind { NORM_RMS, NORM_LAYER };
/* Norms of a block: of the input of a residual branch, and of its output before it is added to the residual
 * stream. */
enum norm_position { BEFORE_ATTENTION, BEFORE_MLP, AFTER_ATTENTION, AFTER_MLP, NORM_POSITIONS };
/*
 * Blocks to which sliding_window applies.
 * - NONE: no block.
 * - WHOLE: all blocks.
 * - SWITCHED: all blocks if use_sliding_window.
 * - ALL: all blocks.
 * - LATE: blocks from max_window_layers on, if use_sliding_window.
 * - EVEN: blocks 0, 2, 4, ... before max_window_layers, if use_sliding_window.
 * - PATTERN: all blocks except each nth.
 * For ALL, LATE, EVEN and PATTERN, layer_types takes precedence if present: its blocks have the window. WHOLE
 * and SWITCHED ignore it.
 * - GRID, of an encoder: all blocks except those of fullatt_block_indexes. The window does not slide: it is a
 *   square of window_size pixels, whose patches attend to each other (vision/vision.h).
 */
enum sliding_kind {
	SLIDING_NONE, SLIDING_WHOLE, SLIDING_SWITCHED,
	SLIDING_ALL, SLIDING_LATE, SLIDING_EVEN, SLIDING_PATTERN, SLIDING_GRID
};

/* The role of a linear layer; its width follows from the config. */
enum role {
	ROLE_Q, ROLE_K, ROLE_V, ROLE_QKV, ROLE_OUTPUT, ROLE_GATE, ROLE_UP, ROLE_DOWN,
	/* of a block with experts, instead of the last three */
	ROLE_SHARED_GATE, ROLE_SHARED_UP,	/* layers of the shared expert */
	ROLE_ROUTER,			/* one logit per expert */
	ROLE_SHARED_SWITCH,		/* logit of the gate of the shared expert */
	ROLE_SHARED_DOWN, ROLE_EXPERT_GATE, ROLE_EXPERT_UP, ROLE_EXPERT_DOWN, ROLES
};

/* Input groups, in the order of their computation in a block; the head comes after all blocks. */
enum projection_name {
	PROJECTION_QKV, PROJECTION_OUTPUT, PROJECTION_GATE_UP, PROJECTION_DOWN,
	PROJECTION_ROUTER,		/* and other layers of a block with experts that receive all tokens */
	PROJECTION_SHARED_DOWN,
	PROJECTION_EXPERT_GATE_UP, PROJECTION_EXPERT_DOWN,	/* inputs of each expert */
	PROJECTIONS,
	PROJECTION_HEAD = PROJECTIONS,	/* in no block */
	PROJECTION_PATCH,		/* patches of images; in no block */
	PROJECTION_NONE			/* no input: embeddings of tokens are a table */
};

/* How a checkpoint stores the rows (outputs) of a linear layer. */
enum row_order {
	ROWS_AS_IS,		/* [out, in] */
	ROWS_TRANSPOSED,	/* [in, out], as in Conv1D */
	ROWS_FUSED,		/* one tensor for several layers, in order */
	ROWS_INTERLEAVED,	/* one such tensor for every key head, concatenated */
};

enum { LINEARS = 16 };

struct linear_row {
	const char *name;	/* below the block: "self_attn/q_proj", "experts/#/up"; NULL ends the list */
	enum role role;
	enum projection_name projection; /* rows of one group are adjacent, in the order of outputs */
	enum row_order order;
	const char *fused;		/* path below the block of the checkpoint's fused layer, or NULL */
};

struct architecture {
	const char *name, *model_type;	/* "LlamaForCausalLM", "llama" */

	/* The tree. */
	const char *const *layout;	/* parts of a stream (io/part.h) */
	const char *embedding;		/* group of weight [vocab, hidden]; of an encoder [hidden, a patch] */
	const char *position;		/* group of weight [positions, hidden]; NULL: positions are rotary */
	size_t position_offset;		/* rows of the table before the row of position 0 */
	const char *class_token;	/* of an encoder: [hidden], the first row of each image; or NULL */
	const char *embedding_norm;	/* of an encoder: group of the norm before the blocks, or NULL */
	const char *blocks;		/* parent of the numbered blocks; or the group of the projector */
	/* Paths below the block; NULL: none (BEFORE_MLP: the norm of attention). */
	const char *norm[NORM_POSITIONS];
	/* Paths below the block of the norms of each head of queries and keys, before rotary positions; NULL:
	 * none. */
	const char *head_norm[2];
	const char *final_norm, *head;	/* only of a language model (tests/config.c) */
	struct linear_row linear[LINEARS + 1];	/* without ROLE_GATE the MLP has no gate */

	/* The checkpoint. */
	const char *prefix;		/* optional first word of names in checkpoints; or NULL */
	const char *const *buffers;	/* patterns of tensors that the config determines; ends with NULL */

	/* The block. */
	bool projector;			/* one block, at the path `blocks`: x = mlp(norm(x)) */
	bool bidirectional;		/* each row attends to its whole sequence */
	size_t axes;			/* coordinates of a rotary position, see stack.axes */
	enum norm_kind norm_kind;
	float norm_offset;		/* gain of a norm = weight + norm_offset */
	bool embedding_scaled;		/* embeddings of tokens are multiplied by √hidden */
	bool parallel;			/* the MLP reads the block's input, like attention */
	bool rotary_interleaved;	/* pairs (x_2i, x_2i+1); if false (x_i, x_i+width/2) */
	enum sliding_kind sliding_kind;
	bool bias[ROLES];		/* layers with a bias if config.json lacks bias_key */
	bool embedding_bias;		/* of an encoder: the embedding of patches has a bias */

	/* config.json. */
	const char *bias_key[ROLES];	/* key: whether these layers have a bias; NULL: no such key */
	const char *parallel_key;	/* key of `parallel`; NULL: no such key */
	const char *before_key;		/* key: norms precede the residual branches (stack.norms_last) */
	const char *width_key;		/* width of embeddings, must equal hidden; NULL: no such key */
	const char *local_theta_key;	/* key of rope_theta of blocks with a window; NULL: all share one */
	const char *pattern_key;	/* key of n of SLIDING_PATTERN; NULL: no such key */
	const char *scale_key;		/* key of s in the attention scale 1/√s; NULL: s = head_dim */
	const char *attention_cap_key, *logit_cap_key;	/* keys of soft-caps; NULL: no such key */
	bool gelu_is_tanh;		/* activation "gelu" means its approximation by tanh */
	const char *const *longrope;	/* older names of longrope; ends with NULL, may be NULL */
	const struct key_row *keys;	/* names that differ from Llama's; ends with NULL, may be NULL */
	const struct switch_row *switches;	/* ends with NULL, may be NULL */
	struct {			/* values for absent keys */
		size_t vocab, hidden, blocks, heads;
		size_t kv_heads;	/* 0: heads */
		size_t head_dim;	/* 0: hidden / heads, for null too */
		size_t intermediate;	/* 0: 4 times hidden, for null too */
		size_t positions;
		long bos, eos;		/* -1: none */
		bool tied;
		double eps;
		size_t window, pattern;	/* sliding_window, 0: none; n of pattern_key */
		const int *whole;	/* of SLIDING_GRID: blocks without a window; ends with -1 */
		double scale, attention_cap, logit_cap;	/* of the keys above; cap 0: none */
		double rotary;		/* rotated fraction of a head; 0: all, no key exists */
		double theta, local_theta;	/* 0: 10000 */
		size_t original;	/* original_max_position_embeddings (outer); 0: positions */
		size_t experts;		/* 0: not a mixture of experts */
		size_t chosen;		/* of them for each token */
		size_t image, patch;	/* of an encoder: pixels per side */
		size_t expert;		/* intermediate size of an expert */
		size_t shared;		/* of the shared expert; 0: none exists */
		bool normalized;	/* the shares of a token sum up to 1 */
		const char *act;
	} absent;
};

struct key_row {
	const char *ours, *theirs;	/* theirs NULL: the class lacks the key */
	/* Whether the class also reads `ours`, and which of both has priority. */
	enum { ONE_NAME, OURS_FIRST, THEIRS_FIRST } both;
};

/* A key that changes what the model computes. */
struct switch_row {
	const char *key;
	bool supported;			/* the only supported value, also the default */
};

/* Ends with a row without a name. */
extern const struct architecture architectures[];

/* Whether queries or keys have norms. */
bool architecture_norms_heads(const struct architecture *a);
/* Finds a row by model_type, as AutoModelForCausalLM does, or, if that is NULL, by the class that saved the
 * model. */
const struct architecture *architecture_find(const char *model_type, const char *name);
#endif
