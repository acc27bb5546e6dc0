/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * svd.c -- see svd.h
 *
 * Thin matrices have few rows, of doubles. Their rows are the columns of the matrices in the equations.
 */
#include "num/svd.h"
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/cut.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/linalg.h"

/* Constants, not options: results depend on them. */
enum { TILE = 64, BLOCK = 64, FEW = 1 << 20 };
enum { POWERS = 8, MORE_MIN = 8, MORE_PART = 4 };
/* Up to these extents, the space of all columns takes no more time, and has no error. */
enum { SMALL = 1024, SMALL_PART = 6 };

/* State of a run. */
struct svd_state {
	const struct svd *s;
	size_t k;			/* dimensions of the space, rows of the thin matrices */
	bool whole;			/* the space is the space of all columns of E */
	double *x;			/* [k][m] basis vectors as rows */
	double *y;			/* [k][n] X E */
	double *z;			/* [k][n] X E H */
	double *g;			/* [k][k] X E H Eᵀ Xᵀ */
	double *vector, *value;		/* [r][k], [k] */
	double *tau, *work;		/* [k], [BLOCK k + ...] */
	int *iwork;
	double *row;			/* [threads][m + n] */
};

/* Workspace per k: dsyevr needs at least 26 k numbers, 10 k integers and 2 k more integers; factorizations
 * BLOCK k numbers. */
enum { WORK = 2 * BLOCK, INTEGERS = 12 };

static size_t dimensions(struct svd_state *t, const struct svd *s)
{
	const size_t few = min(s->m, s->n), k = s->r + max(MORE_MIN, s->r / MORE_PART);

	t->s = s;
	t->whole = few <= SMALL || k * SMALL_PART >= few;
	return t->k = t->whole ? few : k;
}

static size_t lay_out(struct svd_state *t, const struct svd *s, char *base)
{
	const size_t k = dimensions(t, s);
	size_t at = 0;

	t->x = cut(base, &at, k * s->m, sizeof *t->x);
	t->y = cut(base, &at, k * s->n, sizeof *t->y);
	t->z = cut(base, &at, k * s->n, sizeof *t->z);
	t->g = cut(base, &at, k * k, sizeof *t->g);
	t->vector = cut(base, &at, s->r * k, sizeof *t->vector);
	t->value = cut(base, &at, k, sizeof *t->value);
	t->tau = cut(base, &at, k, sizeof *t->tau);
	t->work = cut(base, &at, WORK * k, sizeof *t->work);
	t->iwork = cut(base, &at, INTEGERS * k, sizeof *t->iwork);
	t->row = cut(base, &at, (size_t)threads * (s->m + s->n), sizeof *t->row);
	return at;
}

size_t svd_workspace(const struct svd *s)
{
	struct svd_state t = { 0 };

	return lay_out(&t, s, NULL);
}

static void thin(const struct svd_state *t, size_t n, size_t k, double *y, const double *x, const float *w,
	bool transposed)
{
	linalg_product_thin(t->k, n, k, (double (*)[n])y, (const double (*)[k])x, w, transposed);
}

/* Y = X E, Z = Y H. */
static void half(const struct svd_state *t)
{
	const struct svd *s = t->s;

	thin(t, s->n, s->m, t->y, t->x, s->e, false);
	if (!s->h) {
		memcpy(t->z, t->y, t->k * s->n * sizeof *t->z);
		return;
	}
	thin(t, s->n, s->n, t->z, t->y, s->h, true);
	for (size_t i = 0; s->ridge > 0 && i < t->k * s->n; i++)
		t->z[i] += s->ridge * t->y[i];
}

/* Replaces the k ≤ m rows of X by an orthonormal basis of their space. */
static bool orthonormal(const struct svd_state *t)
{
	const int m = (int)t->s->m, k = (int)t->k;

	/* Row-major [k][m] is column-major [m][k]. */
	return !LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, m, k, t->x, m, t->tau, t->work, WORK * k) &&
		!LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, m, k, k, t->x, m, t->tau, t->work, WORK * k);
}

static bool space(const struct svd_state *t)
{
	const struct svd *s = t->s;
	const struct random_stream stream = random_open(s->seed, s->name);

	if (t->whole && s->m <= s->n) {
		memset(t->x, 0, t->k * s->m * sizeof *t->x);
		for (size_t i = 0; i < t->k; i++)
			t->x[i * s->m + i] = 1;
		return true;
	}
	if (t->whole) {
		for (size_t i = 0; i < t->k; i++)
			for (size_t j = 0; j < s->m; j++)
				t->x[i * s->m + j] = (double)s->e[j * s->n + i];
		return orthonormal(t);
	}
	#pragma omp parallel for num_threads(threads) if (t->k * s->m > FEW / 16) schedule(static)
	for (uint64_t i = 0; i < t->k * s->m; i++)
		t->x[i] = random_normal(&stream, i);
	for (int i = 0; i < POWERS; i++) {
		half(t);
		thin(t, s->m, s->n, t->x, t->z, s->e, true);
		if (!orthonormal(t))
			return false;
	}
	return true;
}

/* Stores the r leading eigenvectors of G = Z Yᵀ in the rows of `vector`, by ascending eigenvalue. */
static bool ritz(const struct svd_state *t)
{
	const int k = (int)t->k, r = (int)t->s->r, n = (int)t->s->n;
	const size_t all = t->k * t->k;
	int found = 0, *support = t->iwork + 10 * t->k;

	#pragma omp parallel for num_threads(threads) if (all * t->s->n > FEW) schedule(dynamic)
	for (size_t i = 0; i < t->k; i += TILE)
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)min(TILE, t->k - i), k, n, 1,
			t->z + i * t->s->n, n, t->y, n, 0, t->g + i * t->k, k);
	for (size_t i = 0; i < all; i++)
		if (!isfinite(t->g[i]))
			return false;
	return !LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, 'V', 'I', 'U', k, t->g, k, 0, 0, k - r + 1, k, 0,
		&found, t->value, t->vector, k, support, t->work, WORK * k, t->iwork, 10 * k) && found == r;
}

/* Row i of Bᵀ and of A: u = v X and a = v Y, scaled to the same norm. */
static void factors(const struct svd_state *t, size_t i, double *u, double *a)
{
	const struct svd *s = t->s;
	const double *v = t->vector + (s->r - 1 - i) * t->k;
	double square = 0, root;

	cblas_dgemv(CblasRowMajor, CblasTrans, (int)t->k, (int)s->m, 1, t->x, (int)s->m, v, 1, 0, u, 1);
	cblas_dgemv(CblasRowMajor, CblasTrans, (int)t->k, (int)s->n, 1, t->y, (int)s->n, v, 1, 0, a, 1);
	for (size_t j = 0; j < s->n; j++)
		square += a[j] * a[j];
	root = sqrt(sqrt(square));
	for (size_t j = 0; j < s->m; j++)
		s->b[j * s->r + i] = (float)(u[j] * root);
	for (size_t j = 0; j < s->n; j++)
		s->a[i * s->n + j] = root > 0 ? (float)(a[j] / root) : 0;
}

bool svd_run(const struct svd *s, void *workspace)
{
	struct svd_state t = { 0 };

	lay_out(&t, s, workspace);
	if (!space(&t))
		return false;
	half(&t);
	if (!ritz(&t))
		return false;
	#pragma omp parallel for num_threads(threads) if (s->r * t.k * s->n > FEW) schedule(dynamic)
	for (size_t i = 0; i < s->r; i++) {
		double *row = t.row + (size_t)omp_get_thread_num() * (s->m + s->n);

		factors(&t, i, row, row + s->m);
	}
	return true;
}
