/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * job.h -- layers on their way through the solver: what solver.c, job.c and scale.c share
 *
 * A job is what layers with the same H and order have in common: the columns by
 * their place in the order (position), live ones first; groups, cut from the
 * original columns, or from the order where `moved`; the factor R; and spans of
 * columns, inside which U = (R_span)⁻¹. Each thread has an area for a panel of
 * rows, transposed.
 *
 * Source: SPEC sections 3 to 6.
 */
#ifndef QUANT_JOB_H
#define QUANT_JOB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "quant/solver.h"

/* Columns a block and a span; rows a vector loop, a panel, and a strip that is read at once. */
enum { BLOCK = 128, SPAN = 256, LANES = SEARCH_LANES, PANEL = 256, STRIP = 16 };

struct span {
	size_t first, last;		/* positions */
	float *v;			/* [last - first]²: Uᵀ, lower triangle */
};

struct job {
	const struct solver *s;
	size_t n;
	size_t live;			/* columns to quantize; dead ones stand behind them in the order */
	size_t groups, largest, widest;	/* columns of the largest group, of the widest span that can be */
	bool moved;			/* groups are cut from the order */
	bool late;			/* parameters are taken when a group's first column is reached */
	const float *h;
	const int32_t *order;
	double mean, lambda;		/* of factor_run() */

	int32_t *column;		/* [n] position → column */
	int32_t *group;			/* [n] position → group */
	int32_t *first, *member;	/* [groups + 1], [live]: live positions of each group */
	float *r;			/* [live][live] */
	float *v;			/* of all spans */
	double *inverse;		/* [widest]² */
	size_t spans;
	struct span *span;		/* [ceil(n / SPAN) + groups] */
};

/* One layer of a job. */
struct rows {
	const struct job *job;
	struct solver_layer *layer;
	size_t m;
	float *low, *high, *scale8;	/* [m] of a row */
	double *strip_loss;		/* [strips][SEARCH_STEPS] */
	double (*sum)[3];		/* [panels] */
	double *seconds;		/* [panels] */
	float tensor_scale;
	uint8_t tensor_zero;
};

/* What a thread needs for a panel of any layer. */
struct area {
	float *strip;			/* [STRIP][n] rows of the weight as they stand */
	float (*w)[PANEL];		/* [n] by column: weights, then W - Ŵ */
	float (*e)[PANEL];		/* [n] by position: what the code leaves of the uncompensated weight, in FP8 units */
	float (*d)[PANEL];		/* [widest] of the span: what earlier blocks add, in FP8 units */
	float (*b)[PANEL];		/* [BLOCK] errors of the block, over their pivots */
	uint8_t (*code)[PANEL];		/* [n] by column */
	float (*scale)[PANEL];		/* [groups] */
	uint8_t (*zero)[PANEL];
	float (*member)[LANES];		/* [largest group] */
	float (*y)[PANEL];		/* [SPAN] */
	double (*x)[LANES];		/* [BLOCK]: weights of the block in FP8 units */
	double *scale8;			/* [PANEL] */
};

/* Everything of a call. */
struct batch {
	size_t jobs, layers;
	struct job *job;		/* [jobs] */
	struct rows *rows;		/* [layers], those of a job side by side */
	int threads;			/* as many as there is work for */
	struct area *area;		/* [threads] */
};

static inline size_t ceil_div(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

/* Cuts the work area up, 64-byte aligned base, and fills in what the layers say; returns its size. base NULL: only that. */
size_t job_lay_out(struct batch *batch, const struct solver *s, size_t count, struct solver_layer layer[count], char *base);

/* Live columns, groups, their members, and spans from the order; SOLVER_BAD_ORDER: at *index. */
enum solver_status job_plan(struct job *j, size_t *index);

/* Where the block of a span ends that starts at first: where a group does, but a large group is cut. */
size_t job_block_end(const struct job *j, const struct span *span, size_t first);

/* Rows row .. row + n - 1 of the weight: a view, or rebuilt in strip; n ≤ STRIP. */
const float *job_strip(const struct rows *l, const struct area *a, size_t row, size_t n);
#endif
