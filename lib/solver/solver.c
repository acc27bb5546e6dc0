/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver.c -- see solver.h
 *
 * Threads take panels of PANEL_ROWS rows. A panel is transposed: rows are the
 * lanes of every loop, and an order selects rows of the panel. Columns are
 * divided into spans. The compensation of a span F by all earlier columns is one product,
 *	w_F += (W - Ŵ)_earlier R_earlier,F (R_F)⁻¹.
 * It equals all updates of GPTQ by earlier columns, without the inverse of H. Inside a span, columns are
 * updated in blocks of BLOCK_COLUMNS with U = (R_F)⁻¹, as in GPTQ. Compensation is stored separately from
 * the weights and added in double, so that a code does not depend on the rounding of intermediate weights.
 *
 * The report's tr(E H Eᵀ) is Σ e² - λ ΣE², as E = e U (all in the unit of H). If
 * that difference cancels, or E is not the compensated error, it is computed from its definition.
 *
 * R is computed by factor.h; order, groups, workspace and s₈ by solver_private.h.
 */
#include "solver/solver.h"
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/thread.h"
#include "num/bf16x2.h"
#include "num/quadratic.h"
#include "quant/round.h"
#include "solver/factor.h"
#include "solver/solver_private.h"
#include "num/clones.h"

const char *const compensates[] = {
	[COMPENSATE_BOTH] = "both", [COMPENSATE_STORAGE] = "storage", [COMPENSATE_NONE] = "none", NULL
};
const char *const group_views[] = {
	[VIEW_EXACT] = "exact", [VIEW_BLOCK] = "block", [VIEW_ORIGINAL] = "original", NULL
};
const char *const recipes[] = {
	[RECIPE_LATE] = "late", [RECIPE_PAPER] = "paper", [RECIPE_INC] = "inc", NULL
};

static const struct {
	enum group_view view;
	enum search search;
	bool round_first, pow2;
	float max;			/* used part of the maximum of the format */
	float min_scale8;
} recipe_rows[] = {
	[RECIPE_LATE] = { VIEW_EXACT, SEARCH_MSE, false, true, 1, 0 },
	[RECIPE_PAPER] = { VIEW_EXACT, SEARCH_MSE, true, true, 1, 0 },
	[RECIPE_INC] = { VIEW_ORIGINAL, SEARCH_MINMAX, false, true, 14.f / 15, 0x1p-16f },
};

void solver_recipe(struct solver *s, enum recipe recipe)
{
	s->group_view = recipe_rows[recipe].view;
	s->search = recipe_rows[recipe].search;
	s->round_first = recipe_rows[recipe].round_first;
	s->pow2_scale = recipe_rows[recipe].pow2;
	s->min_scale8 = recipe_rows[recipe].min_scale8;
	s->z_max = s->compute.max * recipe_rows[recipe].max;
	if (s->compute.kind)
		format_round(&s->compute, 1, &s->z_max, &s->z_max, 1, 0);
	s->saturate = s->z_max;
}

struct codes solver_codes(const struct solver *s, size_t out, size_t in)
{
	struct codes y = codes_make(out, in, &s->storage, s->group);

	if (s->compute.kind) {
		y.compute = s->compute;
		y.saturate = s->saturate;
		y.scales8 = s->scale8_channel ? out : 1;
	}
	return y;
}

size_t solver_workspace(size_t count, struct solver_layer layer[count])
{
	struct call call;

	return job_lay_out(&call, count, layer, NULL) + 63;
}

/* x -= Σ_i u_i e_i */
CLONES(static, void, compensate, (size_t n, double x[LANES], const float e[n][PANEL_ROWS], const float u[n]),
	(n, x, e, u))
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

/* b = (x - target)/U_ii, with U_ii = 1/r; e = w/s₈ - target; w becomes w - y·s₈, as in linear_weight(). */
CLONES(static, void, errors, (float b[LANES], float e[LANES], float w[LANES], const double x[LANES],
	const float target[LANES], const float y[LANES], const double *scale8, double r),
	(b, e, w, x, target, y, scale8, r))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		b[l] = (float)((x[l] - target[l]) * r);
	if (scale8)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			e[l] = (float)(w[l] / scale8[l] - target[l]);
			w[l] -= y[l] * (float)scale8[l];
		}
	else
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			e[l] = w[l] -= target[l];
}

CLONES(static, void, remainder_only, (float w[LANES], const float y[LANES], const double *scale8),
	(w, y, scale8))
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		w[l] -= scale8 ? y[l] * (float)scale8[l] : y[l];
}

/* sum += Σ x² of each lane */
CLONES(static, void, add_squares, (size_t n, size_t lanes, const float x[n][PANEL_ROWS],
	double sum[PANEL_ROWS]), (n, lanes, x, sum))
{
	for (size_t i = 0; i < n; i++)
		#pragma omp simd
		for (size_t l = 0; l < lanes; l++)
			sum[l] += (double)x[i][l] * x[i][l];
}

/* Σ x s₈² over lanes; scale8 NULL: 1 */
static double total(size_t lanes, const double x[PANEL_ROWS], const double scale8[PANEL_ROWS])
{
	double y = 0;

	for (size_t l = 0; l < lanes; l++)
		y += x[l] * (scale8 ? scale8[l] * scale8[l] : 1);
	return y;
}

/* Σ (x s₈)² over rows of lanes. */
static double squares(size_t n, size_t lanes, const float x[n][PANEL_ROWS], const double scale8[PANEL_ROWS])
{
	double sum[PANEL_ROWS] = { 0 };

	add_squares(n, lanes, x, sum);
	return total(lanes, sum, scale8);
}

static void given_values(const struct format *f, const uint8_t code[LANES], float y[LANES],
	const float scale[LANES], const uint8_t zero[LANES])
{
	for (size_t l = 0; l < LANES; l++)
		y[l] = (f->grid[code[l]] - (f->asymmetric ? (float)zero[l] : 0)) * scale[l];
}

/* Quantizes the column at position p, whose weights are x. b: its error divided by the pivot. */
static void quantize_column(const struct job *j, const struct workspace *a, size_t p, size_t l0,
	float b[LANES], double x[LANES])
{
	const struct solver *s = j->s;
	const size_t c = (size_t)j->column[p], g = (size_t)j->group[p];
	float y[LANES], dual[LANES];
	const bool fp8 = s->compute.kind;

	if (j->turns && a->turns->sweep == SWEEP_COSTS)
		given_values(&s->storage, a->code[c] + l0, y, a->scale[g] + l0, a->zero[g] + l0);
	else
		coding_round(&j->coding, a->code[c] + l0, y, x, a->scale[g] + l0, a->zero[g] + l0);
	if (fp8)
		format_round(&s->compute, LANES, dual, y, 1, s->saturate);
	if (s->compensate == COMPENSATE_NONE)
		remainder_only(a->w[c] + l0, fp8 ? dual : y, fit_scale8(j, a, l0));
	else
		errors(b, a->e[p] + l0, a->w[c] + l0, x,
			fp8 && s->compensate != COMPENSATE_STORAGE ? dual : y, fp8 ? dual : y,
			fit_scale8(j, a, l0), j->r[p * (j->live + 1)]);
}

/* Quantizes a block of columns of a span for LANES rows from lane l0 on. */
static void quantize_block(const struct rows *r, const struct workspace *a, const struct span *span,
	size_t l0, size_t first, size_t last)
{
	const struct job *j = r->job;
	const bool solve = j->s->compensate != COMPENSATE_NONE, exact = j->s->group_view == VIEW_EXACT;
	const size_t at = first - span->first, width = span->last - span->first;
	const float *v = solve ? span->v + at * (width + 1) : NULL;	/* the block's triangle */
	const float (*b)[PANEL_ROWS] = (const float (*)[PANEL_ROWS])(a->b[0] + l0);
	size_t done = 0;	/* columns of the block that already compensated the current group in x */

	for (size_t p = first; p < last; p++)
		fit_weigh(a->x[p - first], a->w[j->column[p]] + l0,
			solve && first ? a->d[p - span->first] + l0 : NULL, fit_scale8(j, a, l0));
	for (size_t p = first; p < last; p++) {
		const size_t k = p - first;

		if (fit_is_due(j, a, p)) {
			for (size_t q = p; exact && q < last && j->group[q] == j->group[p]; q++)
				compensate(k, a->x[q - first], b, v + (q - first) * width);
			if (exact)
				done = k;
			fit_group(r, a, span, (size_t)j->group[p], l0, first, exact ? last : first);
		}
		if (solve)
			compensate(k - done, a->x[k], b + done, v + k * width + done);
		quantize_column(j, a, p, l0, a->b[k] + l0, a->x[k]);
	}
}

/* tr(A H Aᵀ) of a panel with A transposed. */
static double energy(const struct job *j, const struct workspace *a, size_t lanes)
{
	const struct quadratic q = { j->n, j->n, j->h, .block = SPAN_COLUMNS };

	return quadratic_lanes(&q, lanes, PANEL_ROWS, a->w[0], a->y[0]);
}

static void load(const struct rows *l, const struct workspace *a, size_t row, size_t rows, size_t lanes)
{
	const size_t n = l->job->n;

	for (size_t s = 0; s < lanes; s += ROWS_AT_ONCE) {
		const size_t have = s < rows ? min(rows - s, ROWS_AT_ONCE) : 0;
		const float *w = have ? job_weights(l, a, row + s, have) : NULL;

		for (size_t c = 0; c < n; c++)
			for (size_t i = 0; i < ROWS_AT_ONCE; i++)
				a->w[c][s + i] = i < have ? w[i * n + c] : 0;
	}
	for (size_t i = 0; i < lanes; i++)
		a->scale8[i] = i < rows ? l->scale8[row + i] : 1;
}

/* Stores rows; those that are `better`, or all if it is NULL. */
static void store(const struct rows *l, const struct workspace *a, size_t row, size_t rows,
	const bool *better)
{
	const struct job *j = l->job;
	struct codes *to = l->layer->codes;

	for (size_t b = 0; b < j->n; b += LANES) {
		size_t end = min(b + LANES, j->n);

		for (size_t i = 0; i < rows; i++)
			for (size_t c = b; c < end && (!better || better[i]); c++)
				to->codes[(row + i) * j->n + c] = a->code[c][i];
	}
	if (j->s->group == -1)
		return;
	for (size_t i = 0; i < rows; i++)
		for (size_t g = 0; g < j->groups && (!better || better[i]); g++) {
			to->scale[(row + i) * j->groups + g] = a->scale[g][i];
			if (to->zero)
				to->zero[(row + i) * j->groups + g] = a->zero[g][i];
		}
}

/* Sets the codes of dead columns to those of weight 0. */
static void quantize_dead(const struct job *j, const struct workspace *a, size_t lanes)
{
	static const double nothing[LANES];
	float y[LANES];

	for (size_t p = j->live; p < j->n; p++)
		for (size_t l0 = 0; l0 < lanes; l0 += LANES)
			coding_round(&j->coding, a->code[j->column[p]] + l0, y, nothing,
				a->scale[j->group[p]] + l0, a->zero[j->group[p]] + l0);
}

/* Computes the compensation of a span by all earlier columns. again: their errors may have changed since the
 * last span. */
static void start_span(const struct job *j, const struct workspace *a, const struct span *span,
	size_t lanes, bool again)
{
	const int width = (int)(span->last - span->first), m = (int)lanes;

	if (j->s->compensate == COMPENSATE_NONE)
		return;
	if (!span->first) {
		memset(a->d, 0, (size_t)width * sizeof *a->d);
		return;
	}
	if (span->left) {
		bf16x2_right(j->live, again ? 0 : span[-1].first, span->first, lanes, a->right,
			PANEL_ROWS, (const float (*)[PANEL_ROWS])a->e);
		bf16x2_product(span->first, (size_t)width, lanes, PANEL_ROWS, a->d, span->left, j->live,
			a->right);
	} else
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, width, m, (int)span->first, 1,
			j->r + span->first, (int)j->live, a->e[0], PANEL_ROWS, 0, a->d[0], PANEL_ROWS);
	cblas_strmm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, width, m, 1, span->v,
		width, a->d[0], PANEL_ROWS);
}

/* A sweep over the columns of `rows` rows, whose weights are loaded; lanes: in use. */
static void sweep_panel(const struct rows *r, const struct workspace *a, size_t rows, size_t lanes)
{
	const struct job *j = r->job;
	const bool solve = j->s->compensate != COMPENSATE_NONE;
	const enum sweep sweep = j->turns ? a->turns->sweep : SWEEP_ALL;
	const bool several = j->paths > 1 && sweep != SWEEP_COSTS;
	const size_t loaded = lanes;

	memset(a->cost, 0, PANEL_ROWS * sizeof *a->cost);
	if (several)
		lanes = paths_spread(j, a, rows);
	if (sweep == SWEEP_ALL)
		fit_panel(r, a, lanes);
	for (const struct span *span = j->span; span < j->span + j->spans; span++) {
		const size_t width = span->last - span->first;

		start_span(j, a, span, lanes, several || sweep != SWEEP_ALL);
		for (size_t first = span->first, last; first < span->last; first = last) {
			const size_t at = first - span->first;
			size_t size, rest;

			last = job_block_end(j, span, first);
			size = last - first;
			rest = span->last - last;
			for (size_t l0 = 0; l0 < lanes; l0 += LANES)
				(several ? paths_block : quantize_block)(r, a, span, l0, first, last);
			if (solve && !several)
				add_squares(size, lanes, (const float (*)[PANEL_ROWS])a->b, a->cost);
			if (solve && rest)
				cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rest, (int)lanes,
					(int)size, -1, span->v + (at + size) * width + at, (int)width,
					a->b[0], PANEL_ROWS, 1, a->d[at + size], PANEL_ROWS);
		}
	}
	if (several)
		paths_take(j, a, rows, loaded);
	quantize_dead(j, a, loaded);
}

/* Scales for the codes, then codes for the scales, alternately. The best result of each row is stored.
 * Returns Σ e²; *damped: Σ b². */
static double take_turns(const struct rows *r, const struct workspace *a, size_t row, size_t rows,
	size_t lanes, double *damped)
{
	bool better[PANEL_ROWS];

	turns_begin(a);
	turns_keep(r->job, a, rows, better);
	store(r, a, row, rows, better);
	for (size_t i = 0; i < 2 * r->job->turns; i++) {
		load(r, a, row, rows, lanes);
		if (i % 2 == 0)
			turns_rescale(r, a, lanes);
		a->turns->sweep = i % 2 ? SWEEP_CODES : SWEEP_COSTS;
		sweep_panel(r, a, rows, lanes);
		turns_keep(r->job, a, rows, better);
		store(r, a, row, rows, better);
	}
	return turns_take(r->job, a, rows, damped);
}

/* Quantizes rows [row, row + rows). sum: tr(W H Wᵀ), tr(E H Eᵀ), Σ E². */
static void quantize_panel(const struct rows *r, const struct workspace *a, size_t row, size_t rows,
	double sum[3])
{
	const struct job *j = r->job;
	const size_t lanes = ceil_div(rows, LANES) * LANES;
	const bool solve = j->s->compensate != COMPENSATE_NONE, reports = j->h && !j->s->no_error;
	double damped, e, left;

	load(r, a, row, rows, lanes);
	sum[0] = reports ? energy(j, a, lanes) : 0;
	if (j->turns)
		a->turns->sweep = SWEEP_ALL;
	sweep_panel(r, a, rows, lanes);
	if (j->turns) {
		e = take_turns(r, a, row, rows, lanes, &damped);
	} else {
		store(r, a, row, rows, NULL);
		damped = total(lanes, a->cost, a->scale8);
		e = !solve || !reports ? 0 :
			squares(j->live, lanes, (const float (*)[PANEL_ROWS])a->e, a->scale8);
	}
	sum[2] = squares(j->n, lanes, (const float (*)[PANEL_ROWS])a->w, NULL);
	sum[1] = 0;
	if (!reports)
		return;
	left = damped - j->lambda * e;
	if (left > 0.01 * damped && (j->s->compensate == COMPENSATE_BOTH || !j->s->compute.kind))
		sum[1] = left * j->mean;
	else
		sum[1] = energy(j, a, lanes);
}

/* Whether rows can be rounded one by one: no compensation, no search, and no number that needs a panel. */
static bool rows_alone(const struct job *j)
{
	const struct solver *s = j->s;

	return s->compensate == COMPENSATE_NONE && !s->compute.kind && s->search == SEARCH_MINMAX &&
		s->group != -1 && !j->moved && (!j->h || s->no_error);
}

static void round_rows(const struct rows *r, const struct workspace *a, size_t row, size_t rows,
	double sum[3])
{
	const struct job *j = r->job;
	struct codes *to = r->layer->codes;
	const struct format *f = &r->storage;

	sum[0] = sum[1] = sum[2] = 0;
	for (size_t o = row; o < row + rows; o++) {
		const float *w = job_weights(r, a, o, 1);
		uint8_t *codes = to->codes + o * j->n;
		uint8_t *zero = to->zero ? to->zero + o * j->groups : NULL;
		float *scale = to->scale + o * j->groups;

		round_row(f, j->n, j->largest, codes, scale, zero, w);
		sum[2] += round_error(f, j->n, j->largest, codes, scale, zero, w);
	}
}

/* Computes the data that the layers of a job share. */
static enum status prepare_job(struct job *j, struct solver_report *report)
{
	const struct solver *s = j->s;
	enum status status;

	if (j->h && (status = factor_check(j->n, j->h, &report->index)))
		return status;
	if ((status = job_plan(j, &report->index)))
		return status;
	if (s->compensate == COMPENSATE_NONE)
		return STATUS_DONE;
	if (j->paths > 1)
		paths_beside(&s->storage, j->beside);
	status = factor_run(j->n, j->live, j->r, &j->mean, &j->lambda, &report->index, j->h, j->column,
		s->damp);
	for (size_t i = 0; !status && i < j->spans; i++) {
		const size_t width = j->span[i].last - j->span[i].first;

		factor_inverse(width, (float (*)[width])j->span[i].v, j->live, j->r, j->span[i].first,
			(double (*)[width])j->inverse);
	}
	if (status || !j->left)
		return status;
	#pragma omp taskloop grainsize(1)
	for (size_t i = 1; i < j->spans; i++)
		bf16x2_left(j->span[i].first, j->span[i].last - j->span[i].first, j->span[i].left, j->live,
			(const float (*)[j->live])(j->r + j->span[i].first));
	return status;
}

void job_finish(const struct rows *r)
{
	const struct job *j = r->job;
	struct solver_layer *l = r->layer;
	struct codes *to = l->codes;
	double total[3] = { 0 };

	for (size_t p = 0; p < ceil_div(r->m, job_panel_rows(j->s)); p++) {
		for (size_t i = 0; i < 3; i++)
			total[i] += r->sum[p][i];
		l->report.seconds += r->seconds[p];
	}
	if (total[0] > 0 && isfinite(total[0]) && isfinite(total[1]))
		l->report.error = total[1] / total[0];
	l->report.mse = total[2] / ((double)r->m * (double)j->n);
	l->report.lambda = j->lambda;
	l->report.dead = j->n - j->live;
	if (j->s->group == -1) {
		*to->scale = r->tensor_scale;
		if (to->zero)
			*to->zero = r->tensor_zero;
	}
	format_store(&r->storage, to->scales, to->scale);
	to->scale_tensor = r->storage.divisor;
	if (to->scale8)
		memcpy(to->scale8, r->scale8, to->scales8 * sizeof *to->scale8);
	for (size_t i = 0; i < j->n; i++)
		to->group_index[j->column[i]] = j->group[i];
	to->needs_group_index = j->moved;
}

static void run_layer(struct rows *r, const struct workspace *workspace)
{
	struct solver_report *report = &r->layer->report;
	const size_t panel = job_panel_rows(r->job->s);
	const double start = omp_get_wtime();

	if ((report->status = scale_ranges(r, workspace, &report->index)))
		return;
	scale_rows(r);
	if (r->job->s->group == -1)
		scale_tensor(r, workspace);
	report->seconds += omp_get_wtime() - start;
	#pragma omp taskloop grainsize(1)
	for (size_t row = 0; row < r->m; row += panel) {
		const size_t p = row / panel, rows = min(r->m - row, panel);
		const double begin = omp_get_wtime();

		if (rows_alone(r->job))
			round_rows(r, &workspace[omp_get_thread_num()], row, rows, r->sum[p]);
		else
			quantize_panel(r, &workspace[omp_get_thread_num()], row, rows, r->sum[p]);
		r->seconds[p] = omp_get_wtime() - begin;
	}
	job_finish(r);
}

static struct rows *first_rows(const struct call *c, const struct job *j)
{
	struct rows *first = c->rows;

	while (first->job != j)
		first++;
	return first;
}

static void run_job(const struct call *c, struct job *j)
{
	struct solver_report shared = { .error = NAN };
	struct rows *first = first_rows(c, j);
	const double start = omp_get_wtime();

	shared.status = prepare_job(j, &shared);
	for (struct rows *r = first; r < c->rows + c->layers && r->job == j; r++) {
		r->layer->report = shared;
		if (r == first)
			r->layer->report.seconds = omp_get_wtime() - start;
		if (!shared.status)
			#pragma omp task
			run_layer(r, c->workspace);
	}
	#pragma omp taskwait
}

void solver_run(size_t count, struct solver_layer layer[count], void *workspace)
{
	struct call call;

	job_lay_out(&call, count, layer, (char *)workspace + (-(uintptr_t)workspace & 63));
	for (size_t i = 0; i < call.jobs; i++)
		if (call.job[i].device)
			device_job(&call.job[i], first_rows(&call, &call.job[i]), call.rows + call.layers);
	#pragma omp parallel num_threads(call.threads)
	#pragma omp single
	for (size_t i = 0; i < call.jobs; i++)
		if (!call.job[i].device)
			#pragma omp task
			run_job(&call, &call.job[i]);
}
