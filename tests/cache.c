/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cache -- keys and values rounded group by group, and their positions in the cache */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "forward/cache.h"

static struct random_stream stream;
static uint64_t drawn;

static void fill(size_t n, float *x)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)ldexp(2 * random_uniform(&stream, drawn) - 1, (int)(drawn / 7 % 9)), drawn++;
}

/* By the formula in cache.h, number by number. */
static void plain_round(const struct format *f, size_t n, float *x)
{
	double low = 0, high = 0;
	uint8_t code, zero = 0;
	float scale;

	for (size_t i = 0; i < n; i++)
		low = fmin(low, (double)x[i]), high = fmax(high, (double)x[i]);
	format_fit(f, &scale, &zero, low, high);
	for (size_t i = 0; i < n; i++) {
		format_encode(f, 1, &code, &x[i], &scale, &zero);
		x[i] = (f->grid[code] - (f->asymmetric ? (float)zero : 0)) * scale;
	}
}

static void rounded(const char *format, size_t head, size_t group, size_t heads, size_t rows)
{
	const size_t n = heads * head, stride = n + 5, all = rows * stride;
	struct cache_format f = { .group = group };
	float *x = xalloc(all, sizeof *x), *y = xalloc(all, sizeof *y);
	const enum cpu kind = cpu;

	assert_true(format_parse(&f.format, format));
	for (enum cpu one = CPU_PLAIN; one <= kind; one++) {
		CASE("one %d", (int)one);
		cpu = one;
		fill(all, x);
		memset(x, 0, (group ? group : head) * sizeof *x);	/* a group of zeros */
		x[stride] = 1e-45f;
		memcpy(y, x, all * sizeof *x);
		cache_round(&f, head, rows, stride, n, x);
		for (size_t t = 0; t < rows; t++)
			for (size_t i = 0; i < n; i += group ? group : head)
				plain_round(&f.format, group ? group : head, y + t * stride + i);
		assert_memory_equal(x, y, all * sizeof *x);	/* bytes between rows are unchanged too */
	}
	cpu = kind;
	free(x), free(y);
}

static void rows_are_rounded(void **unused)
{
	static const char *const formats[] = { "int2", "int4", "int8", "uint1", "uint4", "uint8", "e2m1",
		"e3m2", "e4m3fn", "e4m3ieee", "e5m2ieee", "nf4" };

	(void)unused;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		CASE("%s", formats[i]);
		rounded(formats[i], 64, 0, 6, 3);
		rounded(formats[i], 128, 32, 4, 2);
		rounded(formats[i], 80, 16, 2, 2);
		rounded(formats[i], 6, 1, 3, 2);
		rounded(formats[i], 1000, 500, 2, 2);
		rounded(formats[i], 600, 0, 1, 2);
	}
}

static void threads_do_not_matter(void **unused)
{
	enum { ROWS = 500, N = 64 };
	static float x[ROWS][N], y[ROWS][N];
	struct cache_format f = { .group = 16 };

	(void)unused;
	assert_true(format_parse(&f.format, "uint4"));
	fill(ROWS * N, x[0]);
	memcpy(y, x, sizeof x);
	threads = 1;
	cache_round(&f, 32, ROWS, N, N, x[0]);
	threads = 3;
	cache_round(&f, 32, ROWS, N, N, y[0]);
	threads_init(0);
	assert_memory_equal(x, y, sizeof x);
}

static void overflows_stay(void **unused)
{
	static const char *const formats[] = { "int4", "uint4", "e4m3fn", "nf4" };
	const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };

	(void)unused;
	for (size_t i = 0; i < 16; i++) {
		CASE("%s, bad[%zu]", formats[i % 4], i / 4);
		struct cache_format f = { .group = 4 };
		float x[3][8], y[3][8];

		assert_true(format_parse(&f.format, formats[i % 4]));
		fill(3 * 8, x[0]);
		x[1][3] = bad[i / 4];
		memcpy(y, x, sizeof x);
		cache_round(&f, 8, 3, 8, 8, x[0]);
		for (size_t g = 0; g < 3 * 8; g += 4)
			if (g / 8 != 1)
				plain_round(&f.format, 4, y[0] + g);
		assert_memory_equal(x, y, sizeof x);
	}
}

static void rows_find_their_place(void **unused)
{
	enum { BLOCKS = 2, SEQUENCES = 3, CAPACITY = 5, WIDTH = 4, STRIDE = 11 };
	const struct stack s = { .blocks = BLOCKS, .kv_heads = 2, .head_dim = 2 };
	struct cache c = cache_make(&s, SEQUENCES, CAPACITY);
	float rows[BLOCKS][SEQUENCES][CAPACITY][STRIDE];

	(void)unused;
	fill(sizeof rows / sizeof(float), rows[0][0][0]);
	for (size_t past = 0, n; past < CAPACITY; past += n)
		for (size_t b = 0; b < BLOCKS; b++)
			for (size_t i = 0; i < SEQUENCES; i++) {
				const struct sequence q = { .past = past, .length = n = past ? 2 : 1 };

				cache_put(&c, b, i, &q, STRIDE, rows[b][i][past]);
			}
	for (size_t b = 0; b < BLOCKS; b++)
		for (size_t i = 0; i < SEQUENCES; i++) {
			CASE("block %zu, sequence %zu", b, i);
			const struct sequence none = { .past = CAPACITY };
			const struct attention_keys keys = cache_put(&c, b, i, &none, STRIDE, NULL);

			assert_int_equal(keys.n, CAPACITY);
			for (size_t t = 0; t < CAPACITY; t++) {
				assert_memory_equal(keys.k + t * keys.stride, rows[b][i][t],
					WIDTH * sizeof(float));
				assert_memory_equal(keys.v + t * keys.stride, rows[b][i][t] + WIDTH,
					WIDTH * sizeof(float));
			}
		}
	cache_free(&c);
}

static void bits_are_counted(void **unused)
{
	static const struct { const char *format; size_t group; double bits; } cases[] = {
		{ "int4", 0, 4.5 }, { "uint4", 0, 4 + 36.0 / 64 }, { "uint4", 32, 4 + 36.0 / 32 },
		{ "e4m3fn", 16, 10 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CASE("cases[%zu] %s", i, cases[i].format);
		struct config c = { .stacks = 1,
			.stack = { { .blocks = 3, .kv_heads = 2, .head_dim = 64 } } };
		struct cache_format f = { .group = cases[i].group, .given = true };

		assert_true(cache_bits(&c, &(struct cache_format){ 0 }) == 0);
		assert_true(format_parse(&f.format, cases[i].format));
		f = cache_use(&c, NULL, &f);
		assert_true(cache_bits(&c, &f) == cases[i].bits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_rounded), cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(overflows_stay), cmocka_unit_test(rows_find_their_place),
		cmocka_unit_test(bits_are_counted),
	};

	threads_init(0);
	stream = random_open(1, "cache");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
