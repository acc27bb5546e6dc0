/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard_product.c -- fast products with Hadamard matrices; see hadamard.h
 *
 * x (K ⊗ S): let X be the matrix of `small` rows of 2^power numbers of x. It becomes Kᵀ X S.
 *
 * First each row is multiplied by S, in passes of butterflies over as many vectors as there are registers.
 * Then COLUMNS columns at a time are multiplied by Kᵀ. For each four rows of X, a table has all 16 sums ±x₀
 * ± x₁ ± x₂ ± x₃. A row of the result is the sum of one line of each table: a quarter of the additions of a
 * plain product. A pattern is the offset of that line: the signs of four neighbours in K, with bit t set if
 * neighbour t is -1, times COLUMNS.
 *
 * Source of the tables: V. L. Arlazarov, E. A. Dinic, M. A. Kronrod, I. A. Faradžev, Soviet Math. Dokl. 11
 * (1970).
 */
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/hadamard.h"
#include "num/clones.h"
/* Exact products may be fused with sums (hadamard_private.h). */
#pragma GCC optimize ("fp-contract=fast")

/* Constants, not options. They change no result: columns of a table, tables that fit in the first cache,
 * rows of a result at once. */
enum { COLUMNS = HADAMARD_COLUMNS, TABLES = 16, ROWS = 4 };
enum { CHUNK = 16 };				/* rows of x that a thread takes */
enum { FEW = 1 << 15 };				/* numbers below which threads are not started */

static const volatile float minus_one = -1;	/* volatile: else the compiler would subtract */

static void sylvester_plain(size_t n, float x[n], float scale)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= scale;
	for (size_t h = 1; h < n; h *= 2)
		for (size_t i = 0; i < n; i++)
			if (!(i & h)) {
				const float a = x[i], b = x[i + h];

				x[i] = a + b;
				x[i + h] = a - b;
			}
}

#define LANES 4
#define RADIX 8
#define TARGET
#define NAME(x) plain_##x
#include "num/hadamard_private.h"
#ifdef __x86_64__
#define LANES 8
#define RADIX 8
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) avx2_##x
#include "num/hadamard_private.h"
#define LANES 16
#define RADIX 16
#define TARGET __attribute__((CPU_AVX512_TARGET))
#define NAME(x) avx512_##x
#include "num/hadamard_private.h"
#endif

static const struct factor_kind {
	void (*sylvester)(size_t n, float x[n], float scale);
	void (*small)(size_t order, const uint8_t pattern[order][order / 4], size_t stride,
		float x[order][stride], float sum[order][COLUMNS]);
} kinds[] = {
	[CPU_PLAIN] = { plain_sylvester, plain_small },
#ifdef __x86_64__
	[CPU_AVX2] = { avx2_sylvester, avx2_small },
	[CPU_AVX512] = { avx512_sylvester, avx512_small },
#endif
};

/* Offset of column c, counted over all blocks [order][columns] of a row. */
static size_t column_at(size_t order, size_t columns, size_t c)
{
	return c / columns * order * columns + c % columns;
}

/* Blocks whose width is not a multiple of COLUMNS: columns of several blocks are copied together. */
static void narrow(const struct factor_kind *kind, size_t order, const uint8_t *pattern, size_t columns,
	size_t n,
	float x[n], float sum[order][COLUMNS])
{
	float copy[order][COLUMNS];

	memset(copy, 0, sizeof copy);
	for (size_t c = 0; c < n / order; c += COLUMNS) {
		const size_t some = min(COLUMNS, n / order - c);

		for (size_t j = 0; j < some; j++)
			for (size_t a = 0, at = column_at(order, columns, c + j); a < order; a++)
				copy[a][j] = x[at + a * columns];
		kind->small(order, (const uint8_t (*)[order / 4])pattern, COLUMNS, copy, sum);
		for (size_t j = 0; j < some; j++)
			for (size_t a = 0, at = column_at(order, columns, c + j); a < order; a++)
				x[at + a * columns] = copy[a][j];
	}
}

/* Multiplies each block [order][columns] of the row x by a K. */
static void factor(const struct factor_kind *kind, const struct hadamard_factor *f, bool transposed,
	size_t columns,
	size_t n, float x[n])
{
	const size_t order = f->order;
	const uint8_t *pattern = f->pattern[transposed];
	float sum[order][COLUMNS];

	if (columns % COLUMNS) {
		narrow(kind, order, pattern, columns, n, x, sum);
		return;
	}
	for (size_t c = 0; c < n / order; c += COLUMNS)
		kind->small(order, (const uint8_t (*)[order / 4])pattern, columns,
			(float (*)[columns])(x + column_at(order, columns, c)), sum);
}

static void product_row(const struct hadamard *h, bool transposed, const struct factor_kind *kind,
	float scale,
	float x[h->n])
{
	size_t columns = (size_t)1 << h->power;

	for (size_t i = 0; i < h->n; i += columns)
		kind->sylvester(columns, x + i, scale);
	for (size_t i = h->factors; i-- > 0; columns *= h->factor[i].order)
		factor(kind, &h->factor[i], transposed, columns, h->n, x);
}

void hadamard_product(const struct hadamard *h, bool transposed, size_t m, size_t stride, float x[m][stride])
{
	const float scale = (float)(1 / sqrt((double)h->block));
	const struct factor_kind *kind = &kinds[cpu];

	if (h->block == 1)
		return;
	#pragma omp parallel for num_threads(threads_for(ceil_div(m, CHUNK))) if (m * h->n > FEW) \
		schedule(dynamic, CHUNK)
	for (size_t i = 0; i < m; i++)
		product_row(h, transposed, kind, scale, x[i]);
}

/* ---- in double, without tables ---- */

enum { WIDTH = 8 };

CLONES(static, void, sylvester_double, (size_t n, double x[n], double scale), (n, x, scale))
{
	for (size_t i = 0; i < n; i++)
		x[i] *= scale;
	for (size_t h = 1; h < n; h *= 2)
		for (size_t i = 0; i < n; i += 2 * h)
			for (size_t j = i; j < i + h; j++) {
				const double a = x[j], b = x[j + h];

				x[j] = a + b;
				x[j + h] = a - b;
			}
}

/* `width` columns of x become Kᵀ x; transposed: K x. */
CLONES(static, void, small_double, (size_t order, const int8_t k[order][order], bool transposed, size_t width,
	size_t columns, double x[order][columns]), (order, k, transposed, width, columns, x))
{
	double y[order][WIDTH];

	for (size_t b = 0; b < order; b++) {
		double sum[WIDTH] = { 0 };

		for (size_t a = 0; a < order; a++) {
			const double sign = (double)(transposed ? k[b][a] : k[a][b]);

			for (size_t j = 0; j < width; j++)
				sum[j] += sign * x[a][j];
		}
		memcpy(y[b], sum, sizeof sum);
	}
	for (size_t b = 0; b < order; b++)
		memcpy(x[b], y[b], width * sizeof *x[b]);
}

static void product_row_double(const struct hadamard *h, bool transposed, double scale, double x[h->n])
{
	size_t columns = (size_t)1 << h->power;

	for (size_t i = 0; i < h->n; i += columns)
		sylvester_double(columns, x + i, scale);
	for (size_t i = h->factors; i-- > 0; columns *= h->factor[i].order) {
		const size_t order = h->factor[i].order;

		for (size_t at = 0; at < h->n; at += order * columns)
			for (size_t c = 0; c < columns; c += WIDTH)
				small_double(order, (const int8_t (*)[order])h->factor[i].k, transposed,
					min(WIDTH, columns - c), columns,
					(double (*)[columns])(x + at + c));
	}
}

void hadamard_product_double(const struct hadamard *h, bool transposed, size_t m, size_t stride,
	double x[m][stride])
{
	const double scale = 1 / sqrt((double)h->block);

	if (h->block == 1)
		return;
	#pragma omp parallel for num_threads(threads_for(ceil_div(m, CHUNK))) if (m * h->n > FEW) \
		schedule(dynamic, CHUNK)
	for (size_t i = 0; i < m; i++)
		product_row_double(h, transposed, scale, x[i]);
}
