/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stack.h -- blocks of one kind: an encoder, a projector or a language model, by the row of its architecture
 *
 * Which layers its blocks have, and their sizes. A configuration (model/config.h) has a list of stacks.
 */
#ifndef MODEL_STACK_H
#define MODEL_STACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/architecture.h"
#include "model/rope.h"

enum activation {
	ACTIVATION_SILU, ACTIVATION_GELU, ACTIVATION_GELU_TANH, ACTIVATION_QUICK_GELU, ACTIVATION_RELU,
	ACTIVATION_GELU_10, ACTIVATION_HARDSWISH, ACTIVATION_LAPLACE, ACTIVATION_LEAKY_RELU,
	ACTIVATION_LINEAR, ACTIVATION_MISH, ACTIVATION_RELU2, ACTIVATION_RELU6, ACTIVATION_SIGMOID,
	ACTIVATION_SQRTSOFTPLUS, ACTIVATION_TANH, ACTIVATIONS
};

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
/* Group of a language model's final norm; NULL: there is none, since blocks end with one. */
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
#endif
