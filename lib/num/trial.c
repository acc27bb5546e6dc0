/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trial.c -- see trial.h
 *
 * Rows of a matrix recur with a period that divides no width of vectors, so that a few sums in double are
 * the expected values of the whole product. General products have two sizes: a small one, for kernels
 * without packing, and one of more than 10^6 multiplications, for which OpenBLAS packs (interface/gemm.c and
 * the permit functions of its kernels).
 */
#include "num/trial.h"
#include <cblas.h>
#include <stdbool.h>
#include <stddef.h>

enum { ROWS = 7, COLUMNS = 5, M = 66, N = 130, K = 140 };

/* Numbers from -5 to 5: the rows that recur on the left side, then the rows that recur on the right side. */
static double whole[ROWS + COLUMNS][K];

static void make_numbers(void)
{
	for (int r = 0; r < ROWS + COLUMNS; r++)
		for (int p = 0; p < K; p++)
			whole[r][p] = (r + 3) * (p + 1) % 11 - 5;
}

static double dot(size_t k, const double x[k], const double y[k])
{
	double sum = 0;

	for (size_t p = 0; p < k; p++)
		sum += x[p] * y[p];
	return sum;
}

/* y = a matrix [rows][k] whose rows recur after n, or its transpose. */
#define RECUR(y, rows, k, from, n, transposed) \
	for (size_t i = 0; i < (rows); i++) { \
		const double *row = whole[(from) + i % (n)]; \
\
		for (size_t p = 0; p < (k); p++) \
			(y)[(transposed) ? p * (rows) + i : i * (k) + p] = (__typeof__(*(y)))row[p]; \
	}

/* y = 2 x w + y, x [m][k] and w [k][n], or transposed. */
#define GENERAL(name, type, call) \
static bool name(bool left, bool right, size_t m, size_t n, size_t k) \
{ \
	type x[M * K], w[K * N], y[M * N], want[ROWS][COLUMNS]; \
	bool good = true; \
\
	for (size_t r = 0; r < ROWS; r++) \
		for (size_t c = 0; c < COLUMNS; c++) \
			want[r][c] = (type)(2 * dot(k, whole[r], whole[ROWS + c]) + whole[r][c]); \
	RECUR(x, m, k, 0, ROWS, left) \
	RECUR(w, n, k, ROWS, COLUMNS, !right) \
	for (size_t i = 0; i < m; i++) \
		for (size_t j = 0; j < n; j++) \
			y[i * n + j] = (type)whole[i % ROWS][j % COLUMNS]; \
	call(CblasRowMajor, left ? CblasTrans : CblasNoTrans, right ? CblasTrans : CblasNoTrans, (int)m, \
		(int)n, (int)k, 2, x, (int)(left ? m : k), w, (int)(right ? k : n), 1, y, (int)n); \
	for (size_t i = 0; i < m; i++) \
		for (size_t j = 0; j < n; j++) \
			good &= y[i * n + j] == want[i % ROWS][j % COLUMNS]; \
	return good; \
}
GENERAL(general_float, float, cblas_sgemm)
GENERAL(general_double, double, cblas_dgemm)

static bool sgemm(void)
{
	return general_float(false, false, 17, 35, 9) && general_float(false, true, 17, 35, 9) &&
		general_float(true, false, 17, 35, 9) && general_float(false, false, M, N, K) &&
		general_float(false, true, M, N, K) && general_float(true, false, M, N, K);
}

static bool dgemm(void)
{
	return general_double(false, false, 17, 35, 9) && general_double(false, true, 17, 35, 9) &&
		general_double(false, false, M, N, K) && general_double(false, true, M, N, K);
}

/* The upper triangle of xᵀx, the lower one of x xᵀ. */
static bool ssyrk(void)
{
	float x[K * M], y[M * M];
	double want[ROWS][ROWS];
	bool good = true;

	for (size_t r = 0; r < ROWS; r++)
		for (size_t c = 0; c < ROWS; c++)
			want[r][c] = dot(K, whole[r], whole[c]);
	for (int upper = 0; upper < 2; upper++) {
		RECUR(x, M, K, 0, ROWS, upper)
		cblas_ssyrk(CblasRowMajor, upper ? CblasUpper : CblasLower,
			upper ? CblasTrans : CblasNoTrans, M, K, 1, x, upper ? M : K, 0, y, M);
		for (size_t i = 0; i < M; i++)
			for (size_t j = upper ? i : 0; j < (upper ? M : i + 1); j++)
				good &= (double)y[i * M + j] == want[i % ROWS][j % ROWS];
	}
	return good;
}

/* A lower triangle, or its transpose. The diagonal has powers of two, so that quotients are exact. */
static void make_triangle(bool transposed, double l[M][M])
{
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < M; j++)
			l[transposed ? j : i][transposed ? i : j] = j > i ? 0 :
				j == i ? (double)(1 << i % 3) : whole[i % ROWS][j];
}

/* Sets an integer x and y = L x; by_rows: both transposed. */
#define TRIANGLE(name, type) \
static void name(bool by_rows, const double l[M][M], type x[M * COLUMNS], type y[M * COLUMNS]) \
{ \
	for (size_t i = 0; i < M; i++) \
		for (size_t c = 0; c < COLUMNS; c++) { \
			const size_t at = by_rows ? c * M + i : i * COLUMNS + c; \
\
			x[at] = (type)whole[ROWS + c][i]; \
			y[at] = (type)dot(M, l[i], whole[ROWS + c]); \
		} \
}
TRIANGLE(triangle_float, float)
TRIANGLE(triangle_double, double)

static void narrow(float y[M * M], const double l[M][M])
{
	for (size_t i = 0; i < M * M; i++)
		y[i] = (float)l[i / M][i % M];
}

#define SAME(x, y) \
	for (size_t i = 0; i < M * COLUMNS; i++) \
		good &= (x)[i] == (y)[i]

/* Checks x = L x with columns, or, with `solve`, x = y L⁻ᵀ with rows. */
static bool triangle(bool solve)
{
	float narrow_l[M * M], x[M * COLUMNS], y[M * COLUMNS];
	double l[M][M];
	bool good = true;

	make_triangle(false, l);
	narrow(narrow_l, l);
	triangle_float(solve, l, x, y);
	if (solve)
		cblas_strsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, COLUMNS, M, 1,
			narrow_l, M, y, M);
	else
		cblas_strmm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, M, COLUMNS, 1,
			narrow_l, M, x, COLUMNS);
	SAME(x, y);
	return good;
}

static bool strmm(void)
{
	return triangle(false);
}

static bool strsm(void)
{
	return triangle(true);
}

static bool dtrsm(void)
{
	double l[2][M][M], x[M * COLUMNS], y[M * COLUMNS];
	bool good = true;

	for (int transposed = 0; transposed < 2; transposed++) {
		make_triangle(transposed, l[transposed]);
		triangle_double(false, l[transposed], x, y);
		cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, transposed ? CblasTrans : CblasNoTrans,
			CblasNonUnit, M, COLUMNS, 1, l[0][0], M, y, COLUMNS);
		SAME(x, y);
	}
	return good;
}

/* y = Aᵀ x. */
static bool dgemv(void)
{
	double a[M * N], y[N], want[ROWS];
	bool good = true;

	RECUR(a, N, M, 0, ROWS, true)
	for (size_t r = 0; r < ROWS; r++)
		want[r] = dot(M, whole[r], whole[ROWS]);
	cblas_dgemv(CblasRowMajor, CblasTrans, M, N, 1, a, N, whole[ROWS], 1, 0, y, 1);
	for (size_t j = 0; j < N; j++)
		good &= y[j] == want[j % ROWS];
	return good;
}

const char *trial_failed(void)
{
	static const struct { const char *name; bool (*right)(void); } row[] = {
		{ "sgemm", sgemm }, { "dgemm", dgemm }, { "ssyrk", ssyrk }, { "strmm", strmm },
		{ "strsm", strsm }, { "dtrsm", dtrsm }, { "dgemv", dgemv },
	};

	make_numbers();
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!row[i].right())
			return row[i].name;
	return NULL;
}
