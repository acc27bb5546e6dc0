/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stack.h -- a stack: blocks of one kind, of an encoder, a projector or a language model
 *
 * A stack has a row of the architecture table and the sizes of its blocks. A configuration (model/config.h)
 * has a list of stacks.
 */
#ifndef MODEL_STACK_H
#define MODEL_STACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/activation_names.h"
#include "model/architecture.h"
#include "model/rope.h"

struct stack {
	const struct architecture *arch;
	size_t first;			/* number of blocks in the stacks before it */
	size_t blocks, hidden, heads, kv_heads, head_dim, intermediate;	/* heads 0: no attention */
	size_t out;			/* width of its outputs; 0: hidden */
	size_t merged;			/* rows of x that are concatenated for a projector; 0: 1 */
	double eps;
	enum activation activation;
	bool bias[ROLES];		/* layers that must have a bias; others in a tree may have one */
	bool parallel;			/* attention and MLP both see the block's input */
	bool norms_last;		/* x = norm(x + branch(x)), with the norms of BEFORE_* */
	size_t axes;			/* coordinates of a position: (frames,) rows, columns; 0: 1 */
	uint8_t *axis;			/* [rotary / 2] coordinate of each pair; NULL: the first */
	size_t rotary;			/* rotated channels of a head, the first ones; even */
	double attention_scale;		/* factor of q · k: 1/√head_dim, or by the row's scale_key */
	double attention_cap;		/* scores s become cap · tanh(s / cap); 0: unchanged */
	size_t sliding_window;		/* last positions that attention reads, with its own; 0: all */
	bool *slides;			/* [blocks]: the window applies to the block; NULL: to all. In an
					 * encoder this is the window of the image (config.h) */
	size_t experts;			/* experts of a block with a mixture; 0: no such block */
	size_t chosen;			/* experts of each token */
	size_t expert, shared;		/* intermediate sizes: of an expert, of the shared one; 0: none */
	bool normalized;		/* shares of a token's experts add up to 1 */
	bool *dense;			/* [blocks]: of a stack with experts, blocks without experts */
	struct rope_setting rope[ROPES];	/* the second one only with a local_theta_key */
};

/* Whether the block has a mixture of experts; whether it has the layer of the row; the number of such
 * layers in a block. */
bool stack_sparse(const struct stack *s, size_t block);
bool stack_has(const struct stack *s, size_t block, const struct linear_row *row);
size_t stack_copies(const struct stack *s, const struct linear_row *row);
/* The outputs of a layer, and the inputs of a projection. */
size_t stack_out(const struct stack *s, enum role role);
size_t stack_in(const struct stack *s, enum projection_name projection);
/* The outputs of all layers of a projection. */
size_t stack_width(const struct stack *s, enum projection_name projection);
/* The window of a block; 0: none. */
size_t stack_window(const struct stack *s, size_t block);
/* The group of a language model's final norm; NULL if blocks end with a norm. */
const char *stack_final_norm(const struct stack *s);
/* The rotary setting of a block. */
enum rope_blocks stack_rope(const struct stack *s, size_t block);

/* The rows of a layer in the tensor [rows, ...] of a checkpoint: the tensor has `groups` equal parts; in
 * each of them the layer has `each` rows, after the first `before` rows. */
struct row_slice {
	size_t groups, each, before, rows;
};
struct row_slice stack_rows(const struct stack *s, const struct linear_row *row);

/* Whether solvers skip layers of the role unless named: they have few weights, and a large effect. */
bool role_is_kept(enum role role);
#endif
