/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_private.h -- layers on their way through the solver: what solver.c, solver_job.c, solver_scale.c and
 * solver_fit.c share
 *
 * A job is what layers with the same H, order and settings have in common: the columns by their place in
 * the order (position), live ones first; groups, cut from the original columns, or from the order where
 * `moved`; the factor R; and spans of columns, inside which U = (R_span)⁻¹. Each thread has a workspace for
 * a panel of rows, transposed.
 */
#ifndef SOLVER_SOLVER_PRIVATE_H
#define SOLVER_SOLVER_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/size.h"
#include "solver/clip.h"
#include "solver/coding.h"
#include "solver/refine.h"
#include "solver/solver.h"

enum {
	BLOCK_COLUMNS = 128, SPAN_COLUMNS = CLIP_TILE,
	LANES = SEARCH_LANES,		/* rows of a vector loop */
	PANEL_ROWS = CLIP_ROWS, ROWS_AT_ONCE = 16,	/* of a thread; read together */
};

struct span {
	size_t first, last;		/* positions */
	float *v;			/* [last - first]²: Uᵀ, lower triangle */
	char *left;			/* R_earlier,span for num/bf16x2.h; NULL: products are of floats */
};

struct job {
	const struct solver *s;
	struct coding coding;
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
	char *left;			/* likewise; NULL, or as large as 0.75 r */
	double *inverse;		/* [widest]² */
	size_t spans;
	struct span *span;		/* [ceil(n / SPAN_COLUMNS) + groups] */
};

/* One layer of a job. */
struct rows {
	const struct job *job;
	struct solver_layer *layer;
	size_t m;
	float *low, *high, *scale8;	/* [m] of a row */
	struct format storage;		/* with the divisor of the layer's scales */
	double *piece_loss;		/* [pieces][SEARCH_STEPS] */
	double (*sum)[3];		/* [panels] */
	double *seconds;		/* [panels] */
	float tensor_scale;
	uint8_t tensor_zero;
};

/* What a thread needs for a panel of any layer. */
struct workspace {
	float *read;			/* [ROWS_AT_ONCE][n] rows of the weight as they stand */
	float (*w)[PANEL_ROWS];		/* [n] by column: weights, then W - Ŵ */
	float (*e)[PANEL_ROWS];		/* [n] by position: uncompensated weight less target, in FP8 units */
	char *right;			/* e as num/bf16x2.h has it, of the spans before; or NULL */
	float (*d)[PANEL_ROWS];		/* [widest] of the span: what earlier blocks add, in FP8 units */
	float (*b)[PANEL_ROWS];		/* [BLOCK_COLUMNS] errors of the block, over their pivots */
	uint8_t (*code)[PANEL_ROWS];		/* [n] by column */
	float (*scale)[PANEL_ROWS];		/* [groups] */
	uint8_t (*zero)[PANEL_ROWS];
	float (*member)[LANES];		/* [largest group] */
	float (*exact)[LANES];		/* likewise, not rounded; for the search hessian, as the next */
	float *refine;
	struct clip_group *clip;	/* [groups] for the search learned */
	float (*y)[PANEL_ROWS];		/* [SPAN_COLUMNS] */
	double (*x)[LANES];		/* [BLOCK_COLUMNS]: weights of the block in FP8 units */
	double *scale8;			/* [PANEL_ROWS] */
};

/* Everything of a call. */
struct call {
	size_t jobs, layers;
	struct job *job;		/* [jobs] */
	struct rows *rows;		/* [layers], those of a job side by side */
	int threads;			/* as many as there is work for */
	struct workspace *workspace;	/* [threads] */
};

/* Cuts the workspace at `base`, 64-byte aligned, and fills in what the layers say; returns its size.
 * base NULL: only that. */
size_t job_lay_out(struct call *call, size_t count, struct solver_layer layer[count], char *base);

/* Live columns, groups, their members, and spans from the order; STATUS_BAD_ORDER: at *index. */
enum status job_plan(struct job *j, size_t *index);

/* Where the block of a span ends that starts at first: where a group does, but a large group is cut. */
size_t job_block_end(const struct job *j, const struct span *span, size_t first);

/* Rows row .. row + n - 1 of the weight: a view, or rebuilt in a->read; n ≤ ROWS_AT_ONCE. */
const float *job_weights(const struct rows *l, const struct workspace *a, size_t row, size_t n);

/* In solver_fit.c. */
/* x = w/s₈ + d; scale8 NULL: 1, d NULL: 0 */
void fit_weigh(double x[LANES], const float w[LANES], const float *d, const double *scale8);
/* s₈ of rows from lane l0 on, or NULL where it is 1. */
const double *fit_scale8(const struct job *j, const struct workspace *a, size_t l0);
/* Parameters of a group for LANES rows from lane l0. Positions first .. last - 1 are up to date in a->x; of
 * others those of the span have w/s₈ + d, the rest w/s₈. */
void fit_group(const struct rows *r, const struct workspace *a, const struct span *span, size_t group,
	size_t l0, size_t first, size_t last);
/* Parameters of a panel that do not wait for compensation, and what is learned before; a->e is scratch. */
void fit_panel(const struct rows *r, const struct workspace *a, size_t lanes);

/* In solver_scale.c, in OpenMP tasks; workspace: one for each thread. */
/* low, high of each row's live columns, 0 among them; STATUS_BAD_WEIGHT: row *index is not finite. */
enum status scale_ranges(struct rows *l, const struct workspace *workspace, size_t *index);
/* scale8 of each row from the ranges, 1 without a compute format; then `storage`. */
void scale_rows(struct rows *l);
/* tensor_scale and tensor_zero: one pair for the whole matrix. */
void scale_tensor(struct rows *l, const struct workspace *workspace);
/* x to FP8, if the solver rounds before it takes the code. */
void scale_round_first(const struct solver *s, size_t n, float x[n]);
#endif
