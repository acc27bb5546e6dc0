/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product -- every way to multiply packed words, on every kind of processor, against the unpacked product in double */
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
#include "base/thread.h"
#include "quant/pack.h"
#include "quant/product.h"

static const char *const formats[] = { "int4", "uint4", "e0m3", "e1m2", "e2m1", "e3m0", "nf4",
	"int5", "uint5", "e0m4", "e1m3", "e2m2", "e3m1", "e4m0", "nf5" };
enum { FORMATS = sizeof formats / sizeof *formats, MOST = 131 };

static struct random_stream noise;
static uint64_t drawn;

static float uniform(void)
{
	return (float)random_uniform(&noise, drawn++) * 2 - 1;
}

/* A packed layer of codes that the format has, each of them; free with drop(). */
static struct linear layer(const char *format, size_t out, size_t in, long group)
{
	struct linear l = { .out = out, .in = in, .group = group, .groups = linear_groups(in, group) };
	size_t words, values = (group < 0 ? 1 : out) * l.groups;
	uint8_t *code, *zero;
	uint32_t *packed;
	float *scale;
	int codes;

	assert_true(format_parse(&l.storage, format));
	words = pack_words(l.storage.bits, in);
	codes = (1 << l.storage.bits) - (strncmp(format, "int", 3) == 0);
	code = xalloc(in, 1), packed = xalloc(out * words, sizeof *packed);
	scale = xalloc(values, sizeof *scale), zero = xalloc(values, 1);
	for (size_t o = 0; o < out; o++) {
		for (size_t i = 0; i < in; i++)
			code[i] = (uint8_t)((size_t)codes > in ? (size_t)(random_uniform(&noise, drawn++) * codes) : (o + i * 7) % (size_t)codes);
		pack_row(l.storage.bits, in, packed + o * words, code);
	}
	for (size_t i = 0; i < values; i++) {
		scale[i] = 0.01f * (1.5f + uniform());
		zero[i] = (uint8_t)(random_uniform(&noise, drawn++) * codes);
	}
	l.packed = packed, l.scale = scale, l.zero = l.storage.asymmetric ? zero : NULL;
	if (!l.zero)
		free(zero);
	free(code);
	return l;
}

static void drop(struct linear *l)
{
	free((void *)(uintptr_t)l->packed), free((void *)(uintptr_t)l->scale), free((void *)(uintptr_t)l->zero);
}

/* Roundings of a sum of in columns, from product.h: of partial sums, of the parts at the end and of Ŵ. */
static double roundings(const struct product *p)
{
	return (double)p->l->in / (p->way == PRODUCT_PLAIN ? 16 : p->way == PRODUCT_FIXED ? 128 : p->lanes) + 16;
}

static void check(const struct product *p, size_t m, bool add)
{
	const struct linear *l = p->l;
	const size_t in = l->in, out = l->out, stride = out + 3;
	float *x = xalloc(m * in, sizeof *x), *w = xalloc(out * in, sizeof *w), *rounded = xalloc(in, sizeof *x);
	float (*y)[stride] = xalloc(m, sizeof *y), bias[MOST];
	void *input = xalloc(product_input_size(m, in), 1);

	for (size_t i = 0; i < m * in; i++)
		x[i] = uniform() * (i % 50 ? 1 : 100);
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < stride; o++)
			y[t][o] = (float)(t + o);
	for (size_t o = 0; o < out; o++)
		bias[o] = uniform();
	linear_weight(l, 0, out, (float (*)[in])w);
	product_input(p, m, input, (const float (*)[in])x);
	product_run(p, m, stride, y, input, add ? NULL : bias, add);
	for (size_t t = 0; t < m; t++) {
		memcpy(rounded, x + t * in, in * sizeof *x);
		if (p->narrow)
			product_narrow(in, rounded, rounded);
		for (size_t o = 0; o < out; o++) {
			double want = 0, size = 0, fixed = 0, top = 0, start = add ? (double)(t + o) : (double)bias[o];

			for (size_t i = 0; i < in; i++) {
				top = i % PRODUCT_CHUNK ? top : 0;
				for (size_t j = i; !(i % PRODUCT_CHUNK) && j < in && j < i + PRODUCT_CHUNK; j++)
					top = fmax(top, fabs((double)rounded[j]));
				want += (double)w[o * in + i] * rounded[i];
				size += fabs((double)w[o * in + i] * rounded[i]);
				fixed += fabs((double)w[o * in + i]) * top;
			}
			if (!(fabs(y[t][o] - start - want) <= ldexp(roundings(p) * (size + fabs(start)), -24) + ldexp(fixed, -31)))
				fail_msg("%s, cpu %d, way %d, %zu columns in groups of %ld, %zu inputs%s: %g, not %g", l->storage.name, (int)cpu,
					(int)p->way, in, l->group, m, p->narrow ? " of 16 bits" : "", (double)y[t][o] - start, want);
		}
		for (size_t o = out; o < stride; o++)
			assert_true(y[t][o] == (float)(t + o));
	}
	free(x), free(w), free(y), free(rounded), free(input);
}

static const size_t columns[] = { 1, 31, 33, 64, 128, 129, 300, 1024 };
static const size_t rows[] = { 1, 7, 19, MOST };
static const long groups[] = { 0, -1, 32, 64, 96, 128, 160, 256 };

/* Each way, wherever it is one; which formats it must be there for. */
static void ways(void **unused)
{
	const enum cpu native = cpu;
	size_t done[3][PRODUCT_BEST] = { 0 };

	(void)unused;
	for (cpu = CPU_PLAIN; cpu <= native; cpu++)
		for (size_t f = 0; f < FORMATS; f++)
			for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
				for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
					struct linear l = layer(formats[f], rows[(c + 3 * g + f) % 4], columns[c], groups[g]);

					for (int k = 0; k < 2 * PRODUCT_BEST; k++) {
						static const size_t some[] = { 1, 2, 3, PRODUCT_FEW };
						struct product p;

						if (!product_make(&p, &l, (enum product_way)(k / 2), k % 2))
							continue;
						done[cpu][p.way]++;
						check(&p, 1, f % 2);
						check(&p, some[(c + g + (size_t)k) % 4], f % 2);
					}
					drop(&l);
				}
	cpu = native;
	for (int c = 0; c <= (int)native; c++) {
		const size_t one = 2 * sizeof columns / sizeof *columns * (sizeof groups / sizeof *groups);
		const bool vectors = c && cpu_half;

		assert_int_equal(done[c][PRODUCT_PLAIN], FORMATS * one);
		assert_int_equal(done[c][PRODUCT_HALF], vectors * 9 * one);
		assert_int_equal(done[c][PRODUCT_INTEGER], vectors * 4 * one);
		assert_int_equal(done[c][PRODUCT_TABLE], vectors * (FORMATS - 2) * one);
		assert_int_equal(done[c][PRODUCT_FIXED], (c == CPU_AVX512 && cpu_dot) * (FORMATS - 5) * one);
	}
	if (native < CPU_AVX512 || !cpu_half || !cpu_dot)
		print_message("# SKIP: this processor, or PTQ_CPU, has not all of avx2, f16c, avx512, avx512vnni, avx512vbmi\n");
}

/* What is left to the unpacked product. */
static void others(void **unused)
{
	static const char *const wide[] = { "int3", "e2m3", "e4m3fn" };
	const int32_t index[64] = { 0 };
	struct linear l = layer("e2m2", 7, 64, 32);
	struct product p;

	(void)unused;
	assert_true(product_make(&p, &l, PRODUCT_BEST, false));
	l.group_index = index;
	assert_false(product_make(&p, &l, PRODUCT_BEST, false));
	l.group_index = NULL, l.group = 16;
	assert_false(product_make(&p, &l, PRODUCT_BEST, false));
	l.group = 32;
	assert_true(format_parse(&l.compute, "e4m3fn"));
	assert_false(product_make(&p, &l, PRODUCT_BEST, false));
	drop(&l);
	for (int i = 0; i < 3; i++) {
		l = layer(wide[i], 7, 64, 0);
		assert_false(product_make(&p, &l, PRODUCT_BEST, false));
		drop(&l);
	}
}

/* What is not finite shows, in its own column only; zeros are zeros. */
static void edges(void **unused)
{
	enum { IN = 256, OUT = 7, COLUMNS = 3 };
	const enum cpu native = cpu;
	static const float odd[] = { INFINITY, -INFINITY, NAN, 0, 1e-44f };

	(void)unused;
	for (cpu = CPU_PLAIN; cpu <= native; cpu++)
		for (size_t m = 1; m <= COLUMNS; m++)
			for (int k = 0; k < 2 * (int)(sizeof odd / sizeof *odd); k++) {
				struct linear l = layer("e2m2", OUT, IN, 128);
				float x[COLUMNS][IN] = { { 0 } }, y[COLUMNS][OUT];
				void *input = xalloc(product_input_size(m, IN), 1);
				struct product p;

				assert_true(product_make(&p, &l, PRODUCT_BEST, k % 2));
				x[m - 1][IN - 1] = odd[k / 2];
				product_input(&p, m, input, (const float (*)[IN])x);
				product_run(&p, m, OUT, y, input, NULL, false);
				for (size_t t = 0; t < m; t++)
					for (size_t o = 0; o < OUT; o++)
						assert_true(t < m - 1 || isfinite(odd[k / 2]) ? fabsf(y[t][o]) < 1e-40f : !isfinite(y[t][o]));
				drop(&l);
				free(input);
			}
	cpu = native;
}

/* Bytes do not depend on threads, with one column and with so many that inputs are divided, too. */
static void many_threads(void **unused)
{
	enum { IN = 1024, OUT = 1001, COLUMNS = PRODUCT_FEW };
	static const char *const some[] = { "int5", "e2m2", "nf4", "e4m0" };
	const enum cpu native = cpu;
	const int before = threads;
	float *x = xalloc(COLUMNS * IN, sizeof *x);

	(void)unused;
	for (size_t i = 0; i < COLUMNS * IN; i++)
		x[i] = uniform();
	for (cpu = CPU_PLAIN; cpu <= native; cpu++)
		for (size_t f = 0; f < sizeof some / sizeof *some; f++) {
			struct linear l = layer(some[f], OUT, IN, 256);

			for (size_t m = 1; m <= COLUMNS; m += COLUMNS - 1) {
				float (*y[2])[OUT] = { xalloc(m, sizeof **y), xalloc(m, sizeof **y) };
				void *input = xalloc(product_input_size(m, IN), 1);
				struct product p;

				assert_true(product_make(&p, &l, PRODUCT_BEST, false));
				for (threads = 1; threads <= 3; threads += 2) {
					product_input(&p, m, input, (const float (*)[IN])x);
					product_run(&p, m, OUT, y[threads / 2], input, NULL, false);
				}
				assert_memory_equal(y[0], y[1], m * sizeof **y);
				free(input), free(y[0]), free(y[1]);
			}
			drop(&l);
		}
	threads = before;
	cpu = native;
	free(x);
}

/* Rounding to 16 bits by hand: at most half of a step of the chunk's, and exactly where it is a multiple. */
static void narrow(void **unused)
{
	enum { TOP = 127 * 256 + 127 };
	const float step = 2.0f / TOP;
	float x[200], y[200];

	(void)unused;
	for (int i = 0; i < 200; i++)
		x[i] = i < 128 ? (float)(i * 517 % (2 * TOP + 1) - TOP) : uniform();
	x[5] = TOP, x[6] = -TOP, x[130] = -2, x[140] = step * 2.5f;
	product_narrow(200, y, x);
	assert_memory_equal(x, y, 128 * sizeof *x);
	for (int i = 128; i < 200; i++) {
		assert_true(fabsf(x[i] - y[i]) <= step / 2 * 1.001f);
		assert_true(fabsf(y[i] / step - rintf(y[i] / step)) < 0.01f);
	}
	assert_true(y[130] == -2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways), cmocka_unit_test(others), cmocka_unit_test(edges), cmocka_unit_test(many_threads),
		cmocka_unit_test(narrow),
	};

	threads_init(0);
	noise = random_open(1, "product");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
