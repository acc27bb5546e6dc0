/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * job.h -- one layer on its way through the solver: what solver.c, job.c and scale.c share
 *
 * Columns are known by their place in the order (position), live ones first.
 * Groups are cut from the original columns, or from the order where `moved`.
 * The solver gives each thread an area for a panel of rows, transposed.
 *
 * Source: SPEC sections 3 to 6.
 */
#ifndef QUANT_JOB_H
#define QUANT_JOB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "quant/solver.h"

/* Columns a block, rows a vector loop, a panel, and a strip of scale.c. */
enum { BLOCK = 128, LANES = SEARCH_LANES, PANEL = 256, STRIP = 16 };

/* What a panel of rows needs. */
struct area {
	float (*w)[PANEL];		/* [n] by column: weights, then W - Ŵ */
	float (*d)[PANEL];		/* [live] by position: what earlier blocks add, in FP8 units */
	uint8_t (*code)[PANEL];		/* [n] by column */
	float (*scale)[PANEL];		/* [groups] */
	uint8_t (*zero)[PANEL];
	float (*member)[LANES];		/* [largest group] */
	float (*e)[PANEL];		/* [BLOCK] */
	float (*y)[PANEL];
	float (*u)[BLOCK];		/* [BLOCK]: the block of U, transposed */
	double (*x)[LANES];		/* [BLOCK]: weights of the block in FP8 units */
	double *scale8;			/* [PANEL] */
};

struct job {
	const struct solver *s;
	size_t m, n;
	size_t live;			/* columns to quantize; dead ones stand behind them in the order */
	size_t groups, largest;
	bool moved;			/* groups are cut from the order */
	bool late;			/* parameters are taken when a group's first column is reached */
	const float *w, *h;

	int32_t *column;		/* [n] position → column */
	int32_t *group;			/* [n] position → group */
	int32_t *first, *member;	/* [groups + 1], [live]: live positions of each group */
	double *factor;			/* [live][live] */
	float *u;			/* [live][live] */
	double *pivot;			/* [live] U_ii */
	float *low, *high, *scale8;	/* [m] of a row */
	double *strip_loss;		/* [strips][SEARCH_STEPS] */
	double *sum;			/* [panels][3] */
	float tensor_scale;
	uint8_t tensor_zero;
	struct area *area;		/* [threads] */
};

static inline size_t ceil_div(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

/* Cuts the work area up, 64-byte aligned base; returns its size. base NULL: only that. */
size_t job_lay_out(struct job *j, const struct solver *s, size_t m, size_t n, char *base);

/* Live columns, groups and their members from the order (NULL: as they stand); SOLVER_BAD_ORDER: at *index. */
enum solver_status job_plan(struct job *j, const int32_t *order, size_t *index);
#endif
