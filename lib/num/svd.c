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

/* Rows of X: unit vectors (m ≤ n) or X of E = Xᵀ R (m > n), which span all columns of E, or a sketch. */
enum basis { BASIS_IDENTITY, BASIS_QR, BASIS_SKETCH };

/* State of a run. */
struct svd_state {
	const struct svd *s;
	enum basis basis;
	size_t k;			/* dimensions of the space, rows of the thin matrices */
	double *x;			/* [k][m] basis vectors as rows; QR: reflectors, R; identity: NULL */
	double *y;			/* [k][n] X E */
	double *z;			/* [k][n] X E H */
	double *g;			/* [k][k] lower triangle of X E H Eᵀ Xᵀ */
	double *vector, *value;		/* [r][k], [k] */
	double *u;			/* [r][m] V X, in the memory of Z */
	double *tau, *work;		/* [k], [WORK k] */
	int *iwork;
	double *row;			/* [threads][n] */
};

/* Workspace per k: dsyevr needs at least 26 k numbers, 10 k integers and 2 k more integers; factorizations
 * BLOCK k numbers. */
enum { WORK = 2 * BLOCK, INTEGERS = 12 };

static size_t dimensions(struct svd_state *t, const struct svd *s)
{
	const size_t few = min(s->m, s->n), k = s->r + max(MORE_MIN, s->r / MORE_PART);

	t->s = s;
	if (few > SMALL && k * SMALL_PART < few)
		t->basis = BASIS_SKETCH;
	else
		t->basis = s->m <= s->n ? BASIS_IDENTITY : BASIS_QR;
	return t->k = t->basis == BASIS_SKETCH ? k : few;
}

static size_t lay_out(struct svd_state *t, const struct svd *s, char *base)
{
	const size_t k = dimensions(t, s);
	size_t at = 0;

	t->x = cut(base, &at, t->basis == BASIS_IDENTITY ? 0 : k * s->m, sizeof *t->x);
	t->y = cut(base, &at, k * s->n, sizeof *t->y);
	t->z = t->u = cut(base, &at, max(k * s->n, s->r * s->m), sizeof *t->z);
	t->g = cut(base, &at, k * k, sizeof *t->g);
	t->vector = cut(base, &at, s->r * k, sizeof *t->vector);
	t->value = cut(base, &at, k, sizeof *t->value);
	t->tau = cut(base, &at, k, sizeof *t->tau);
	t->work = cut(base, &at, WORK * k, sizeof *t->work);
	t->iwork = cut(base, &at, INTEGERS * k, sizeof *t->iwork);
	t->row = cut(base, &at, (size_t)threads * s->n, sizeof *t->row);
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

/* Z = Y H */
static void times_h(const struct svd_state *t)
{
	const struct svd *s = t->s;

	if (!s->h) {
		memcpy(t->z, t->y, t->k * s->n * sizeof *t->z);
		return;
	}
	thin(t, s->n, s->n, t->z, t->y, s->h, true);
	for (size_t i = 0; s->ridge > 0 && i < t->k * s->n; i++)
		t->z[i] += s->ridge * t->y[i];
}

/* Replaces x by the reflectors and R of Xᵀ = Q R. Row-major [k][m], k ≤ m, is column-major [m][k]. */
static bool factorize(const struct svd_state *t)
{
	const int m = (int)t->s->m, k = (int)t->k;

	return !LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, m, k, t->x, m, t->tau, t->work, WORK * k);
}

/* X from normal numbers by power iterations, and Y = X E. */
static bool sketch(const struct svd_state *t)
{
	const struct svd *s = t->s;
	const struct random_stream stream = random_open(s->seed, s->name);
	const int m = (int)s->m, k = (int)t->k;

	#pragma omp parallel for num_threads(threads) if (t->k * s->m > FEW / 16) schedule(static)
	for (uint64_t i = 0; i < t->k * s->m; i++)
		t->x[i] = random_normal(&stream, i);
	for (int i = 0; i < POWERS; i++) {
		thin(t, s->n, s->m, t->y, t->x, s->e, false);
		times_h(t);
		thin(t, s->m, s->n, t->x, t->z, s->e, true);
		if (!factorize(t) || LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, m, k, k, t->x, m, t->tau, t->work,
			WORK * k))
			return false;
	}
	thin(t, s->n, s->m, t->y, t->x, s->e, false);
	return true;
}

/* X from E = Xᵀ R, and Y = X E = R, if k = n. */
static bool decompose(const struct svd_state *t)
{
	const size_t m = t->s->m, k = t->k;

	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < m; j++)
			t->x[i * m + j] = (double)t->s->e[j * t->s->n + i];
	if (!factorize(t))
		return false;
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < k; j++)
			t->y[i * k + j] = j >= i ? t->x[j * m + i] : 0;
	return true;
}

/* Sets Y = X E, and X unless it is I. */
static bool project(const struct svd_state *t)
{
	if (t->basis == BASIS_SKETCH)
		return sketch(t);
	if (t->basis == BASIS_QR)
		return decompose(t);
	for (size_t i = 0; i < t->k * t->s->n; i++)
		t->y[i] = (double)t->s->e[i];
	return true;
}

/* Stores the r leading eigenvectors of G = Z Yᵀ in the rows of `vector`, by ascending eigenvalue. */
static bool ritz(const struct svd_state *t)
{
	const int k = (int)t->k, r = (int)t->s->r, n = (int)t->s->n;
	int found = 0, *support = t->iwork + 10 * t->k;

	#pragma omp parallel for num_threads(threads) if (t->k * t->k * t->s->n > FEW) schedule(dynamic)
	for (size_t i = 0; i < t->k; i += TILE) {
		const int rows = (int)min(TILE, t->k - i);

		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, (int)i + rows, n, 1,
			t->z + i * t->s->n, n, t->y, n, 0, t->g + i * t->k, k);
	}
	for (size_t i = 0; i < t->k; i++)
		for (size_t j = 0; j <= i; j++)
			if (!isfinite(t->g[i * t->k + j]))
				return false;
	/* Column-major upper is row-major lower. */
	return !LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, 'V', 'I', 'U', k, t->g, k, 0, 0, k - r + 1, k, 0,
		&found, t->value, t->vector, k, support, t->work, WORK * k, t->iwork, 10 * k) && found == r;
}

/* U = V X */
static bool lift(const struct svd_state *t)
{
	const int m = (int)t->s->m, k = (int)t->k, r = (int)t->s->r;

	if (t->basis == BASIS_SKETCH) {
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, r, m, k, 1, t->vector, k, t->x, m, 0,
			t->u, m);
		return true;
	}
	for (size_t i = 0; i < t->s->r; i++) {
		memcpy(t->u + i * t->s->m, t->vector + i * t->k, t->k * sizeof *t->u);
		memset(t->u + i * t->s->m + t->k, 0, (t->s->m - t->k) * sizeof *t->u);
	}
	return t->basis == BASIS_IDENTITY || !LAPACKE_dormqr_work(LAPACK_COL_MAJOR, 'L', 'N', m, r, k, t->x,
		m, t->tau, t->u, m, t->work, WORK * k);
}

/* Column i of B and row i of A: u and v Y, scaled to the same norm. */
static void factors(const struct svd_state *t, size_t i, double *a)
{
	const struct svd *s = t->s;
	const size_t from = s->r - 1 - i;
	double square = 0, root;

	cblas_dgemv(CblasRowMajor, CblasTrans, (int)t->k, (int)s->n, 1, t->y, (int)s->n,
		t->vector + from * t->k, 1, 0, a, 1);
	for (size_t j = 0; j < s->n; j++)
		square += a[j] * a[j];
	root = sqrt(sqrt(square));
	for (size_t j = 0; j < s->m; j++)
		s->b[j * s->r + i] = (float)(t->u[from * s->m + j] * root);
	for (size_t j = 0; j < s->n; j++)
		s->a[i * s->n + j] = root > 0 ? (float)(a[j] / root) : 0;
}

bool svd_run(const struct svd *s, void *workspace)
{
	struct svd_state t = { 0 };

	lay_out(&t, s, workspace);
	if (!project(&t))
		return false;
	times_h(&t);
	if (!ritz(&t) || !lift(&t))
		return false;
	#pragma omp parallel for num_threads(threads) if (s->r * t.k * s->n > FEW) schedule(dynamic)
	for (size_t i = 0; i < s->r; i++)
		factors(&t, i, t.row + (size_t)omp_get_thread_num() * s->n);
	return true;
}
