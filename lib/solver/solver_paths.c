/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver_paths.c -- several paths of each row through its columns; see solver_private.h
 *
 * A path is a choice of codes of the columns so far. Its cost is Σ e², e = (w - ŵ)/U_ii, which in the end is
 * tr(E (H + λI) Eᵀ) of the row. A path is extended by the nearest code and by the one on the other side of
 * the weight. Of all extensions the K of least cost stay, ties by the lower parent, then the nearer code. One
 * path is GPTQ. The parameters of a group are those of the best path when it enters the group.
 *
 * K neighbouring lanes of a panel are the paths of a row in ascending order of cost. Before the first column
 * all but the first of them have an infinite cost. In a block a lane has the sums of its path; codes and
 * errors stay where they were made, and move to the lanes of the last paths at the end of the block.
 *
 * Sources: Guo and Nilsson, "Algorithm and implementation of the K-best sphere decoding for MIMO detection"
 * (2006); GPTQ as a search of the nearest plane: arXiv 2507.18553.
 */
#include <math.h>
#include <string.h>
#include "solver/solver_private.h"
#include "num/clones.h"

/* An extension of every lane: code, value, the value in FP8, b = (x - target)/U_ii, and the cost. */
struct extension {
	uint8_t code[LANES];
	float y[LANES], dual[LANES], b[LANES];
	double cost[LANES];
};

enum { NEAREST, OTHER, EXTENSIONS };

static bool has_value(const struct format *f, size_t code)
{
	return (code & f->code_mask) <= f->code_last && code <= f->code_mask;
}

void paths_beside(const struct format *f, uint8_t beside[2][256])
{
	for (size_t c = 0; c < 256; c++) {
		beside[0][c] = beside[1][c] = (uint8_t)c;
		for (size_t k = 0; k < (size_t)1 << f->bits; k++) {
			const float y = f->grid[k];
			const float below = f->grid[beside[0][c]], above = f->grid[beside[1][c]];

			if (!has_value(f, k))
				continue;
			if (y < f->grid[c] && (beside[0][c] == c || y > below))
				beside[0][c] = (uint8_t)k;
			if (y > f->grid[c] && (beside[1][c] == c || y < above))
				beside[1][c] = (uint8_t)k;
		}
	}
}

/* Moves lanes: to[l] = from[lane[l]]. */
CLONES(static, void, move, (float x[LANES], const int32_t lane[LANES]), (x, lane))
{
	float from[LANES];

	memcpy(from, x, sizeof from);
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		x[l] = from[lane[l]];
}

static void move_codes(uint8_t x[LANES], const int32_t lane[LANES])
{
	uint8_t from[LANES];

	memcpy(from, x, sizeof from);
	for (size_t l = 0; l < LANES; l++)
		x[l] = from[lane[l]];
}

static void compose(int32_t lane[LANES], const int32_t parent[LANES])
{
	int32_t before[LANES];

	memcpy(before, lane, sizeof before);
	for (size_t l = 0; l < LANES; l++)
		lane[l] = before[parent[l]];
}

static void identity(int32_t lane[LANES])
{
	for (size_t l = 0; l < LANES; l++)
		lane[l] = (int32_t)l;
}

/* x = x[lane] - sum, where x is of the lanes of an earlier column. */
CLONES(static, void, take, (double x[LANES], const int32_t lane[LANES], const float sum[LANES]),
	(x, lane, sum))
{
	double from[LANES];

	memcpy(from, x, sizeof from);
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		x[l] = from[lane[l]] - sum[l];
}

/* Moves the sums of n later columns to their new lanes, and adds the error: sum_i = sum_i[parent] + u_i b. */
CLONES(static, void, extend_sums, (size_t n, float sum[n][LANES], const int32_t parent[LANES],
	const float b[LANES], size_t stride, const float u[]), (n, sum, parent, b, stride, u))
{
	for (size_t i = 0; i < n; i++) {
		float from[LANES];

		memcpy(from, sum[i], sizeof from);
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			sum[i][l] = from[parent[l]] + u[i * stride] * b[l];
	}
}

CLONES(static, void, costs, (struct extension *y, const double x[LANES], const float target[LANES],
	const double cost[LANES], double r), (y, x, target, cost, r))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		y->b[l] = (float)((x[l] - target[l]) * r);
		y->cost[l] = cost[l] + (double)y->b[l] * y->b[l];
	}
}

/* Completes an extension of all lanes, whose code and y are set. */
static void complete(const struct job *j, struct extension *y, const double x[LANES],
	const double cost[LANES], double r)
{
	const struct solver *s = j->s;

	if (s->compute.kind)
		format_round(&s->compute, LANES, y->dual, y->y, 1, s->saturate);
	costs(y, x, s->compute.kind && s->compensate != COMPENSATE_STORAGE ? y->dual : y->y, cost, r);
}

static void extend(const struct job *j, const struct workspace *a, size_t p, size_t l0,
	struct extension y[EXTENSIONS], const double x[LANES])
{
	const struct format *f = &j->s->storage;
	const size_t g = (size_t)j->group[p];
	const float *scale = a->scale[g] + l0;
	const double r = j->r[p * (j->live + 1)], *cost = a->cost + l0;
	double memory[LANES];
	const double *first;

	coding_round(&j->coding, y[NEAREST].code, y[NEAREST].y, x, scale, a->zero[g] + l0);
	first = coding_first(&j->coding, memory, x);
	for (size_t l = 0; l < LANES; l++) {
		const uint8_t c = y[NEAREST].code[l];
		const bool above = (double)y[NEAREST].y[l] < first[l];
		uint8_t other = j->beside[above][c];

		if (other == c)
			other = j->beside[!above][c];
		y[OTHER].code[l] = other;
		y[OTHER].y[l] = (f->grid[other] - (f->asymmetric ? (float)a->zero[g][l0 + l] : 0)) *
			scale[l];
	}
	complete(j, &y[NEAREST], x, cost, r);
	complete(j, &y[OTHER], x, cost, r);
}

/* Selects the best extensions of the row whose lanes begin at `base`. */
static void select_row(size_t paths, size_t base, const struct extension y[EXTENSIONS],
	int32_t parent[LANES], uint8_t which[LANES], double cost[LANES])
{
	size_t n = 0;

	for (size_t c = 0; c < EXTENSIONS * paths; c++) {
		const size_t lane = base + c / EXTENSIONS;
		const double x = y[c % EXTENSIONS].cost[lane];
		size_t at = n;

		if (n == paths && !(x < cost[base + n - 1]))
			continue;
		for (n += n < paths, at = n - 1; at && x < cost[base + at - 1]; at--) {
			cost[base + at] = cost[base + at - 1];
			parent[base + at] = parent[base + at - 1];
			which[base + at] = which[base + at - 1];
		}
		cost[base + at] = x;
		parent[base + at] = (int32_t)lane;
		which[base + at] = (uint8_t)(c % EXTENSIONS);
	}
}

/* Quantizes the column at position p, whose weights are x: extends the paths, and stores what the best of
 * them add. b: the errors divided by the pivot. */
static void extend_column(const struct job *j, const struct workspace *a, size_t p, size_t l0, float b[LANES],
	const double x[LANES], int32_t parent[LANES])
{
	const struct solver *s = j->s;
	const size_t c = (size_t)j->column[p];
	const double *scale8 = fit_scale8(j, a, l0);
	struct extension y[EXTENSIONS];
	uint8_t which[LANES] = { 0 };
	double cost[LANES] = { 0 };

	extend(j, a, p, l0, y, x);
	for (size_t base = 0; base < LANES; base += j->paths)
		select_row(j->paths, base, y, parent, which, cost);
	for (size_t l = 0; l < LANES; l++) {
		const struct extension *e = &y[which[l]];
		const int32_t from = parent[l];
		const float value = s->compute.kind ? e->dual[from] : e->y[from];
		const float target = s->compensate == COMPENSATE_STORAGE ? e->y[from] : value;
		const float w = a->w[c][l0 + l];

		a->cost[l0 + l] = cost[l];
		a->code[c][l0 + l] = e->code[from];
		b[l] = e->b[from];
		a->e[p][l0 + l] = scale8 ? (float)(w / scale8[l] - target) : w - target;
		a->w[c][l0 + l] = scale8 ? w - value * (float)scale8[l] : w - value;
	}
}

/* Moves what the columns of a block have made to the lanes of the paths at its end; then all before it. */
static void trace_back(const struct job *j, const struct workspace *a, const struct span *span, size_t l0,
	size_t first, size_t last)
{
	int32_t lane[LANES], same[LANES];

	identity(lane);
	identity(same);
	for (size_t p = last; p-- > 0;) {
		const size_t c = (size_t)j->column[p];

		if (p < first && !memcmp(lane, same, sizeof lane))
			break;
		move_codes(a->code[c] + l0, lane);
		move(a->e[p] + l0, lane);
		move(a->w[c] + l0, lane);
		if (p >= first) {
			move(a->b[p - first] + l0, lane);
			compose(a->paths->parent[p - first], lane);
			memcpy(lane, a->paths->parent[p - first], sizeof lane);
		}
	}
	for (size_t q = last; q < span->last; q++)
		move(a->d[q - span->first] + l0, lane);
}

/* Parameters of a group for all paths: those of the best. */
static void fit_best(const struct rows *r, const struct workspace *a, const struct span *span, size_t group,
	size_t l0, size_t first, size_t last)
{
	const size_t paths = r->job->paths;

	fit_group(r, a, span, group, l0, first, last);
	for (size_t l = l0; l < l0 + LANES; l++) {
		a->scale[group][l] = a->scale[group][l - l % paths];
		a->zero[group][l] = a->zero[group][l - l % paths];
	}
}

void paths_block(const struct rows *r, const struct workspace *a, const struct span *span, size_t l0,
	size_t first, size_t last)
{
	const struct job *j = r->job;
	const bool exact = j->s->group_view == VIEW_EXACT;
	const size_t at = first - span->first, width = span->last - span->first, n = last - first;
	const float *v = span->v + at * (width + 1);	/* the block's triangle */
	float (*sum)[LANES] = a->paths->sum;
	int32_t lane[LANES];	/* at which a->x of the coming columns has the path of each lane */

	memset(sum, 0, n * sizeof *sum);
	identity(lane);
	for (size_t p = first; p < last; p++)
		fit_weigh(a->x[p - first], a->w[j->column[p]] + l0,
			first ? a->d[p - span->first] + l0 : NULL, fit_scale8(j, a, l0));
	for (size_t p = first; p < last; p++) {
		const size_t k = p - first;

		if (fit_is_due(j, a, p)) {
			for (size_t q = k; exact && q < n; q++) {
				take(a->x[q], lane, sum[q]);
				memset(sum[q], 0, sizeof sum[q]);
			}
			if (exact)
				identity(lane);
			fit_best(r, a, span, (size_t)j->group[p], l0, first, exact ? last : first);
		}
		take(a->x[k], lane, sum[k]);
		extend_column(j, a, p, l0, a->b[k] + l0, a->x[k], a->paths->parent[k]);
		compose(lane, a->paths->parent[k]);
		extend_sums(n - k - 1, sum + k + 1, a->paths->parent[k], a->b[k] + l0, width,
			v + (k + 1) * width + k);
	}
	trace_back(j, a, span, l0, first, last);
}

/* ---- a panel ---- */

size_t paths_spread(const struct job *j, const struct workspace *a, size_t rows)
{
	const size_t paths = j->paths, lanes = ceil_div(rows * paths, LANES) * LANES;

	for (size_t l = lanes; l-- > 0;) {
		const size_t from = l / paths;

		for (size_t c = 0; c < j->n; c++)
			a->w[c][l] = from < rows ? a->w[c][from] : 0;
		a->scale8[l] = from < rows ? a->scale8[from] : 1;
		for (size_t g = 0; g < j->groups; g++) {
			a->scale[g][l] = a->scale[g][from];
			a->zero[g][l] = a->zero[g][from];
		}
		a->cost[l] = l % paths ? INFINITY : 0;
	}
	return lanes;
}

void paths_take(const struct job *j, const struct workspace *a, size_t rows, size_t lanes)
{
	const size_t paths = j->paths;

	for (size_t l = 0; l < lanes; l++) {
		const bool used = l < rows;
		const size_t from = used ? l * paths : 0;

		for (size_t c = 0; c < j->n; c++) {
			a->w[c][l] = used ? a->w[c][from] : 0;
			a->e[c][l] = used ? a->e[c][from] : 0;
			a->code[c][l] = a->code[c][from];
		}
		for (size_t g = 0; g < j->groups; g++) {
			a->scale[g][l] = a->scale[g][from];
			a->zero[g][l] = a->zero[g][from];
		}
		a->scale8[l] = used ? a->scale8[from] : 1;
		a->cost[l] = used ? a->cost[from] : 0;
	}
}
