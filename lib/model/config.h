/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.h -- what a model is: its config.json, and the row of its architecture
 *
 * An architecture is a row of a table in config.c: where its tensors stand in
 * the tree, what its blocks are made of, and which linear layers share an
 * input. A block is
 *	x += output(attention(input(norm(x))))
 *	x += down(act(gate) · up), or down(act(up)), of norm(x)
 * and the products of one shared input (a "projection") stand side by side in one row,
 * so that a fused query-key-value layer is just a projection with one layer.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"
#include "quant/product.h"

enum norm_kind { NORM_RMS, NORM_LAYER };
/* Norms of a block: of what a branch is fed, and of what it adds to the residual stream. */
enum norm_place { BEFORE_ATTENTION, BEFORE_MLP, AFTER_ATTENTION, AFTER_MLP, NORM_PLACES };
/* Serial: the MLP sees what attention has added. Parallel: both see the block's input. */
enum residual_kind { RESIDUAL_SERIAL, RESIDUAL_PARALLEL };
/* Norms of queries and keys before they are turned: of each head, or of all heads together. */
enum head_norm_kind { HEAD_NORM_NONE, HEAD_NORM_EACH, HEAD_NORM_ALL };
enum position_kind { POSITION_ROPE, POSITION_LEARNED };
enum mlp_kind { MLP_GATED, MLP_PLAIN };
/* Blocks that sliding_window holds for: none, all, those from max_window_layers on if use_sliding_window says so. */
enum sliding_kind { SLIDING_NONE, SLIDING_ALL, SLIDING_LATE };
enum activation { ACTIVATION_SILU, ACTIVATION_GELU, ACTIVATION_GELU_TANH };

/* What a linear layer makes; its width follows from the config. */
enum role { ROLE_Q, ROLE_K, ROLE_V, ROLE_QKV, ROLE_OUTPUT, ROLE_GATE, ROLE_UP, ROLE_DOWN, ROLES };

/* Inputs that linear layers share, in the order in which a block meets them; PROJECTION_HEAD is after all blocks. */
enum projection_name { PROJECTION_QKV, PROJECTION_OUTPUT, PROJECTION_GATE_UP, PROJECTION_DOWN, PROJECTIONS, PROJECTION_HEAD = PROJECTIONS };

enum { LINEARS = 8, EOS = 8 };

struct config;

struct linear_row {
	const char *name;		/* below the block: "self_attn/q_proj"; NULL ends the list */
	enum role role;
	enum projection_name projection;	/* rows of one are neighbours, in the order of their outputs */
};

struct architecture {
	const char *name, *model_type;	/* "LlamaForCausalLM", "llama" */
	const char *const *layout;	/* parts of a stream, see image.h */
	const char *embedding;		/* group of weight [vocab, hidden] */
	const char *position;		/* group of weight [positions, hidden], or NULL */
	const char *blocks;		/* group whose numbered children are the blocks */
	const char *norm[NORM_PLACES];	/* below the block; NULL: none (before the MLP: that of attention serves both) */
	const char *head_norm[2];	/* below the block: of queries, of keys */
	const char *final_norm, *head;
	enum norm_kind norm_kind;
	enum head_norm_kind head_norm_kind;
	enum residual_kind residual;	/* where config.json has no use_parallel_residual */
	bool rotary_interleaved;	/* pairs (x_2i, x_2i+1); otherwise (x_i, x_i+width/2) */
	enum position_kind position_kind;
	enum mlp_kind mlp_kind;
	enum sliding_kind sliding_kind;
	struct linear_row linear[LINEARS + 1];
	bool bias[ROLES];		/* layers that have a bias whatever the config says */
	bool bias_keys;			/* attention_bias and mlp_bias give the other layers one */
	struct {			/* of keys that config.json does not have: the defaults of the class */
		size_t vocab, hidden, blocks, heads;
		size_t kv_heads;	/* 0: as many as heads */
		size_t intermediate;	/* 0: 4 times hidden, for null too */
		size_t positions;
		long bos, eos;		/* -1: none */
		bool tied;
	} absent;
	const struct key_row *keys;	/* names in config.json that differ from Llama's, or NULL */
};

enum rope_kind { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3 };

struct config {
	const struct architecture *arch;
	size_t hidden, heads, kv_heads, head_dim, intermediate, blocks, vocab, positions;
	double eps;
	enum activation activation;
	bool tied;
	bool quantized;			/* config.json speaks of a checkpoint that is stored quantized */
	bool bias[ROLES];		/* must have a bias: those of the class; in a tree others may have one, it decides */
	bool parallel;			/* residual branches; see enum residual_kind */
	size_t rotary;			/* first channels of a head that are turned, even; the others stay */
	double attention_scale;		/* of q · k: 1/√head_dim unless config.json says otherwise */
	double attention_cap, logit_cap;	/* scores, and logits, become cap · tanh(s / cap); 0: as they are */
	size_t window;			/* attention sees the last `window` positions, its own included; 0: all */
	bool *windowed;			/* [blocks]: blocks that the window holds for; NULL: all */
	enum rope_kind rope;
	double theta, factor, low, high, original;	/* rope_theta and rope_scaling's numbers */
	long bos, eos[EOS];		/* bos: -1 if there is none */
	size_t eos_count;
	/* Set by whoever runs the model. */
	enum compute_type compute_type;	/* what --compute-type says */
	size_t rows;			/* of activations in a product, at most; 0: many (quant/product.h) */
};

/* From the text of config.json; dies, naming `name` and /config, on what it does not know. */
struct config config_parse(const char *name, const char *text);
/* From an image that carries /config, dies if it does not. */
struct config config_read(const struct image *image);
void config_free(struct config *c);

/* How a model's file is cut into parts (an image_layout): NULL if there is no config. */
const char *const *model_layout(const char *config);

/* Outputs of a layer, inputs of a projection. */
size_t config_out(const struct config *c, enum role role);
size_t config_in(const struct config *c, enum projection_name projection);
/* Window of a block, 0 if it sees everything. */
size_t config_sliding_window(const struct config *c, size_t block);
/* Frequencies of the rotary pairs, radians a position: theta^(-2i/head_dim), scaled as config says. */
void config_rope(const struct config *c, double frequency[c->head_dim / 2]);

/* "/model/layers/3/self_attn/q_proj"; free() it. */
char *config_path(const struct config *c, size_t block, const char *name);
/* Whether the path is one of the linear layers of the config's blocks; which. */
bool config_find(const struct config *c, const char *path, size_t *block, size_t *row);
/* Whether the path stands in a block, be it beyond those of the config; which. */
bool config_block(const struct config *c, const char *path, size_t *block);
#endif
