/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.h -- what a model is: its config.json, read by the row of its architecture
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"
#include "model/multimodal.h"
#include "model/rope.h"

enum activation {
	ACTIVATION_SILU, ACTIVATION_GELU, ACTIVATION_GELU_TANH, ACTIVATION_QUICK_GELU, ACTIVATION_RELU,
	ACTIVATION_GELU_10, ACTIVATION_HARDSWISH, ACTIVATION_LAPLACE, ACTIVATION_LEAKY_RELU,
	ACTIVATION_LINEAR, ACTIVATION_MISH, ACTIVATION_RELU2, ACTIVATION_RELU6, ACTIVATION_SIGMOID,
	ACTIVATION_SQRTSOFTPLUS, ACTIVATION_TANH, ACTIVATIONS
};

enum { EOS = 8 };

/* A model is a list of them: blocks of one kind, and the final norm of its row behind them. The last is the
 * language model; before it, where there are images, stand their encoder and its projector. */
enum { STACKS = 3 };

struct stack {
	const struct architecture *arch;
	size_t first;			/* blocks of the stacks before it: the model numbers them through */
	size_t blocks, hidden, heads, kv_heads, head_dim, intermediate;	/* heads 0: no attention */
	size_t out;			/* width of what it makes; 0: hidden */
	size_t merged;			/* rows of x side by side that are one of a projector; 0: 1 */
	double eps;
	enum activation activation;
	bool bias[ROLES];		/* must have one; in a tree others may, and then it counts */
	bool parallel;			/* attention and MLP both see the block's input */
	bool norms_last;		/* x = norm(x + branch(x)), by the norms that stand before others */
	size_t axes;			/* numbers of a position: (frames,) rows, columns; 0: 1 */
	uint8_t *axis;			/* [rotary / 2] which of them each pair goes by; NULL: the first */
	size_t rotary;			/* first channels of a head that are rotated, even; the others stay */
	double attention_scale;		/* of q · k: 1/√head_dim, or as the row's scale_key says */
	double attention_cap;		/* scores s become cap · tanh(s / cap); 0: s */
	size_t sliding_window;		/* attention sees that many last positions, its own too; 0: all */
	bool *slides;			/* [blocks]: blocks that the window holds for; NULL: all */
	size_t experts;			/* of a block with a mixture of them; 0: no block has */
	size_t chosen;			/* of them for each token */
	size_t expert, shared;		/* intermediate sizes: of one, of the shared one, 0: none */
	bool normalized;		/* shares of a token's experts add up to 1 */
	bool *dense;			/* [blocks]: with experts, those that have none */
	struct rope_setting rope[ROPES];	/* the second where the row has a local_theta_key */
};

enum { CHANNELS = 3 };		/* of a pixel */

/* How images become rows of an encoder (vision/vision.h); class NULL: there is none. */
struct vision {
	const struct multimodal *class;
	size_t patch, frames;		/* of a patch: pixels of a side, images (of the same) */
	size_t merge;			/* patches of a feature, of a side; in the order of such squares */
	size_t side;			/* of an image, pixels; 0: it may have any size */
	size_t rows;			/* of the encoder for an image, its class token too; 0: by its size */
	size_t skipped;			/* rows of it, the first ones, that the projector does not see */
	int32_t placeholder;		/* the id of an image in a text, then of each of its tokens */
};

struct config {
	const struct architecture *arch;	/* of the language model: its tree, its keys */
	struct vision vision;
	size_t stacks;
	struct stack stack[STACKS];
	size_t blocks, vocab, positions;	/* blocks: of all stacks */
	bool tied;
	bool quantized;			/* config.json speaks of a checkpoint that is stored quantized */
	double embedding_scale;		/* of tokens' embeddings; 1: none */
	double logit_cap;		/* as attention_cap, of logits */
	long bos, eos[EOS];		/* bos: -1 if there is none */
	size_t eos_count;
};

/* From the text of config.json; dies, naming `name` and /config, on what it does not know. */
struct config config_parse(const char *name, const char *text);
/* From a part that carries /config, dies if it does not. Nobody changes it after that: how the model is run
 * is in forward/execution.h. */
struct config config_read(const struct part *part);
void config_free(const struct config *c);
/* The same in memory of its own. */
const struct config *config_open(const struct part *part);
void config_close(const struct config *c);

/* How a model's file is cut into parts (a part_layout): NULL if there is no config. The list holds until
 * the thread's next call of either. */
const char *const *model_layout(const char *config);
const char *const *config_layout(const struct config *c);

/* Numbers of a patch of an image. */
size_t vision_numbers(const struct vision *v);
/* The class of the whole model. */
const char *config_class(const struct config *c);

/* Whether the block has a mixture of experts, and whether it has the layer of the row; how many there are. */
bool stack_sparse(const struct stack *s, size_t block);
bool stack_has(const struct stack *s, size_t block, const struct linear_row *row);
size_t stack_copies(const struct stack *s, const struct linear_row *row);
/* Outputs of a layer, inputs of a projection. */
size_t stack_out(const struct stack *s, enum role role);
size_t stack_in(const struct stack *s, enum projection_name projection);
/* Outputs of all layers of a projection. */
size_t stack_width(const struct stack *s, enum projection_name projection);
/* Window of a block, 0 if it sees everything. */
size_t stack_window(const struct stack *s, size_t block);
/* Group of the final norm; NULL: there is none, since blocks end with one. */
const char *stack_final_norm(const struct stack *s);
/* The rotary setting of a block. */
enum rope_blocks stack_rope(const struct stack *s, size_t block);

/*
 * Where the rows of a layer stand in the tensor [rows, ...] of a checkpoint: `each` in every one of
 * `groups` equal parts of it, behind the first `before` of the part.
 */
struct row_place {
	size_t groups, each, before, rows;
};
struct row_place stack_rows(const struct stack *s, const struct linear_row *row);

/* Whether solvers leave a layer of the role alone unless it is named: few weights that much depends on. */
bool role_is_kept(enum role role);
/* What stands behind the blocks in every model: group of the final norm, or of the head if there is none. */
const char *config_end(const struct config *c);
/* The stack of the language model, which the head stands behind. */
const struct stack *config_last(const struct config *c);
/* The encoder of images and its projector; NULL: there is none. */
const struct stack *config_encoder(const struct config *c);
const struct stack *config_projector(const struct config *c);
#endif
