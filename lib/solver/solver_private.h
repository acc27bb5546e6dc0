/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_private.h -- state of the solver, shared by solver.c, solver_job.c, solver_scale.c, solver_fit.c,
 * solver_paths.c, solver_turns.c and solver_device.c
 *
 * A job has the data that layers with the same H, order and settings share: the columns by their index in the
 * order (position), live columns first; groups, of original columns, or of columns adjacent in the order if
 * `moved`; the factor R; and spans of columns, inside which U = (R_span)⁻¹. Each thread has a workspace for a
 * transposed panel of rows.
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
	PANEL_ROWS = CLIP_ROWS, ROWS_AT_ONCE = 16,	/* rows of a panel; rows that are read at once */
};

struct span {
	size_t first, last;		/* positions */
	float *v;			/* [last - first]²: Uᵀ, lower triangle */
	char *left;			/* R_earlier,span for num/bf16x2.h; NULL: products are in float */
};

struct job {
	const struct solver *s;
	const struct device *device;	/* NULL: the processor */
	struct coding coding;
	size_t n;
	size_t live;			/* columns to quantize; dead columns follow them in the order */
	size_t groups, largest, widest;	/* columns of the largest group; maximum columns of a span */
	size_t paths, turns;		/* 1 and 0 without compensation */
	bool moved;			/* groups are of columns adjacent in the order */
	bool late;			/* parameters are computed at the first column of a group */
	const float *h;
	const int32_t *order;
	double mean, lambda;		/* of factor_run() */
	uint8_t beside[2][256];		/* of paths_beside() */

	int32_t *column;		/* [n] position → column */
	int32_t *group;			/* [n] position → group */
	int32_t *first, *member;	/* [groups + 1], [live]: live positions of each group */
	float *r;			/* [live][live] */
	float *v;			/* memory of v of all spans */
	char *left;			/* memory of `left` of all spans, 0.75 times that of r; or NULL */
	double *inverse;		/* [widest]² */
	size_t spans;
	struct span *span;		/* [ceil(n / SPAN_COLUMNS) + groups] */
};

/* One layer of a job. */
struct rows {
	const struct job *job;
	struct solver_layer *layer;
	size_t m;
	float *low, *high, *scale8;	/* [m] range and s₈ of each row */
	struct format storage;		/* with the divisor of the layer's scales */
	double *piece_loss;		/* [pieces][SEARCH_STEPS] */
	double (*sum)[3];		/* [panels] */
	double *seconds;		/* [panels] */
	float tensor_scale;
	uint8_t tensor_zero;
};

/* Workspace of a thread, for a panel of any layer. */
struct workspace {
	float *read;			/* [ROWS_AT_ONCE][n] rows of the weight in storage order */
	float (*w)[PANEL_ROWS];		/* [n] by column: weights, then W - Ŵ */
	float (*e)[PANEL_ROWS];		/* [n] by position: uncompensated weight - target, in FP8 units */
	char *right;			/* e of earlier spans as a right side of num/bf16x2.h; or NULL */
	float (*d)[PANEL_ROWS];		/* [widest] compensation by earlier blocks, in FP8 units */
	float (*b)[PANEL_ROWS];		/* [BLOCK_COLUMNS] errors of the block, divided by their pivots */
	uint8_t (*code)[PANEL_ROWS];		/* [n] by column */
	float (*scale)[PANEL_ROWS];		/* [groups] */
	uint8_t (*zero)[PANEL_ROWS];
	float (*member)[LANES];		/* [largest group] */
	float (*exact)[LANES];		/* [largest group] before rounding to FP8, for the search hessian */
	float *refine;			/* workspace of refine_fit(), for the search hessian */
	struct clip_group *clip;	/* [groups] for the search learned */
	float (*y)[PANEL_ROWS];		/* [SPAN_COLUMNS] */
	double (*x)[LANES];		/* [BLOCK_COLUMNS]: weights of the block in FP8 units */
	double *scale8;			/* [PANEL_ROWS] */
	double *cost;			/* [PANEL_ROWS] Σ b² of each lane */
	struct paths *paths;		/* with several paths */
	struct turns *turns;		/* with turns */
};

/* State of the paths of a panel. */
struct paths {
	int32_t parent[BLOCK_COLUMNS][LANES];	/* lane of the path that each lane extends */
	float sum[BLOCK_COLUMNS][LANES];	/* compensation by the block's earlier columns */
};

/* What a sweep over the columns finds: codes and parameters of groups; codes for given parameters; the costs
 * of given codes. */
enum sweep { SWEEP_ALL, SWEEP_CODES, SWEEP_COSTS };

/* State of the turns of a panel. */
struct turns {
	enum sweep sweep;
	double best[PANEL_ROWS], squares[PANEL_ROWS];	/* of the result: Σ b², Σ e² */
	float (*kept)[PANEL_ROWS];	/* [n] its W - Ŵ */
	float (*level)[PANEL_ROWS];	/* [n] by position: value of the code, less the zero */
	float (*rows)[PANEL_ROWS];	/* [SPAN_COLUMNS] */
	double (*matrix)[PANEL_ROWS];	/* [groups (groups + 1)/2] lower triangles */
	double (*side)[PANEL_ROWS];	/* [groups] right sides, then solutions */
};

/* State of a call of solver_run(). */
struct call {
	size_t jobs, layers;
	struct job *job;		/* [jobs] */
	struct rows *rows;		/* [layers], layers of a job are adjacent */
	int threads;			/* number of threads, limited by the amount of work */
	struct workspace *workspace;	/* [threads] */
};

/* Divides the workspace at `base`, aligned to 64 bytes, fills in *call from the layers, and returns the size
 * of the workspace. base NULL: for the size only. */
size_t job_lay_out(struct call *call, size_t count, struct solver_layer layer[count], char *base);

/* In solver.c: codes and report of a layer, from r->sum, r->seconds and what its codes contain already. */
void job_finish(const struct rows *r);

/* Rows of a panel, whose lanes are their paths. */
size_t job_panel_rows(const struct solver *s);

/* Sets live columns, groups, their members, and spans from the order. STATUS_BAD_ORDER: at position
 * *index. */
enum status job_plan(struct job *j, size_t *index);

/* End of the block of a span that starts at position first: the end of a group, or within a large group. */
size_t job_block_end(const struct job *j, const struct span *span, size_t first);

/* Rows [row, row + n) of the weight: a view, or rebuilt in a->read; n ≤ ROWS_AT_ONCE. */
const float *job_weights(const struct rows *l, const struct workspace *a, size_t row, size_t n);

/* In solver_fit.c. */
/* x = w/s₈ + d; scale8 NULL: 1, d NULL: 0 */
void fit_weigh(double x[LANES], const float w[LANES], const float *d, const double *scale8);
/* s₈ of rows from lane l0 on; NULL: 1. */
const double *fit_scale8(const struct job *j, const struct workspace *a, size_t l0);
/* Whether the parameters of the group of position p are computed there. */
bool fit_is_due(const struct job *j, const struct workspace *a, size_t p);
/* Computes the parameters of a group for LANES rows from lane l0. Weights of positions [first, last) are in
 * a->x. Weights of other positions are w/s₈ + d in the span, w/s₈ without a span. */
void fit_group(const struct rows *r, const struct workspace *a, const struct span *span, size_t group,
	size_t l0, size_t first, size_t last);
/* Computes the parameters of a panel that do not depend on compensation, after learning the clipping if the
 * search is learned. a->e is scratch. */
void fit_panel(const struct rows *r, const struct workspace *a, size_t lanes);

/* In solver_paths.c, with several paths. */
/* The codes of the next smaller and the next larger value than that of each code; the code itself: none. */
void paths_beside(const struct format *f, uint8_t beside[2][256]);
/* Repeats each of the rows of a panel in as many lanes as it has paths. Returns the lanes in use. */
size_t paths_spread(const struct job *j, const struct workspace *a, size_t rows);
/* Quantizes a block of columns of a span for LANES lanes from lane l0 on. */
void paths_block(const struct rows *r, const struct workspace *a, const struct span *span, size_t l0,
	size_t first, size_t last);
/* Moves the best path of each row back to the lane of the row; lanes: to be in use then. */
void paths_take(const struct job *j, const struct workspace *a, size_t rows, size_t lanes);

/* In solver_turns.c, with turns. */
void turns_begin(const struct workspace *a);
/* Scales of the codes in closed form. a->w: the weights; a->e and a->y are scratch. */
void turns_rescale(const struct rows *r, const struct workspace *a, size_t lanes);
/* Keeps the rows that cost less than before, and says which. */
void turns_keep(const struct job *j, const struct workspace *a, size_t rows, bool better[rows]);
/* a->w = W - Ŵ of the rows that were kept. Returns Σ e² of all rows; *damped: Σ b². */
double turns_take(const struct job *j, const struct workspace *a, size_t rows, double *damped);

/* In solver_device.c */
/* Quantizes the layers of a job on its device; first: the first of its rows. */
void device_job(struct job *j, struct rows *first, struct rows *end);

/* In solver_scale.c, in OpenMP tasks; workspace: one for each thread. */
/* Sets low, high of each row: the range of its live columns and 0. STATUS_BAD_WEIGHT: row *index is not
 * finite. */
enum status scale_ranges(struct rows *l, const struct workspace *workspace, size_t *index);
/* Sets scale8 of each row from the ranges (1 without a compute format), then `storage`. */
void scale_rows(struct rows *l);
/* Sets tensor_scale and tensor_zero, one pair for the whole matrix. */
void scale_tensor(struct rows *l, const struct workspace *workspace);
/* Rounds x to FP8 if settings have round_first and a compute format. */
void scale_round_first(const struct solver *s, size_t n, float x[n]);
#endif
