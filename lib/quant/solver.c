/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver.c -- see solver.h
 *
 * Threads take panels of PANEL rows. A panel is transposed, so that rows are
 * the lanes of every loop and an order is a choice of rows. Columns go in
 * blocks of BLOCK: inside a block each column sums up what the earlier ones
 * left it, after it one product brings the panel's remaining columns up to
 * date. That compensation is kept apart from the weights and added in double,
 * so that a code does not hang on the rounding of intermediate weights.
 *
 * U is taken from factor.h, s₈ from scale.h, order, groups and work area from job.h.
 */
#include "quant/solver.h"
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/thread.h"
#include "quant/factor.h"
#include "quant/job.h"
#include "quant/scale.h"
#include "num/clones.h"

const char *const compensates[] = {
	[COMPENSATE_BOTH] = "both", [COMPENSATE_STORAGE] = "storage", [COMPENSATE_NONE] = "none", NULL
};
const char *const group_views[] = {
	[VIEW_EXACT] = "exact", [VIEW_BLOCK] = "block", [VIEW_ORIGINAL] = "original", NULL
};
const char *const recipes[] = { [RECIPE_LATE] = "late", [RECIPE_PAPER] = "paper", [RECIPE_INC] = "inc", NULL };

static const struct {
	enum group_view view;
	enum search search;
	bool round_first, pow2;
	float top;			/* share of the format's top that is used */
	float min_scale8;
} recipe_rows[] = {
	[RECIPE_LATE] = { VIEW_EXACT, SEARCH_MSE, false, true, 1, 0 },
	[RECIPE_PAPER] = { VIEW_EXACT, SEARCH_MSE, true, true, 1, 0 },
	[RECIPE_INC] = { VIEW_ORIGINAL, SEARCH_MINMAX, false, true, 14.f / 15, 0x1p-16f },
};

static const char *const texts[] = {
	[SOLVER_DONE] = "done",
	[SOLVER_BAD_WEIGHT] = "a weight is not finite",
	[SOLVER_BAD_ORDER] = "the order is not a permutation of the columns",
	[SOLVER_BAD_DIAGONAL] = "the Hessian has a diagonal that is negative or not finite",
	[SOLVER_BAD_HESSIAN] = "the Hessian has an element that is not finite",
	[SOLVER_NOT_POSITIVE] = "the Hessian is not positive definite, even damped 100-fold",
};

void solver_recipe(struct solver *s, enum recipe recipe)
{
	s->group_view = recipe_rows[recipe].view;
	s->search = recipe_rows[recipe].search;
	s->round_first = recipe_rows[recipe].round_first;
	s->pow2_scale = recipe_rows[recipe].pow2;
	s->min_scale8 = recipe_rows[recipe].min_scale8;
	s->z_top = s->compute.top * recipe_rows[recipe].top;
	if (s->compute.kind)
		format_round(&s->compute, 1, &s->z_top, &s->z_top, 1, 0);
	s->saturate = s->z_top;
}

const char *solver_text(enum solver_status status)
{
	return texts[status];
}

size_t solver_work(const struct solver *s, size_t m, size_t n)
{
	struct job j;

	return job_lay_out(&j, s, m, n, NULL) + 63;
}

/* --- lanes of a panel --- */

/* x = w/s₈ + d */
CLONES(static, void, weigh, (double x[LANES], const float w[LANES], const float d[LANES],
	const double scale8[LANES]), (x, w, d, scale8))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		x[l] = w[l] / scale8[l] + d[l];
}

/* x -= Σ_i u_i e_i */
CLONES(static, void, compensate, (size_t n, double x[LANES], const float e[n][PANEL], const float u[n]), (n, x, e, u))
{
	typedef float wide __attribute__((vector_size(64), aligned(4), may_alias));
	wide a = { 0 }, b = a, c = a, d = a;
	float sum[LANES];

	for (size_t i = 0; i < n; i++) {
		const wide *v = (const wide *)e[i];

		a += v[0] * u[i];
		b += v[1] * u[i];
		c += v[2] * u[i];
		d += v[3] * u[i];
	}
	memcpy(sum, &a, sizeof a);
	memcpy(sum + 16, &b, sizeof b);
	memcpy(sum + 32, &c, sizeof c);
	memcpy(sum + 48, &d, sizeof d);
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		x[l] -= sum[l];
}

/* Takes a member of a group: its value in float, and the range widened to hold it. */
CLONES(static, void, widen, (float y[LANES], double low[LANES], double high[LANES], const double x[LANES]),
	(y, low, high, x))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		y[l] = (float)x[l];
		low[l] = x[l] < low[l] ? x[l] : low[l];
		high[l] = x[l] > high[l] ? x[l] : high[l];
	}
}

CLONES(static, void, narrow, (float y[LANES], const double x[LANES]), (y, x))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		y[l] = (float)x[l];
}

/* e = (x - target)/pivot; w becomes w - ŷ·s₈ in the float arithmetic of linear_weight(). */
CLONES(static, void, errors, (float e[LANES], float w[LANES], const double x[LANES], const float target[LANES],
	const float y[LANES], const double scale8[LANES], double pivot), (e, w, x, target, y, scale8, pivot))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		e[l] = (float)((x[l] - target[l]) / pivot);
		w[l] -= y[l] * (float)scale8[l];
	}
}

/* Parameters of a group for LANES rows from lane l0. Positions first .. last - 1 are up to date in a->x, all
 * others are w/s₈ + d. */
static void fit_group(const struct job *j, const struct area *a, size_t group, size_t l0, size_t first, size_t last)
{
	const struct solver *s = j->s;
	const size_t from = (size_t)j->first[group], n = (size_t)j->first[group + 1] - from;
	double low[LANES] = { 0 }, high[LANES] = { 0 }, x[LANES];

	for (size_t i = 0; i < n; i++) {
		size_t p = (size_t)j->member[from + i], c = (size_t)j->column[p];

		if (p >= first && p < last)
			memcpy(x, a->x[p - first], sizeof x);
		else
			weigh(x, a->w[c] + l0, a->d[p] + l0, a->scale8 + l0);
		if (s->round_first && s->compute.kind) {
			narrow(a->member[i], x);
			scale_round_first(s, LANES, a->member[i]);
			for (size_t l = 0; l < LANES; l++)
				x[l] = a->member[i][l];
		}
		widen(a->member[i], low, high, x);
	}
	search_fit(&s->storage, s->search, n, a->scale[group] + l0, a->zero[group] + l0,
		(const float (*)[LANES])a->member, low, high);
}

/* Quantizes the column at position p, weights x. */
static void take_column(const struct job *j, const struct area *a, size_t p, size_t l0, float e[LANES],
	double x[LANES])
{
	const struct solver *s = j->s;
	const size_t c = (size_t)j->column[p], g = (size_t)j->group[p];
	float y[LANES], dual[LANES];
	double rounded[LANES];
	const bool fp8 = s->compute.kind;

	if (fp8 && s->round_first) {
		narrow(y, x);
		scale_round_first(s, LANES, y);
		for (size_t l = 0; l < LANES; l++)
			rounded[l] = y[l];
	}
	format_quantize(&s->storage, LANES, a->code[c] + l0, y, fp8 && s->round_first ? rounded : x,
		a->scale[g] + l0, a->zero[g] + l0);
	if (fp8)
		format_round(&s->compute, LANES, dual, y, 1, s->saturate);
	errors(e, a->w[c] + l0, x, fp8 && s->compensate != COMPENSATE_STORAGE ? dual : y, fp8 ? dual : y,
		a->scale8 + l0, s->compensate == COMPENSATE_NONE ? 1 : j->pivot[p]);
}

/* Where the group of position p ends in the order. */
static size_t group_end(const struct job *j, size_t p)
{
	size_t end = p;

	while (end < j->live && j->group[end] == j->group[p])
		end++;
	return end;
}

/* A block holds whole groups where their parameters need all earlier columns; a large group is cut. */
static size_t block_end(const struct job *j, size_t first)
{
	size_t end = first, full = first + BLOCK < j->live ? first + BLOCK : j->live;

	if (!j->late || j->s->group_view == VIEW_BLOCK)
		return full;
	while (end < full && group_end(j, end) <= full)
		end = group_end(j, end);
	return end > first ? end : full;
}

/* One block of columns for LANES rows from lane l0. */
static void take_block(const struct job *j, const struct area *a, size_t l0, size_t first, size_t last)
{
	const bool solve = j->s->compensate != COMPENSATE_NONE, exact = j->s->group_view == VIEW_EXACT;
	size_t done = 0;		/* columns of the block whose errors the current group has in x already */

	for (size_t p = first; p < last; p++)
		weigh(a->x[p - first], a->w[j->column[p]] + l0, a->d[p] + l0, a->scale8 + l0);
	for (size_t p = first; p < last; p++) {
		const size_t k = p - first;

		if (j->late && (p == 0 || j->group[p] != j->group[p - 1])) {
			size_t end = group_end(j, p);

			if (exact) {
				for (size_t q = p; q < end && q < last; q++)
					compensate(k, a->x[q - first], (const float (*)[PANEL])(a->e[0] + l0),
						a->u[q - first]);
				done = k;
			}
			fit_group(j, a, (size_t)j->group[p], l0, first, exact ? last : first);
		}
		if (solve)
			compensate(k - done, a->x[k], (const float (*)[PANEL])(a->e[done] + l0), a->u[k] + done);
		take_column(j, a, p, l0, a->e[k] + l0, a->x[k]);
	}
}

/* tr(A H Aᵀ) of a panel that holds A transposed; H by its upper triangle. */
static double energy(const struct job *j, const struct area *a, size_t lanes)
{
	const int n = (int)j->n, m = (int)lanes;
	double sum = 0;

	for (int b = 0; b < n; b += BLOCK) {
		const int size = n - b < BLOCK ? n - b : BLOCK, rest = n - b - size;
		const float *h = j->h + (size_t)b * j->n + (size_t)b;

		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, m, size, 1, h, n, a->w[b], PANEL,
			0, a->y[0], PANEL);
		if (rest)
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, m, rest, 2, h + size, n,
				a->w[b + size], PANEL, 1, a->y[0], PANEL);
		for (int k = 0; k < size; k++) {
			double s = 0;

			#pragma omp simd reduction(+:s)
			for (size_t l = 0; l < lanes; l++)
				s += (double)a->w[b + k][l] * a->y[k][l];
			sum += s;
		}
	}
	return sum;
}

static void load(const struct job *j, const struct area *a, size_t row, size_t rows, size_t lanes)
{
	for (size_t b = 0; b < j->n; b += LANES) {
		size_t end = b + LANES < j->n ? b + LANES : j->n;

		for (size_t l = 0; l < lanes; l++)
			for (size_t c = b; c < end; c++)
				a->w[c][l] = l < rows ? j->w[(row + l) * j->n + c] : 0;
	}
	for (size_t l = 0; l < lanes; l++)
		a->scale8[l] = l < rows ? j->scale8[row + l] : 1;
	for (size_t p = 0; p < j->live; p++)
		memset(a->d[p], 0, lanes * sizeof a->d[p][0]);
}

static void store(const struct job *j, const struct area *a, size_t row, size_t rows, uint8_t *codes, float *scale,
	uint8_t *zero)
{
	for (size_t b = 0; b < j->n; b += LANES) {
		size_t end = b + LANES < j->n ? b + LANES : j->n;

		for (size_t l = 0; l < rows; l++)
			for (size_t c = b; c < end; c++)
				codes[(row + l) * j->n + c] = a->code[c][l];
	}
	if (j->s->group == -1)
		return;
	for (size_t l = 0; l < rows; l++)
		for (size_t g = 0; g < j->groups; g++) {
			scale[(row + l) * j->groups + g] = a->scale[g][l];
			if (j->s->storage.asymmetric)
				zero[(row + l) * j->groups + g] = a->zero[g][l];
		}
}

/* Parameters that do not wait for compensation. */
static void fit_early(const struct job *j, const struct area *a, size_t lanes)
{
	for (size_t g = 0; g < j->groups; g++) {
		if (j->s->group == -1) {
			for (size_t l = 0; l < lanes; l++) {
				a->scale[g][l] = j->tensor_scale;
				a->zero[g][l] = j->tensor_zero;
			}
			continue;
		}
		if (!j->late || j->first[g] == j->first[g + 1])
			for (size_t l0 = 0; l0 < lanes; l0 += LANES)
				fit_group(j, a, g, l0, 0, 0);
	}
}

/* Columns that never fired: weight 0. */
static void take_dead(const struct job *j, const struct area *a, size_t lanes)
{
	static const double nothing[LANES];
	float y[LANES];

	for (size_t p = j->live; p < j->n; p++)
		for (size_t l0 = 0; l0 < lanes; l0 += LANES)
			format_quantize(&j->s->storage, LANES, a->code[j->column[p]] + l0, y, nothing,
				a->scale[j->group[p]] + l0, a->zero[j->group[p]] + l0);
}

/* Quantizes rows row .. row + rows; sum: tr(W H Wᵀ), tr(E H Eᵀ), Σ E². */
static void take_panel(const struct job *j, const struct area *a, size_t row, size_t rows, double sum[3])
{
	const size_t lanes = ceil_div(rows, LANES) * LANES, n = j->live;
	const bool solve = j->s->compensate != COMPENSATE_NONE;

	load(j, a, row, rows, lanes);
	sum[0] = j->h ? energy(j, a, lanes) : 0;
	fit_early(j, a, lanes);
	for (size_t first = 0, last; first < n; first = last) {
		last = block_end(j, first);
		for (size_t i = first; solve && i < last; i++)
			for (size_t k = i + 1; k < last; k++)
				a->u[k - first][i - first] = j->u[i * n + k];
		for (size_t l0 = 0; l0 < lanes; l0 += LANES)
			take_block(j, a, l0, first, last);
		if (solve && last < n)
			cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)(n - last), (int)lanes,
				(int)(last - first), -1, j->u + first * n + last, (int)n, a->e[0], PANEL,
				1, a->d[last], PANEL);
	}
	take_dead(j, a, lanes);
	sum[1] = j->h ? energy(j, a, lanes) : 0;
	sum[2] = 0;
	for (size_t c = 0; c < j->n; c++)
		for (size_t l = 0; l < rows; l++)
			sum[2] += (double)a->w[c][l] * a->w[c][l];
}

enum solver_status solver_run(const struct solver *s, size_t m, size_t n, uint8_t codes[m][n], float *scale,
	uint8_t *zero, float *scale8, int32_t group_index[n], struct solver_report *report,
	const float w[m][n], const float (*h)[n], const int32_t *order, void *work)
{
	struct job j = { .s = s, .m = m, .n = n, .w = w[0], .h = h ? h[0] : NULL };
	const size_t panels = ceil_div(m, PANEL);
	enum solver_status status;
	double total[3] = { 0 };

	*report = (struct solver_report){ .error = NAN };
	job_lay_out(&j, s, m, n, (char *)work + (-(uintptr_t)work & 63));
	if ((h && (status = factor_check(n, j.h, &report->index))) || (status = job_plan(&j, order, &report->index))
		|| (status = scale_ranges(&j, &report->index)))
		return status;
	if (s->compensate != COMPENSATE_NONE && (status = factor_run(n, j.live, j.u, j.pivot, &report->lambda,
			&report->index, j.h, j.column, s->damp, j.factor)))
		return status;
	report->dead = n - j.live;
	report->moved = j.moved;
	scale_rows(&j);
	if (s->group == -1)
		scale_tensor(&j);

	#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
	for (size_t p = 0; p < panels; p++) {
		const struct area *a = &j.area[omp_get_thread_num()];
		const size_t row = p * PANEL, rows = m - row < PANEL ? m - row : PANEL;

		take_panel(&j, a, row, rows, j.sum + p * 3);
		store(&j, a, row, rows, codes[0], scale, zero);
	}

	for (size_t p = 0; p < panels; p++)
		for (size_t i = 0; i < 3; i++)
			total[i] += j.sum[p * 3 + i];
	if (total[0] > 0)
		report->error = total[1] / total[0];
	report->mse = total[2] / ((double)m * (double)n);
	if (s->group == -1) {
		*scale = j.tensor_scale;
		if (s->storage.asymmetric)
			*zero = j.tensor_zero;
	}
	if (s->compute.kind)
		memcpy(scale8, j.scale8, (s->scale8_channel ? m : 1) * sizeof *scale8);
	for (size_t i = 0; i < n; i++)
		group_index[j.column[i]] = j.group[i];
	return SOLVER_DONE;
}
