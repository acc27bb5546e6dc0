/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard -- matrices in integers, and their fast products against plain ones, on each kind of processor
 *
 * With the argument `table` it prints the table of docs/hadamard.md instead.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "case.h"
#include "num/hadamard.h"

enum { SMALL_WIDTHS = 300 };		/* every multiple of 4 up to this width */
/* Widths of real models and their factors; small 0: not exact. */
static const struct { size_t n, small, power; const char *text; } widths[] = {
	{ 576, 36, 4, "Paley II (q = 17) ⊗ Sylvester (16)" },
	{ 1152, 36, 5, "Paley II (q = 17) ⊗ Sylvester (32)" },
	{ 1536, 12, 7, "Paley I (q = 11) ⊗ Sylvester (128)" },
	{ 1664, 52, 5, "Paley II (q = 25) ⊗ Sylvester (32)" },
	{ 4096, 1, 12, "Sylvester (4096)" },
	{ 4304, 0, 4, "Sylvester (16)" },
	{ 4864, 76, 6, "Paley II (q = 37) ⊗ Sylvester (64)" },
	{ 5120, 20, 8, "Paley I (q = 19) ⊗ Sylvester (256)" },
	{ 8960, 140, 6, "Paley I (q = 139) ⊗ Sylvester (64)" },
	{ 9728, 76, 7, "Paley II (q = 37) ⊗ Sylvester (128)" },
	{ 10944, 684, 4, "Paley I (q = 683) ⊗ Sylvester (16)" },
	{ 11008, 172, 6, "Williamson (43) ⊗ Sylvester (64)" },
	{ 13696, 0, 7, "Sylvester (128)" },
	{ 13824, 108, 7, "Paley I (q = 107) ⊗ Sylvester (128)" },
	{ 14336, 28, 9, "Paley I (q = 27) ⊗ Sylvester (512)" },
	{ 17408, 68, 8, "Paley I (q = 67) ⊗ Sylvester (256)" },
	{ 18944, 148, 7, "Paley II (q = 73) ⊗ Sylvester (128)" },
	{ 21824, 5456, 2, "Paley II (q = 61) ⊗ Paley I (q = 43) ⊗ Sylvester (4)" },
	{ 25600, 100, 8, "Paley II (q = 49) ⊗ Sylvester (256)" },
	{ 29568, 924, 5, "Paley II (q = 461) ⊗ Sylvester (32)" },
};
enum { WIDTHS = sizeof widths / sizeof *widths };

static struct random_stream noise;
static uint64_t drawn;

static size_t below(size_t n)
{
	return (size_t)(random_bits(&noise, drawn++) % n);
}

static struct hadamard made(size_t n, size_t block)
{
	struct hadamard h;

	assert_true(hadamard_choose(&h, n, block));
	assert_int_equal(h.n, n);
	assert_int_equal(n % h.block, 0);
	assert_int_equal(h.small << h.power, h.block);
	hadamard_build(&h, h.factors ? xalloc(hadamard_bytes(&h), 1) : NULL);
	return h;
}

static void unmake(struct hadamard *h)
{
	if (h->factors)
		free((void *)(uintptr_t)h->factor[0].k);
}

/* H of a block, by its definition. */
static int entry(const struct hadamard *h, size_t i, size_t j)
{
	int sign = __builtin_parityll(i & j & (((size_t)1 << h->power) - 1)) ? -1 : 1;

	i >>= h->power, j >>= h->power;
	for (size_t f = h->factors; f-- > 0; ) {
		const size_t order = h->factor[f].order;

		sign *= h->factor[f].k[i % order * order + j % order];
		i /= order, j /= order;
	}
	return sign;
}

/* ---- matrices ---- */

static int dot(size_t n, const int8_t a[n], const int8_t b[n])
{
	int sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void orthogonal(size_t n, const int8_t k[n][n])
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			assert_true(k[i][j] == 1 || k[i][j] == -1);
			if (j <= i && dot(n, k[i], k[j]) != (i == j ? (int)n : 0))
				fail_msg("order %zu: rows %zu and %zu", n, i, j);
		}
}

static size_t exact_up_to_300(size_t n)
{
	switch (n) {
	case 188: case 236: case 268: case 292: return 4;
	case 260: return 52;
	default: return n;
	}
}

static void every_multiple_of_4(void **unused)
{
	(void)unused;
	for (size_t n = 4; n <= SMALL_WIDTHS; n += 4) {
		CASE("order %zu", n);
		struct hadamard h = made(n, 0);
		const size_t b = h.block;
		int8_t (*m)[b] = xalloc(b, b);

		assert_int_equal(b, exact_up_to_300(n));
		for (size_t i = 0; i < b; i++)
			for (size_t j = 0; j < b; j++)
				m[i][j] = (int8_t)entry(&h, i, j);
		orthogonal(b, (const int8_t (*)[b])m);
		free(m);
		unmake(&h);
	}
}

/* All rows for each K; of H only some rows. */
static void real_widths(void **unused)
{
	(void)unused;
	for (size_t w = 0; w < WIDTHS; w++) {
		CASE("width %zu", widths[w].n);
		struct hadamard h = made(widths[w].n, 0);
		int8_t *a = xalloc(h.block, 1), *b = xalloc(h.block, 1);
		char text[128];

		assert_int_equal(h.block, (widths[w].small ? widths[w].small : 1) << widths[w].power);
		assert_int_equal(h.power, widths[w].power);
		assert_int_equal(h.block == h.n, widths[w].small > 0);
		hadamard_text(&h, sizeof text, text);
		assert_string_equal(text, widths[w].text);
		for (size_t f = 0; f < h.factors; f++)
			orthogonal(h.factor[f].order,
				(const int8_t (*)[h.factor[f].order])h.factor[f].k);
		for (size_t k = 0; k < 40; k++) {
			const size_t i = below(h.block), j = k % 4 ? below(h.block) : i;

			for (size_t c = 0; c < h.block; c++) {
				a[c] = (int8_t)entry(&h, i, c);
				b[c] = (int8_t)entry(&h, j, c);
			}
			assert_int_equal(dot(h.block, a, b), i == j ? (int)h.block : 0);
		}
		free(a), free(b);
		unmake(&h);
	}
}

static void other_orders(void **unused)
{
	struct hadamard h;
	char text[64];

	(void)unused;
	for (size_t n = 1; n < 100; n++)
		if (n % 4)
			assert_int_equal(hadamard_block(n), n % 2 ? 1 : 2);
	for (size_t power = 0; power < 40; power++)
		assert_true(hadamard_block((size_t)1 << power) == (size_t)1 << power);
	assert_true(hadamard_choose(&h, 1600, 80));
	assert_true(h.n == 1600 && h.block == 80 && h.small == 20 && h.power == 2 && h.factors == 1);
	assert_true(hadamard_choose(&h, 7, 0));
	assert_true(h.block == 1 && !hadamard_bytes(&h));
	hadamard_text(&h, sizeof text, text);
	assert_string_equal(text, "Sylvester (1)");
	assert_false(hadamard_choose(&h, 0, 0));
	assert_false(hadamard_choose(&h, 0, 4));
	assert_false(hadamard_choose(&h, 100, 8));	/* 8 does not divide 100 */
	assert_false(hadamard_choose(&h, 96, 6));	/* no such matrix */
	assert_false(hadamard_choose(&h, 376, 188));
	assert_false(hadamard_choose(&h, 3, 3));
}

/* ---- products ---- */

/* All orders of powers of two, with any number of columns next to a K, one block and several. */
static const struct { size_t n, block; } orders[] = {
	{ 1, 0 }, { 2, 0 }, { 4, 0 }, { 8, 0 }, { 16, 0 }, { 32, 0 }, { 64, 0 }, { 128, 0 }, { 256, 0 },
	{ 512, 0 }, { 1024, 0 }, { 2048, 0 }, { 4096, 0 }, { 8192, 0 }, { 16384, 0 }, { 32768, 0 },
	{ 12, 0 }, { 24, 0 }, { 48, 0 }, { 96, 0 }, { 192, 0 }, { 384, 0 }, { 36, 0 }, { 60, 0 }, { 300, 0 },
	{ 240, 80 }, { 84, 12 }, { 264, 24 }, { 2560, 128 }, { 7, 0 }, { 90, 0 }, { 188, 0 }, { 260, 0 },
	{ 1248, 0 }, { 736, 0 }, { 928, 0 },
};
enum { ORDERS = sizeof orders / sizeof *orders };

static struct hadamard made_number(size_t k)
{
	return k < ORDERS ? made(orders[k].n, orders[k].block) : made(widths[k - ORDERS].n, 0);
}

/* The number of additions for a result of the float products and of the double ones (hadamard.h). */
static double depth(const struct hadamard *h, bool plainly)
{
	double d = (double)h->power;

	for (size_t f = 0; f < h->factors; f++)
		d += plainly ? (double)h->factor[f].order : (double)(h->factor[f].order / 4 + 2);
	return d;
}

/* A row of H is exact: for a unit vector times √block's inverse, only that inverse is rounded. */
static void rows_of(const struct hadamard *h, bool transposed)
{
	const size_t n = h->n;
	const float scale = (float)(1 / sqrt((double)h->block));
	float *x = xalloc(n, sizeof *x);
	double *y = xalloc(n, sizeof *y);

	for (int k = 0; k < 6; k++) {
		const size_t i = k ? below(n) : n - 1, first = i / h->block * h->block;

		memset(x, 0, n * sizeof *x);
		memset(y, 0, n * sizeof *y);
		x[i] = 1, y[i] = 1;
		hadamard_product(h, transposed, 1, n, (float (*)[n])x);
		hadamard_product_double(h, transposed, 1, n, (double (*)[n])y);
		for (size_t j = 0; j < n; j++) {
			const int sign = j / h->block != i / h->block ? 0 : transposed ?
				entry(h, j - first, i - first) : entry(h, i - first, j - first);

			if (x[j] != (float)sign * scale || y[j] != sign / sqrt((double)h->block))
				fail_msg("order %zu: row %zu, column %zu: %g, %g", n, i, j, (double)x[j],
					y[j]);
		}
	}
	free(x), free(y);
}

static double norm(size_t n, const float x[n])
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

/* Number j of x H/√b or x Hᵀ/√b, as a plain sum. */
static double plain_sum(const struct hadamard *h, bool transposed, const float x[h->n], size_t j)
{
	const size_t first = j / h->block * h->block;
	double sum = 0;

	for (size_t i = first; i < first + h->block; i++)
		sum += (double)x[i] * (transposed ? entry(h, j - first, i - first) :
			entry(h, i - first, j - first));
	return sum / sqrt((double)h->block);
}

/* All numbers of a short row, some of a long one; then back from the other side. Bytes between rows are
 * unchanged. */
static void against_plain(const struct hadamard *h, bool transposed)
{
	enum { ROWS = 3, ALL = 300, SOME = 40 };
	const size_t n = h->n, stride = n + 5, looks = n <= ALL ? n : SOME;
	const double d = (depth(h, false) + 3) * 0x1p-24, d2 = (depth(h, true) + 3) * 0x1p-53;
	float (*x)[stride] = xalloc(ROWS, sizeof *x), (*y)[stride] = xalloc(ROWS, sizeof *y);
	double (*z)[stride] = xalloc(ROWS, sizeof *z);

	for (size_t r = 0; r < ROWS; r++)
		for (size_t i = 0; i < stride; i++)
			z[r][i] = x[r][i] = y[r][i] = (float)(random_uniform(&noise, drawn++) - 0.4);
	hadamard_product(h, transposed, ROWS, stride, y);
	hadamard_product_double(h, transposed, ROWS, stride, z);
	for (size_t r = 0; r < ROWS; r++) {
		const double size = norm(n, x[r]);
		const double own = (double)h->block * 0x1p-53 * sqrt((double)looks) * size;
		double error = 0, error2 = 0;

		for (size_t k = 0; k < looks; k++) {
			const size_t j = looks == n ? k : below(n);
			const double sum = plain_sum(h, transposed, x[r], j);

			error += pow((double)y[r][j] - sum, 2);
			error2 += pow(z[r][j] - sum, 2);
		}
		if (!(sqrt(error) <= d * size + own && sqrt(error2) <= d2 * size + own))
			fail_msg("order %zu, block %zu: %g and %g of %g", n, h->block, sqrt(error),
				sqrt(error2), size);
	}
	hadamard_product(h, !transposed, ROWS, stride, y);
	hadamard_product_double(h, !transposed, ROWS, stride, z);
	for (size_t r = 0; r < ROWS; r++) {
		const double size = norm(n, x[r]);
		double error = 0, error2 = 0;

		for (size_t i = 0; i < n; i++) {
			error += pow((double)y[r][i] - (double)x[r][i], 2);
			error2 += pow(z[r][i] - (double)x[r][i], 2);
		}
		if (!(sqrt(error) <= 2 * d * size && sqrt(error2) <= 2 * d2 * size))
			fail_msg("order %zu, block %zu, back: %g and %g of %g", n, h->block, sqrt(error),
				sqrt(error2), size);
		for (size_t i = n; i < stride; i++)
			assert_true(y[r][i] == x[r][i] && z[r][i] == (double)x[r][i]);
	}
	free(x), free(y), free(z);
}

static void products(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < ORDERS + WIDTHS; k++) {
		struct hadamard h = made_number(k);

		for (int transposed = 0; transposed < 2; transposed++) {
			CASE("k %zu, transposed %d", k, transposed);
			for (cpu = CPU_PLAIN; cpu <= cpu_widest; cpu++) {
				CASE("k %zu, transposed %d, cpu %d", k, transposed, (int)cpu);
				rows_of(&h, transposed);
			}
			cpu = cpu_widest;
			against_plain(&h, transposed);
		}
		unmake(&h);
	}
}

/* ---- the same bits ---- */

/* The widest kernels on any machine; the compiler splits their vectors. */
enum { COLUMNS = HADAMARD_COLUMNS, TABLES = 16, ROWS = 4 };
static const volatile float minus_one = -1;
static void sylvester_plain(size_t n, float x[n], float scale);
#define LANES 16
#define RADIX 16
#define TARGET
#define NAME(x) cut_##x
#include "num/hadamard_private.h"

/* Not reached: it is used with 16 columns only. */
static void sylvester_plain(size_t n, float x[n], float scale)
{
	(void)x, (void)scale;
	fail_msg("%zu columns", n);
}

static void cut_product(const struct hadamard *h, bool transposed, size_t m, size_t stride,
	float x[m][stride])
{
	const size_t columns = (size_t)1 << h->power, order = h->small, quarter = max(order / 4, 1);
	const uint8_t *pattern = h->factor[0].pattern[transposed];
	float (*sum)[COLUMNS] = xalloc(order, sizeof *sum);

	for (size_t r = 0; r < m; r++) {
		for (size_t i = 0; i < h->n; i += columns)
			cut_sylvester(columns, &x[r][i], (float)(1 / sqrt((double)h->block)));
		for (size_t i = 0; h->factors && i < h->n; i += h->block)
			for (size_t c = 0; c < columns; c += COLUMNS)
				cut_small(order, (const uint8_t (*)[quarter])pattern, columns,
					(float (*)[columns])&x[r][i + c], sum);
	}
	free(sum);
}

static void same_bits(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < ORDERS + WIDTHS; k++) {
		struct hadamard h = made_number(k);
		const size_t rows = 18, n = h.n, stride = n + 1, all = rows * stride;
		float *x = xalloc(all, sizeof *x), *y = xalloc(all, sizeof *y), *z = xalloc(all, sizeof *z);

		for (size_t i = 0; i < all; i++)
			x[i] = y[i] = z[i] = (float)(random_uniform(&noise, drawn++) - 0.4);
		threads = 1, cpu = CPU_PLAIN;
		hadamard_product(&h, k % 2, rows, stride, (float (*)[stride])x);
		threads = 3;
		for (cpu = CPU_PLAIN; cpu <= cpu_widest; cpu++) {
			CASE("k %zu, cpu %d", k, (int)cpu);
			memcpy(y, z, all * sizeof *y);
			hadamard_product(&h, k % 2, rows, stride, (float (*)[stride])y);
			assert_memory_equal(x, y, all * sizeof *x);
		}
		if (h.power >= 4 && h.factors < 2) {
			cut_product(&h, k % 2, rows, stride, (float (*)[stride])z);
			assert_memory_equal(x, z, all * sizeof *x);
		}
		threads = 1, cpu = cpu_widest;
		free(x), free(y), free(z);
		unmake(&h);
	}
}

static void extremes(void **unused)
{
	enum { N = 4096 };
	static const size_t widest[] = { N, 76 * 16, 20 * 4 };
	static float x[N];

	(void)unused;
	for (cpu = CPU_PLAIN; cpu <= cpu_widest; cpu++) {
		CASE("cpu %d", (int)cpu);
		struct hadamard h = made(N, 0);

		for (size_t i = 0; i < N; i++)
			x[i] = FLT_MAX / 64;
		hadamard_product(&h, false, 1, N, &x);
		for (size_t i = 0; i < N; i++)
			assert_true(x[i] == (i ? 0 : FLT_MAX));
		for (size_t k = 0; k < sizeof widest / sizeof *widest; k++)
			for (int bad = 0; bad < 2; bad++) {
				CASE("cpu %d, widest[%zu], bad %d", (int)cpu, k, bad);
				const size_t n = widest[k];

				h = made(n, 0);
				memset(x, 0, sizeof x);
				x[n / 3] = bad ? NAN : INFINITY;
				hadamard_product(&h, false, 1, n, (float (*)[n])x);
				for (size_t i = 0; i < n; i++)
					assert_false(isfinite(x[i]));
				unmake(&h);
			}
	}
	cpu = cpu_widest;
}

/* ---- the table ---- */

static void print_row(size_t n)
{
	struct hadamard h;
	char text[128];

	if (!n || !hadamard_choose(&h, n, 0))
		exit(1);
	hadamard_text(&h, sizeof text, text);
	printf("| %zu | ", n);
	if (h.block == n)
		printf("exact");
	else
		printf("%zu blocks of %zu", n / h.block, h.block);
	printf(" | %s |\n", text);
}

static int print_table(void)
{
	puts("| order | matrix | construction |\n|---|---|---|");
	for (size_t n = 4; n <= SMALL_WIDTHS; n += 4)
		print_row(n);
	for (size_t w = 0; w < WIDTHS; w++)
		print_row(widths[w].n);
	return 0;
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_multiple_of_4), cmocka_unit_test(real_widths),
		cmocka_unit_test(other_orders), cmocka_unit_test(products), cmocka_unit_test(same_bits),
		cmocka_unit_test(extremes),
	};

	if (argc > 1 && !strcmp(argv[1], "table"))
		return print_table();
	noise = random_open(1, "hadamard");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
