/* SPDX-License-Identifier: GPL-3.0-or-later */
/* branch_state.c -- see branch_private.h */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "branch/branch_private.h"
#include "num/linalg.h"
#include "num/quadratic.h"

enum { BLOCK = 256 };			/* columns of a product with H */

/* Part of the mean diagonal that is added to the diagonal of a Gram matrix: a factor in a format may have
 * rows of zeros. */
static const double singular = 1e-10;

/* A layer with views of codes. */
static struct linear stored(const struct codes *c)
{
	struct linear l = { .out = c->out, .in = c->in };

	codes_view(c, &l);
	return l;
}

static struct linear main_of(const struct state *s, const struct factors *f)
{
	return s->l->main ? *s->l->main : stored(&f->main);
}

/* y = rows of W - the parts of f; y and other: [rows][n], rows ≤ CHUNK. */
static void rows_less(const struct state *s, const struct factors *f, int parts, size_t first, size_t rows,
	float *y, float *other)
{
	const size_t n = s->n;

	linear_weight(s->l->weight, first, rows, (float (*)[n])y);
	if (parts & PART_MAIN) {
		const struct linear main = main_of(s, f);

		linear_weight(&main, first, rows, (float (*)[n])other);
		for (size_t i = 0; i < rows * n; i++)
			y[i] -= other[i];
	}
	if (parts & PART_BRANCH)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)n, (int)s->r, -1,
			f->b + first * s->r, (int)s->r, f->a, (int)n, 1, y, (int)n);
}

void branch_residue(struct state *s, const struct factors *f, int parts)
{
	#pragma omp parallel for num_threads(threads_for(ceil_div(s->m, CHUNK))) schedule(dynamic)
	for (size_t i = 0; i < s->m; i += CHUNK)
		rows_less(s, f, parts, i, min(CHUNK, s->m - i), s->residue + i * s->n,
			s->panel + (size_t)omp_get_thread_num() * 2 * CHUNK * s->n);
}

struct loss branch_loss(const struct state *s, const struct factors *f, int parts)
{
	const struct quadratic q = { s->n, s->n, s->l->h, BLOCK, .after = true };
	struct loss y = { 0 };

	#pragma omp parallel for num_threads(threads_for(ceil_div(s->m, CHUNK))) schedule(dynamic)
	for (size_t i = 0; i < s->m; i += CHUNK) {
		const size_t rows = min(CHUNK, s->m - i);
		float product[CHUNK * BLOCK], *x = s->panel + (size_t)omp_get_thread_num() * 2 * CHUNK * s->n;
		double square = 0;

		rows_less(s, f, parts, i, rows, x, x + CHUNK * s->n);
		for (size_t k = 0; k < rows * s->n; k++)
			square += (double)x[k] * (double)x[k];
		s->sum[i / CHUNK][0] = s->l->h ? quadratic_trace(&q, rows, x, product) : square;
		s->sum[i / CHUNK][1] = square;
	}
	for (size_t i = 0; i < ceil_div(s->m, CHUNK); i++)
		y.plain += s->sum[i][0], y.square += s->sum[i][1];
	return y;
}

/* Codes of a plain matrix of floats. */
static enum status quantize(struct state *s, const struct solver *how, const float *w,
	struct codes *to)
{
	const struct linear plain = { .out = to->out, .in = to->in, .weight = w };
	const bool reads = how->compensate != COMPENSATE_NONE || search_reads_hessian(how->search);
	struct solver_layer l = { .weight = &plain, .settings = how, .codes = to,
		.h = reads ? s->l->h : NULL };

	solver_run(1, &l, s->scratch);
	*s->index = l.report.index;
	/* W is finite, so that W - B A or a factor can only be infinite by overflow */
	return l.report.status == STATUS_BAD_WEIGHT ? STATUS_OVERFLOW : l.report.status;
}

enum status branch_main(struct state *s, bool first)
{
	if (s->l->main)
		return STATUS_DONE;
	branch_residue(s, &s->now, first ? 0 : PART_BRANCH);
	return quantize(s, &s->main, s->residue, &s->now.main);
}

/* Rounds numbers to the type. False if one is not finite. */
static bool round_type(enum half_type type, size_t n, float x[n])
{
	uint16_t half[BLOCK];

	for (size_t i = 0; type && i < n; i += BLOCK) {
		half_narrow(min(BLOCK, n - i), half, x + i, type);
		half_widen(min(BLOCK, n - i), x + i, half, type);
	}
	return half_finite(n, x, HALF_NONE);
}

/* Rounds the n values of A or of B to their stored values. */
static enum status store(struct state *s, size_t n, float *values, struct codes *codes)
{
	enum status status;

	if (!s->in_format)
		return round_type(s->set->type, n, values) ? STATUS_DONE : STATUS_OVERFLOW;
	if (!half_finite(n, values, HALF_NONE))
		return STATUS_OVERFLOW;
	status = quantize(s, &s->factor, values, codes);
	if (!status) {
		const struct linear l = stored(codes);

		linear_weight(&l, 0, l.out, (float (*)[l.in])values);
	}
	return status;
}

static enum status store_a(struct state *s)
{
	return store(s, s->r * s->n, s->now.a, &s->now.code_a);
}

static enum status store_b(struct state *s)
{
	return store(s, s->m * s->r, s->now.b, &s->now.code_b);
}

enum status branch_store(struct state *s)
{
	const enum status status = store_b(s);

	return status ? status : store_a(s);
}

/* Solves (G + ε I) X = R, where G is s->gram. R and X [r][wide] are s->right. */
static bool solve(const struct state *s, size_t wide)
{
	const int r = (int)s->r, columns = (int)wide;
	double trace = 0;

	for (size_t i = 0; i < s->r; i++)
		trace += s->gram[i * (s->r + 1)];
	for (size_t i = 0; i < s->r; i++)
		s->gram[i * (s->r + 1)] += trace > 0 ? singular * trace / (double)s->r : 1;
	/* Column-major upper is row-major lower. */
	if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', r, s->gram, r))
		return false;
	cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, r, columns, 1, s->gram,
		r, s->right, columns);
	cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, r, columns, 1, s->gram,
		r, s->right, columns);
	return true;
}

/* B = P H Aᵀ (A H Aᵀ)⁻¹, where H includes the ridge and P is the residue. */
static bool fit_b(struct state *s)
{
	const size_t m = s->m, n = s->n, r = s->r;

	for (size_t i = 0; i < r * n; i++)
		s->thin[i] = (double)s->now.a[i];
	linalg_product_thin(r, n, n, (double (*)[n])s->ah, (const double (*)[n])s->thin, s->l->h, true);
	for (size_t i = 0; i < r * n; i++)
		s->ah[i] += s->ridge * s->thin[i];
	linalg_product_thin(r, m, n, (double (*)[m])s->right, (const double (*)[n])s->ah, s->residue, true);
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)r, (int)r, (int)n, 1, s->ah, (int)n,
		s->thin, (int)n, 0, s->gram, (int)r);
	if (!solve(s, m))
		return false;
	for (size_t i = 0; i < m; i++)
		for (size_t k = 0; k < r; k++)
			s->now.b[i * r + k] = (float)s->right[k * m + i];
	return true;
}

/* A = (Bᵀ B)⁻¹ Bᵀ P, which is the best A for any H. */
static bool fit_a(struct state *s)
{
	const size_t m = s->m, n = s->n, r = s->r;

	for (size_t i = 0; i < m; i++)
		for (size_t k = 0; k < r; k++)
			s->thin[k * m + i] = (double)s->now.b[i * r + k];
	linalg_product_thin(r, n, m, (double (*)[n])s->right, (const double (*)[m])s->thin, s->residue,
		false);
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)r, (int)r, (int)m, 1, s->thin, (int)m,
		s->thin, (int)m, 0, s->gram, (int)r);
	if (!solve(s, n))
		return false;
	for (size_t i = 0; i < r * n; i++)
		s->now.a[i] = (float)s->right[i];
	return true;
}

enum status branch_rounds(struct state *s)
{
	double best = INFINITY;

	for (size_t t = 0; t < s->rounds; t++) {
		enum status status = fit_b(s) ? store_b(s) : STATUS_NO_CONVERGENCE;
		struct loss loss;

		if (!status)
			status = fit_a(s) ? store_a(s) : STATUS_NO_CONVERGENCE;
		if (status)
			return status;
		loss = branch_loss(s, &s->now, PART_BRANCH | (s->begun ? PART_MAIN : 0));
		if (!(loss.plain + s->add * loss.square > best)) {
			best = loss.plain + s->add * loss.square;
			branch_copy(s, &s->pair, &s->now, false);
		}
	}
	branch_copy(s, &s->now, &s->pair, false);
	return STATUS_DONE;
}

void branch_copy(const struct state *s, struct factors *to, const struct factors *from, bool main)
{
	memcpy(to->a, from->a, s->r * s->n * sizeof *to->a);
	memcpy(to->b, from->b, s->m * s->r * sizeof *to->b);
	if (s->in_format) {
		codes_copy(&to->code_a, &from->code_a);
		codes_copy(&to->code_b, &from->code_b);
	}
	if (main && !s->l->main)
		codes_copy(&to->main, &from->main);
}
