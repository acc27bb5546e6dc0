/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tile -- products by tiles: the instruction in plain C (tests/amx.h) against exact arithmetic, and products
 * against sums by it, the same bits
 *
 * On a processor with tiles, products use its instructions. On others they use the plain ones, which still
 * test every layout, slice and end.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "amx.h"
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "case.h"
#include "num/bf16x2.h"
#include "num/linalg.h"
#include "num/tile.h"

static struct random_stream noise;
static uint64_t drawn;

static uint32_t bits(void)
{
	return (uint32_t)random_bits(&noise, drawn++);
}

static size_t below(size_t n)
{
	return bits() % n;
}

/* ---- the instruction in plain C ---- */

/* a b + c, with terms that fit in 64 bits: rounded to 24 bits with unbounded exponent; zero below 2^-126. */
static float exactly(float a, float b, float c)
{
	const long double v = (long double)a * (long double)b + (long double)c;
	int exponent;
	const long double part = frexpl(v, &exponent);
	const long double y = ldexpl(rintl(ldexpl(part, 24)), exponent - 24);

	return fabsl(y) < 0x1p-126L ? copysignf(0, (float)part) : (float)y;
}

static void same_float(float a, float b)
{
	if (!(a == b && !signbit(a) == !signbit(b)) && !(isnan(a) && isnan(b)))
		fail_msg("%a, not %a", (double)a, (double)b);
}

/* Sums around 2^-126 in steps of 2^-152, all of them; then random ones that fit in 64 bits. */
static void flushing(void **unused)
{
	size_t kept = 0, flushed = 0, between = 0;

	(void)unused;
	for (int n = 0; n < 2 * 4 * 4 * 4; n++) {
		CASE("n %d", n);
		const float s = n % 2 ? 1 : -1;
		const float a = (float)(n / 2 % 4) * 0x1p-77f, b = (float)(n / 8 % 4) * 0x1p-75f;
		const float c = s * (0x1p-126f + (float)(n / 32) * 0x1p-149f);
		const float y = amx_fused(-s * a, b, c);
		const long double v = fabsl((long double)(-s * a) * (long double)b + (long double)c);

		same_float(y, exactly(-s * a, b, c));
		kept += y != 0, flushed += y == 0;
		between += v > 0x1p-126L - 0x1p-150L && v < 0x1p-126L - 0x1p-151L;
	}
	for (size_t n = 0; n < 200000; n++) {	/* 8 by 8 bits, and 24 bits at most 24 places above them */
		CASE("n %zu", n);
		const int at = -140 + (int)below(60);
		const float a = amx_normal(ldexpf((float)below(256) - 128, at / 2));
		const float b = amx_normal(ldexpf((float)below(256), at - at / 2));
		const float c = amx_normal(ldexpf((float)(int32_t)bits(), at - 24 + (int)below(24)));

		same_float(amx_fused(a, b, c), exactly(a, b, c));
	}
	assert_true(kept > 32 && flushed > 4 && between > 0);
	/* Both sides of the tie between 2^-126 and the number below it: IEEE rounds both up. */
	same_float(amx_fused(-0x1.01p-76f, 0x1.8p-76f, 0x1p-126f), 0x1p-126f);
	same_float(amx_fused(-0x1.8p-76f, 0x1p-75f, 0x1p-126f), 0);
	same_float(amx_fused(0x1p-64f, 0x1p-64f, 0), 0);
	same_float(amx_fused(-0x1p-64f, 0x1p-63f, 0), -0.0f);
	same_float(amx_fused(INFINITY, 0, 1), NAN);
	same_float(amx_fused(0x1p127f, 2, 0), INFINITY);
}

/* ---- products ---- */

/* Left and right sides as rows of bytes, and in their layout for tiles. */
struct sides {
	enum tile_kind kind;
	size_t m, n, bytes, group;	/* bytes of a row, of a group; 0: no scales */
	struct tile_product p;
	uint8_t *a, *b;
	char *left, *right;
	struct tile_terms *terms;	/* [n / 32][groups] */
	float *scale;
	int32_t *sum;
};

enum numbers { ORDINARY, SMALL, ANY, LARGEST };	/* LARGEST: -128 on the left, 255 on the right */

static void fill(struct sides *s, uint8_t *x, size_t rows, enum numbers numbers)
{
	for (size_t i = 0; i < rows * s->bytes; i += 2) {
		uint16_t v = (uint16_t)bits();

		if (s->kind == TILE_BF16 && numbers == ORDINARY)
			v = (uint16_t)((v & 0x807f) | (120 + below(10)) << 7);
		if (s->kind == TILE_BF16 && numbers == SMALL)	/* products around 2^-126 */
			v = (uint16_t)((v & 0x807f) | (58 + below(12)) << 7);
		memcpy(x + i, &v, min(2, rows * s->bytes - i));
	}
}

static struct sides sides(enum tile_kind kind, size_t m, size_t n, size_t bytes, size_t group,
	enum numbers numbers)
{
	struct sides s = { .kind = kind, .m = m, .n = n, .bytes = bytes, .group = group };
	const size_t columns = tile_columns(bytes);
	const size_t groups = group ? ceil_div(bytes, group) : 1, panels = ceil_div(n, TILE_PANEL);
	size_t panel;

	s.p = (struct tile_product){ .kind = kind, .columns = columns, .group = group, .groups = groups };
	s.a = xalloc(m, bytes), s.b = xalloc(n, bytes);
	fill(&s, s.a, m, numbers), fill(&s, s.b, n, numbers);
	if (numbers == LARGEST)
		memset(s.a, 0x80, m * bytes), memset(s.b, 0xff, n * bytes);
	s.left = xalloc(tile_left_size(m, bytes), 1);
	for (size_t i = 0; i < m; i++)
		tile_store_row(bytes, s.left, i, 0, bytes, s.a + i * bytes);
	s.right = xalloc(tile_right_size(&s.p, n), 1);
	s.terms = xalloc(panels * groups, sizeof *s.terms);
	s.scale = xalloc(m, sizeof *s.scale), s.sum = xalloc(m * groups, sizeof *s.sum);
	panel = tile_right_size(&s.p, 1);
	for (size_t j = 0; j < n; j++)
		for (size_t c = 0; c < bytes; c++)
			s.right[j / TILE_PANEL * panel + (c / 4 * TILE_PANEL + j % TILE_PANEL) * 4 + c % 4] =
				(char)s.b[j * bytes + c];
	for (size_t j = 0; j < panels * groups; j++)
		for (size_t k = 0; k < TILE_PANEL; k++) {
			s.terms[j].scale[k] = (float)below(1000) * 0x1p-9f;
			s.terms[j].zero[k] = kind == TILE_BF16 ? 0 :
				numbers == LARGEST ? 128 : (int32_t)below(300) - 20;
		}
	for (size_t j = 0; group && j < panels; j++)
		memcpy(s.right + j * panel + columns * TILE_PANEL, s.terms + j * groups,
			groups * sizeof *s.terms);
	for (size_t i = 0; i < m; i++) {
		s.scale[i] = (float)(1 + below(1000)) * 0x1p-9f;
		for (size_t c = 0; kind != TILE_BF16 && c < bytes; c++)
			s.sum[i * groups + (group ? c / group : 0)] += (int8_t)s.a[i * bytes + c];
	}
	s.p.left = s.left, s.p.right = s.right, s.p.scale = s.scale;
	s.p.sum = kind == TILE_BF16 ? NULL : s.sum;
	return s;
}

static void sides_free(struct sides *s)
{
	free(s->a), free(s->b), free(s->left), free(s->right);
	free(s->terms), free(s->scale), free(s->sum);
}

/* y += bytes [first, end) of row i of a times row j of b, in the order of tiles of `depth` bytes. */
static float add_bf16(const struct sides *s, size_t i, size_t j, size_t first, size_t end, size_t depth,
	float y)
{
	for (size_t c = first; c < end; c += depth) {
		uint32_t a[16] = { 0 }, b[16] = { 0 };

		if (c < s->bytes) {
			memcpy(a, s->a + i * s->bytes + c, min(depth, s->bytes - c));
			memcpy(b, s->b + j * s->bytes + c, min(depth, s->bytes - c));
		}
		y = amx_dot_bf16(y, depth / 4, a, b);
	}
	return y;
}

/* Minus the zero point: in int32, although neither sum alone need fit. */
static int32_t dot_bytes(const struct sides *s, size_t i, size_t j, size_t first, size_t end,
	int32_t zero)
{
	int32_t sum = 0;

	for (size_t c = first; c < end; c++) {
		const uint8_t w = s->b[j * s->bytes + c];

		sum += (int8_t)s->a[i * s->bytes + c] * ((s->kind == TILE_UNSIGNED ? w : (int8_t)w) - zero);
	}
	return sum;
}

static float with_scales(const struct sides *s, size_t i, size_t j)
{
	const size_t groups = s->p.groups, depth = groups > 1 ? min(64, s->group & -s->group) : 64;
	float total = 0;

	for (size_t g = 0; g < groups; g++) {
		const struct tile_terms *t = &s->terms[j / TILE_PANEL * groups + g];
		const size_t first = g * s->group, end = min(first + s->group, s->bytes);
		const size_t stop = first + ceil_div(end - first, depth) * depth;
		const float number = s->kind == TILE_BF16 ? add_bf16(s, i, j, first, stop, depth, 0) :
			(float)dot_bytes(s, i, j, first, end, t->zero[j % TILE_PANEL]);

		total = fmaf(number, t->scale[j % TILE_PANEL], total);
	}
	return total * s->scale[i];
}

/* Sums begin with the old contents of y, and the bias. */
static float without_scales(const struct sides *s, size_t i, size_t j, const float *bias, float old, bool add)
{
	const float begin = add && bias ? old + bias[j] : add ? old : bias ? bias[j] : 0;

	return add_bf16(s, i, j, 0, s->bytes, 64, begin);
}

static void check(struct sides *s, bool with_bias, bool add)
{
	const size_t stride = s->n + 3;
	float *bias = xalloc(s->n, sizeof *bias), (*y)[stride] = xalloc(s->m, sizeof *y);

	for (size_t j = 0; j < s->n; j++)
		bias[j] = (float)j + 0.5f;
	for (size_t i = 0; i < s->m; i++)
		for (size_t j = 0; j < stride; j++)
			y[i][j] = (float)(i + j) * 0.25f;
	tile_product(&s->p, s->m, s->n, stride, y, with_bias ? bias : NULL, add);
	for (size_t i = 0; i < s->m; i++) {
		for (size_t j = 0; j < s->n; j++) {
			const float old = (float)(i + j) * 0.25f;
			float want;

			if (s->group) {
				want = with_scales(s, i, j);
				want = with_bias ? want + bias[j] : want;
				want = add ? want + old : want;
			} else
				want = without_scales(s, i, j, with_bias ? bias : NULL, old, add);
			same_float(y[i][j], want);
		}
		for (size_t j = s->n; j < stride; j++)
			assert_true(y[i][j] == (float)(i + j) * 0.25f);
	}
	free(bias), free(y);
}

static void check_all(enum tile_kind kind, size_t m, size_t n, size_t bytes, size_t group,
	enum numbers numbers)
{
	struct sides s = sides(kind, m, n, bytes, group, numbers);

	for (int how = 0; how < 4; how++) {
		CASE("kind %d, %zu x %zu x %zu, group %zu, how %d", (int)kind, m, n, bytes, group, how);
		check(&s, how & 1, how & 2);
	}
	sides_free(&s);
}

/* One step of columns, partial and whole; more than a slice; more than a block. */
static const size_t sizes[][3] = {
	{ 1, 1, 2 }, { 32, 32, 64 }, { 33, 31, 66 }, { 40, 70, 1022 }, { 32, 64, 2304 }, { 300, 33, 130 },
	{ 5, 520, 64 },
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void bf16(void **unused)
{
	(void)unused;
	if (!amx_on())
		return;
	for (size_t k = 0; k < SIZES; k++)
		check_all(TILE_BF16, sizes[k][0], sizes[k][1], sizes[k][2], 0, ORDINARY);
	check_all(TILE_BF16, 32, 32, 64, 0, SMALL);
	check_all(TILE_BF16, 32, 64, 256, 0, SMALL);
	check_all(TILE_BF16, 64, 32, 128, 0, ANY);	/* also infinite, NaN and subnormal ones */
}

static void groups(void **unused)
{
	static const size_t groups[] = { 16, 32, 48, 64, 96, 128, 256 };
	enum { GROUPS = sizeof groups / sizeof *groups };

	(void)unused;
	if (!amx_on())
		return;
	for (size_t k = 0; k < SIZES; k++)
		for (enum tile_kind kind = TILE_BF16; kind <= TILE_UNSIGNED; kind++) {
			const size_t *size = sizes[k], group = groups[(k + kind * 3) % GROUPS];

			check_all(kind, size[0], size[1], size[2], group, ORDINARY);
			check_all(kind, size[0], size[1], size[2], 1 << 20, ORDINARY);
		}
	for (size_t g = 0; g < GROUPS; g++)
		for (enum tile_kind kind = TILE_BF16; kind <= TILE_UNSIGNED; kind++)
			check_all(kind, 34, 40, 336, groups[g], ORDINARY);
}

/* Sums of the largest bytes over 65793 columns, the max number, are exact. */
static void long_sums(void **unused)
{
	(void)unused;
	if (amx_on())
		check_all(TILE_UNSIGNED, 2, 33, 65793, 1 << 20, LARGEST);
}

/* A random number of at most 2^most. */
static float number(int max)
{
	return ldexpf((float)(int32_t)bits(), max - 31 - (int)below(12));
}

/* Numbers up to 2^most. Rows of y come in three chunks; the bytes after them are not read. */
static void check_bf16x2(int max)
{
	enum { ALL = 200, ROWS = 131, M = 45, N = 64, STRIDE = 70 };
	const double tops = 2 * ldexp(1, max);
	float (*x)[STRIDE] = xalloc(ROWS, sizeof *x), (*y)[STRIDE] = xalloc(ALL, sizeof *y);
	float (*z)[STRIDE] = xalloc(M, sizeof *z);
	void *left = xalloc(bf16x2_left_size(ROWS, M), 1), *right = xalloc(bf16x2_right_size(ALL, N), 1);

	memset(right, 0xff, bf16x2_right_size(ALL, N));
	for (size_t k = 0; k < ROWS; k++)
		for (size_t j = 0; j < STRIDE; j++)
			x[k][j] = number(max), y[k][j] = number(max);
	bf16x2_left(ROWS, M, left, STRIDE, (const float (*)[STRIDE])x);
	bf16x2_right(ALL, 0, 33, N, right, STRIDE, (const float (*)[STRIDE])y);
	bf16x2_right(ALL, 33, 100, N, right, STRIDE, (const float (*)[STRIDE])y);
	bf16x2_right(ALL, 100, ROWS, N, right, STRIDE, (const float (*)[STRIDE])y);
	bf16x2_product(ROWS, M, N, STRIDE, z, left, ALL, right);
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			double sum = 0, size = 0;

			for (size_t k = 0; k < ROWS; k++) {
				sum += (double)x[k][i] * (double)y[k][j];
				size += fabs((double)x[k][i] * (double)y[k][j]);
			}
			assert_true(fabs((double)z[i][j] - sum) <= 6 * ROWS * 0x1p-126 * (1 + tops) +
				(0x1p-15 + 2 * (3 * ROWS + 2) * 0x1p-24) * size);
		}
	free(x), free(y), free(z), free(left), free(right);
}

static void bf16x2(void **unused)
{
	(void)unused;
	if (!amx_on())
		return;
	check_bf16x2(3);
	check_bf16x2(-56);
	check_bf16x2(-62);
	check_bf16x2(-115);
}

static void same_bits(void **unused)
{
	enum { M = 300, N = 600 };
	struct sides s = sides(TILE_BF16, M, N, 256, 128, ORDINARY);
	float (*y)[M][N] = xalloc(2, sizeof *y);

	(void)unused;
	if (!amx_on())
		return;
	for (int i = 0; i < 2; i++) {
		threads = i + 1;
		tile_product(&s.p, M, N, N, y[i], NULL, false);
	}
	assert_memory_equal(y[0], y[1], sizeof *y);
	threads = 1;
	free(y);
	sides_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flushing), cmocka_unit_test(bf16), cmocka_unit_test(groups),
		cmocka_unit_test(long_sums), cmocka_unit_test(bf16x2), cmocka_unit_test(same_bits),
	};

	noise = random_open(1, "tile");
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
