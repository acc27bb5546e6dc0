/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product -- the table of products: which row is chosen, and every row that fits against the product in double,
 * within its own bound, so that any two of them differ by the sum of their bounds at most
 */
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
#include "num/linalg.h"
#include "quant/pack.h"
#include "quant/product.h"

static const char *const formats[] = { "int4", "uint4", "e0m3", "e1m2", "e2m1", "e3m0", "nf4",
	"int5", "uint5", "e0m4", "e1m3", "e2m2", "e3m1", "e4m0", "nf5" };
enum { FORMATS = sizeof formats / sizeof *formats, MOST = 131, MANY = 512 };

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

/* What the processor has. */
static enum cpu native;
static bool native_pairs, native_half, native_dot;

static void native_again(void)
{
	cpu = native, cpu_bf16 = native_pairs, cpu_half = native_half, cpu_dot = native_dot;
}

/* ---- the product in double ---- */

/* Of rows t and outputs o: Σ ŵ x̂, Σ |ŵ||x̂|, Σ max|x̂|Σ|ŵ| over chunks of 128 columns; the largest |x̂| and |ŵ|. */
static struct { double sum[MANY][MOST], size[MANY][MOST], chunk[MANY][MOST], x, w; } exact;

/* n numbers as the type has them on the side that it rounds. */
static void to_type(enum compute_type type, bool weights, size_t n, float x[n])
{
	uint16_t *half = xalloc(n, sizeof *half);

	if (type == COMPUTE_BF16) {
		half_narrow(n, half, x, HALF_BF16);
		half_widen(n, x, half, HALF_BF16);
	} else if (type == COMPUTE_INT16 && !weights)
		product_narrow(n, x, x);
	free(half);
}

static void multiply(const struct linear *l, enum compute_type type, size_t m, const float *x, const uint8_t *modality)
{
	const size_t in = l->in, out = l->out;
	float *v = xalloc(m * in, sizeof *v), *w = xalloc(out * in, sizeof *w), *top = xalloc(m * in, sizeof *top);

	linear_weight(l, 0, out, (float (*)[in])w);
	linear_input(l, m, (float (*)[in])v, (const float (*)[in])x, modality);
	to_type(type, true, out * in, w);
	exact.x = exact.w = 0;
	for (size_t t = 0; t < m; t++) {
		to_type(type, false, in, v + t * in);
		for (size_t i = 0; i < in; i++) {
			size_t first = i / PRODUCT_COLUMNS * PRODUCT_COLUMNS;

			top[t * in + first] = fmaxf(top[t * in + first], fabsf(v[t * in + i]));
			exact.x = fmax(exact.x, fabs((double)v[t * in + i]));
		}
	}
	for (size_t i = 0; i < out * in; i++)
		exact.w = fmax(exact.w, fabs((double)w[i]));
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < out; o++) {
			double sum = 0, size = 0, chunk = 0;

			for (size_t i = 0; i < in; i++) {
				double a = (double)w[o * in + i], b = (double)v[t * in + i];

				sum += a * b;
				size += fabs(a * b);
				chunk += fabs(a) * (double)top[t * in + i / PRODUCT_COLUMNS * PRODUCT_COLUMNS];
			}
			exact.sum[t][o] = sum, exact.size[t][o] = size, exact.chunk[t][o] = chunk;
		}
	free(v), free(w), free(top);
}

/* The row's product of these inputs lies within its bound of multiply()'s. */
static void check(const struct product_row *row, const struct linear *l, enum compute_type type, size_t m, const float *x,
	const uint8_t *modality, bool add)
{
	const size_t in = l->in, out = l->out, stride = out + 3;
	struct product p = { .row = row, .l = l, .type = type };
	void *weight = xalloc(product_size(&p, out), 1), *workspace = xalloc(product_workspace(&p, m), 1);
	float (*y)[stride] = xalloc(m, sizeof *y);
	const void *input;

	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < stride; o++)
			y[t][o] = (float)(t + o);
	product_make(&p, 0, out, weight);
	input = product_input(&p, m, workspace, (const float (*)[in])x, modality);
	product_run(&p, 0, out, m, stride, y, input, l->bias, add);
	for (size_t t = 0; t < m; t++) {
		for (size_t o = 0; o < out; o++) {
			double more = (add ? (double)(t + o) : 0) + (l->bias ? (double)l->bias[o] : 0);
			double start = (add ? (double)(t + o) : 0) + (l->bias ? fabs((double)l->bias[o]) : 0);
			double bound = (row->error.columns * (double)in + row->error.ends) * 0x1p-24 * (exact.size[t][o] + start) +
				row->error.chunk * exact.chunk[t][o] + row->error.tiny * (double)in * (1 + exact.x + exact.w);

			if (!(fabs((double)y[t][o] - more - exact.sum[t][o]) <= bound))
				fail_msg("%s, %s, %s, cpu %d, %zu columns in groups of %ld, %zu rows: %g, not %g within %g", row->name,
					compute_types[type], l->storage.name, (int)cpu, in, l->group, m, (double)y[t][o] - more,
					exact.sum[t][o], bound);
		}
		for (size_t o = out; o < stride; o++)
			assert_true(y[t][o] == (float)(t + o));
	}
	free(y), free(weight), free(workspace);
}

/* ---- rows of packed words: every format, end and group ---- */

static const size_t columns[] = { 1, 31, 33, 64, 128, 129, 300, 1024 };
static const size_t rows[] = { 1, 7, 19, MOST };
static const long groups[] = { 0, -1, 32, 64, 96, 128, 160, 256 };
enum { CASES = 2 * sizeof columns / sizeof *columns * sizeof groups / sizeof *groups };

/* Formats that each row of packed words must be there for, and the processor's flag that it needs. */
static const struct { const char *name; size_t formats; const bool *flag; } packed[] = {
	{ "packed-fixed", FORMATS - 5, &native_dot }, { "packed-table-avx512", FORMATS - 2, &native_half },
	{ "packed-integer-avx512", 4, &native_half }, { "packed-half-avx512", 9, &native_half },
	{ "packed-half-avx2", 9, &native_half }, { "packed-integer-avx2", 4, &native_half },
	{ "packed-table-avx2", FORMATS - 2, &native_half }, { "packed-plain", FORMATS, NULL },
};
enum { PACKED = sizeof packed / sizeof *packed };

static void words(void **unused)
{
	static const size_t some[] = { 1, 2, 3, PRODUCT_FEW };
	size_t done[PACKED] = { 0 }, before = 0;
	float *x = xalloc(PRODUCT_FEW * 1024, sizeof *x), bias[MOST];

	(void)unused;
	for (size_t o = 0; o < MOST; o++)
		bias[o] = uniform();
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
		for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
			for (size_t f = 0; f < FORMATS; f++) {
				struct linear l = layer(formats[f], rows[(c + 3 * g + f) % 4], columns[c], groups[g]);

				l.bias = f % 2 ? NULL : bias;
				for (size_t i = 0; i < PRODUCT_FEW * l.in; i++)
					x[i] = uniform() * (i % 50 ? 1 : 100);
				for (int type = COMPUTE_F32; type <= COMPUTE_INT16; type += COMPUTE_INT16)
					for (size_t k = 0; k < 2; k++) {
						size_t m = k ? some[(c + g + f) % 4] : 1;

						multiply(&l, (enum compute_type)type, m, x, NULL);
						for (size_t r = 0; r < PACKED; r++) {
							if (!product_fits(&product_rows[r], &l, (enum compute_type)type, m))
								continue;
							done[r] += !k;
							check(&product_rows[r], &l, (enum compute_type)type, m, x, NULL, f % 2);
						}
					}
				drop(&l);
			}
	for (size_t r = 0; r < PACKED; before = done[r++]) {
		assert_string_equal(product_rows[r].name, packed[r].name);
		assert_int_equal(done[r], native >= product_rows[r].cpu && (!packed[r].flag || *packed[r].flag) ?
			packed[r].formats * CASES : 0);
	}
	assert_true(before);
	if (native < CPU_AVX512 || !native_half || !native_dot)
		print_message("# SKIP: this processor, or PTQ_CPU, has not all of avx2, f16c, avx512, avx512vnni, avx512vbmi\n");
	free(x);
}

/* ---- which row, for each processor, type, layer and number of rows ---- */

enum { OUT = 33, IN = 160 };

/* A kind of layer; grid: of values that its words stand for, if products with few rows are made of them. */
struct kind {
	const char *name, *storage, *compute, *grid;
	enum half_type plain;
	bool packed, index, scale8;
	long group;
};
static const struct kind kinds[] = {
	{ .name = "f32" }, { .name = "f16", .plain = HALF_F16 }, { .name = "bf16", .plain = HALF_BF16 },
	{ .name = "codes", .storage = "uint4", .group = 32 },
	{ .name = "codes of a tensor", .storage = "e4m3fn", .group = -1 },
	{ .name = "codes of channels", .storage = "e2m2" },
	{ .name = "dual precision", .storage = "uint4", .compute = "e4m3fn", .group = 32 },
	{ .name = "packed, dual precision", .packed = true, .storage = "int4", .compute = "e4m3ieee", .scale8 = true,
		.group = 96 },
	{ .name = "packed, groups out of order", .packed = true, .storage = "int4", .index = true, .group = 32 },
	{ .name = "packed, groups of half a block", .packed = true, .storage = "e2m2", .group = 16 },
	{ .name = "packed, three bits", .packed = true, .storage = "int3", .group = 32 },
	{ .name = "packed", .packed = true, .storage = "int4", .group = 32, .grid = "int" },
	{ .name = "packed", .packed = true, .storage = "int5", .grid = "int" },
	{ .name = "packed", .packed = true, .storage = "uint4", .group = 128, .grid = "uint" },
	{ .name = "packed", .packed = true, .storage = "uint5", .group = -1, .grid = "uint" },
	{ .name = "packed", .packed = true, .storage = "e2m1", .group = 96, .grid = "small" },
	{ .name = "packed", .packed = true, .storage = "e2m2", .grid = "small" },
	{ .name = "packed", .packed = true, .storage = "e3m1", .group = 64, .grid = "large" },
	{ .name = "packed", .packed = true, .storage = "e4m0", .group = -1, .grid = "large" },
	{ .name = "packed", .packed = true, .storage = "nf4", .group = 32, .grid = "quantiles" },
	{ .name = "packed", .packed = true, .storage = "nf5", .grid = "quantiles" },
};

/* The row for words of such a grid, by hand: without F16C; with it; with AVX-512's dot products too. */
static const struct { const char *grid, *avx2[2], *avx512[4]; } choices[] = {
	{ "int", { "plain", "integer-avx2" }, { "plain", "table-avx512", "fixed", "fixed" } },
	{ "uint", { "plain", "integer-avx2" }, { "plain", "integer-avx512", "fixed", "fixed" } },
	{ "small", { "plain", "half-avx2" }, { "plain", "table-avx512", "fixed", "fixed" } },
	{ "large", { "plain", "half-avx2" }, { "plain", "table-avx512", "plain", "table-avx512" } },
	{ "quantiles", { "plain", "table-avx2" }, { "plain", "table-avx512", "plain", "table-avx512" } },
};

static char *expected(const struct kind *k, enum compute_type type, size_t m)
{
	size_t c = 0;

	if (type == COMPUTE_BF16)
		return xformat("%s", cpu == CPU_AVX512 && cpu_bf16 ? "bf16-pairs" : "bf16-widened");
	if (!k->grid || !m || m > 16)
		return xformat("%s", type == COMPUTE_F32 ? "f32" : "int16");
	while (strcmp(choices[c].grid, k->grid))
		c++;
	return xformat("packed-%s", cpu == CPU_PLAIN ? "plain" : cpu == CPU_AVX2 ? choices[c].avx2[cpu_half] :
		choices[c].avx512[cpu_half + 2 * cpu_dot]);
}

/* A layer of the kind in static memory: one at a time. */
static struct linear layer_of(const struct kind *k)
{
	static float weight[OUT * IN], scale[OUT * IN / 16], scale8[OUT], bias[OUT];
	static uint16_t half[OUT * IN];
	static uint8_t codes[OUT * IN], zero[OUT * IN / 16];
	static uint32_t packed_codes[OUT * IN];
	static int32_t index[IN];
	struct linear l = { .out = OUT, .in = IN, .bias = drawn % 2 ? bias : NULL, .group = k->group,
		.groups = linear_groups(IN, k->group), .scale8 = scale8, .scales8 = k->scale8 ? OUT : 1 };
	size_t count;

	for (size_t i = 0; i < OUT * IN; i++)
		weight[i] = uniform();
	for (size_t o = 0; o < OUT; o++)
		bias[o] = uniform(), scale8[o] = 0.5f + 0.01f * (float)o;
	if (!k->storage) {
		half_narrow(OUT * IN, half, weight, k->plain);
		l.weight = k->plain ? (const void *)half : weight, l.weight_type = k->plain;
		return l;
	}
	assert_true(format_parse(&l.storage, k->storage) && (!k->compute || format_parse(&l.compute, k->compute)));
	count = (size_t)(1 << l.storage.bits) - (strncmp(k->storage, "int", 3) == 0);
	for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
		scale[i] = 0.02f * (1.5f + uniform()), zero[i] = (uint8_t)(i * 5 % count);
	for (size_t i = 0; i < OUT * IN; i++)
		codes[i] = (uint8_t)(random_uniform(&noise, drawn++) * (double)count);
	if (!strncmp(k->storage, "e4m3fn", 6))
		for (size_t i = 0; i < OUT * IN; i++)
			codes[i] &= 0xbf;	/* without its NaN */
	for (size_t i = 0; i < IN; i++)
		index[i] = (int32_t)(i * 7 % l.groups);
	for (size_t o = 0; k->packed && o < OUT; o++)
		pack_row(l.storage.bits, IN, packed_codes + o * pack_words(l.storage.bits, IN), codes + o * IN);
	l.codes = k->packed ? NULL : codes, l.packed = k->packed ? packed_codes : NULL;
	l.scale = scale, l.zero = l.storage.asymmetric ? zero : NULL, l.group_index = k->index ? index : NULL;
	return l;
}

/* All rows that fit, on this processor, that were not looked at on one of its kind. */
static void check_all(const struct linear *l, enum compute_type type, size_t m, const float *x, const uint8_t *modality,
	unsigned done[CPU_AVX512 + 1])
{
	for (unsigned r = 0; product_rows[r].name; r++)
		if (product_fits(&product_rows[r], l, type, m) && !(done[cpu] >> r & 1)) {
			check(&product_rows[r], l, type, m, x, modality, m % 2);
			done[cpu] |= 1u << r;
		}
}

static void choice(void **unused)
{
	static const size_t counts[] = { 1, 16, 17, MANY };
	static const float act_scale[] = { 0.02f, 0.3f };
	static uint8_t modality[MANY];
	float *x = xalloc(MANY * IN, sizeof *x);

	(void)unused;
	for (size_t t = 0; t < MANY; t++)
		modality[t] = t / 3 % 2;
	for (size_t i = 0; i < MANY * IN; i++)
		x[i] = uniform() * (i % 50 ? 1 : 10);
	for (size_t n = 0; n < 4 * 3 * sizeof kinds / sizeof *kinds; n++) {
		const struct kind *k = &kinds[n / 12];
		const enum compute_type type = (enum compute_type)(n % 3);
		struct linear l = layer_of(k);
		unsigned done[4][CPU_AVX512 + 1] = { { 0 } };

		l.input = (struct input_scale){ (enum input_mode)(n / 3 % 4), .scale = act_scale, .modalities = 2 };
		assert_true(format_parse(&l.input.format, "e4m3fn"));
		multiply(&l, type, MANY, x, modality);
		for (cpu = CPU_PLAIN; cpu <= native; cpu++)
			for (int flags = 0; flags < 8; flags++) {
				cpu_bf16 = flags & 1, cpu_half = flags & 2, cpu_dot = flags & 4;
				if (cpu_bf16 > native_pairs || cpu_half > native_half || cpu_dot > native_dot)
					continue;
				for (size_t c = 0; c < 4; c++) {
					char *name = expected(k, type, counts[c]);
					struct product p = product_choose(&l, type, counts[c]);

					if (strcmp(p.row->name, name))
						fail_msg("%s %s, %s, %zu rows, cpu %d, flags %d: %s, not %s", k->name,
							l.storage.name, compute_types[type], counts[c], (int)cpu, flags,
							p.row->name, name);
					free(name);
					check_all(&l, type, counts[c], x, modality, done[c]);
				}
			}
		native_again();
		assert_string_equal(product_choose(&l, type, 0).row->name, product_choose(&l, type, MANY).row->name);
	}
	free(x);
}

/* ---- parts of a product, and products side by side ---- */

/* Rows from a multiple of 32 on, prepared alone or with others, are the same numbers. */
static void parts(void **unused)
{
	enum { ROWS = 100, COLUMNS = 70, M = 5, FIRST = 64, N = ROWS - FIRST };
	float x[M][COLUMNS], y[M][ROWS], z[M][N];

	(void)unused;
	for (size_t i = 0; i < M * COLUMNS; i++)
		x[i / COLUMNS][i % COLUMNS] = uniform();
	for (int type = COMPUTE_F32; type <= COMPUTE_INT16; type++)
		for (size_t m = 0; m <= M; m += M) {
			struct linear l = layer("e2m2", ROWS, COLUMNS, 32);
			struct product p = product_choose(&l, (enum compute_type)type, m);
			void *weight = xalloc(product_size(&p, ROWS), 1), *workspace = xalloc(product_workspace(&p, M), 1);
			const void *input;

			product_make(&p, 0, ROWS, weight);
			input = product_input(&p, M, workspace, (const float (*)[COLUMNS])x, NULL);
			product_run(&p, 0, ROWS, M, ROWS, y, input, NULL, false);
			for (int alone = 0; alone < 2; alone++) {
				if (alone)
					product_make(&p, FIRST, N, weight);
				product_run(&p, FIRST, N, M, N, z, input, NULL, false);
				for (size_t t = 0; t < M; t++)
					for (size_t o = 0; o < N; o++)
						assert_true(fabsf(z[t][o] - y[t][FIRST + o]) <= 1e-5f * fabsf(z[t][o]));
			}
			drop(&l);
			free(weight), free(workspace);
		}
}

/* Layers share an input where they make the same of it, and are one product where their weights are rows of float. */
static void sharing(void **unused)
{
	const float scale[] = { 0.5f, 0.25f, 0.5f, 0.5f };
	struct linear a = { .out = 4, .in = 64 }, b = { .out = 8, .in = 64 }, e = layer("e2m2", 4, 64, 32), i = layer("int5", 4, 64, 32);
	struct product p, q;

	(void)unused;
	for (int type = COMPUTE_F32; type <= COMPUTE_INT16; type++) {
		p = product_choose(&a, (enum compute_type)type, 0), q = product_choose(&b, (enum compute_type)type, 0);
		assert_true(product_input_same(&p, &q) && product_joins(&p, &q) == (type != COMPUTE_BF16));
	}
	p = product_choose(&a, COMPUTE_F32, 0), q = product_choose(&b, COMPUTE_F32, 0);
	assert_true(format_parse(&a.input.format, "e4m3fn") && format_parse(&b.input.format, "e4m3fn"));
	a.input.scale = scale, b.input.scale = scale + 1, a.input.modalities = b.input.modalities = 2;
	a.input.mode = INPUT_STATIC_TENSOR;
	assert_false(product_joins(&p, &q));		/* one rounds */
	b.input.mode = INPUT_DYNAMIC_TOKEN;
	assert_false(product_joins(&p, &q));		/* another mode */
	a.input.mode = INPUT_DYNAMIC_TOKEN;
	assert_true(product_joins(&p, &q));		/* whose scales are the token's */
	a.input.mode = b.input.mode = INPUT_STATIC_TENSOR;
	a.input.modalities = b.input.modalities = 1;
	assert_false(product_joins(&p, &q));		/* under 0.5 and 0.25 */
	b.input.scale = scale + 2;
	assert_true(product_joins(&p, &q));
	a.input.mode = b.input.mode = INPUT_STATIC_MODALITY;
	a.input.modalities = b.input.modalities = 2;
	assert_false(product_joins(&p, &q));		/* 0.5 and 0.25, 0.5 and 0.5 */
	b.input.scale = scale;
	assert_true(product_joins(&p, &q));
	assert_true(format_parse(&b.input.format, "e4m3ieee"));
	assert_false(product_joins(&p, &q));

	for (size_t r = 0; r < PACKED; r++)
		if (product_fits(&product_rows[r], &e, COMPUTE_F32, 1) && product_fits(&product_rows[r], &i, COMPUTE_F32, 1)) {
			_Alignas(64) char w[2][512];
			bool fixed = !strcmp(product_rows[r].name, "packed-fixed");	/* of other integers */

			p = (struct product){ .row = &product_rows[r], .l = &e }, q = (struct product){ .row = &product_rows[r], .l = &i };
			assert_true(product_size(&p, e.out) <= sizeof w[0]);
			product_make(&p, 0, e.out, w[0]), product_make(&q, 0, i.out, w[1]);
			assert_true(product_input_same(&p, &q) == !fixed && product_input_same(&p, &p) && !product_joins(&p, &p));
		}
	drop(&e), drop(&i);
}

/* What is not finite shows, in its own column only; zeros are zeros. */
static void edges(void **unused)
{
	enum { ROWS = 7, COLUMNS = 3 };
	static const float odd[] = { INFINITY, -INFINITY, NAN, 0, 1e-44f };

	(void)unused;
	for (cpu = CPU_PLAIN; cpu <= native; cpu++)
		for (size_t m = 1; m <= COLUMNS; m++)
			for (int k = 0; k < 2 * (int)(sizeof odd / sizeof *odd); k++) {
				struct linear l = layer("e2m2", ROWS, IN, 96);
				float x[COLUMNS][IN] = { { 0 } }, y[COLUMNS][ROWS];
				struct product p = product_choose(&l, k % 2 ? COMPUTE_INT16 : COMPUTE_F32, m);
				void *workspace = xalloc(product_workspace(&p, m), 1), *weight = xalloc(product_size(&p, ROWS), 1);

				x[m - 1][IN - 1] = odd[k / 2];
				product_make(&p, 0, ROWS, weight);
				product_run(&p, 0, ROWS, m, ROWS, y, product_input(&p, m, workspace, (const float (*)[IN])x, NULL), NULL,
					false);
				for (size_t t = 0; t < m; t++)
					for (size_t o = 0; o < ROWS; o++)
						assert_true(t < m - 1 || isfinite(odd[k / 2]) ? fabsf(y[t][o]) < 1e-40f : !isfinite(y[t][o]));
				drop(&l);
				free(workspace), free(weight);
			}
	native_again();
}

/* Bytes do not depend on threads, with one row and with so many that inputs are divided, too. */
static void many_threads(void **unused)
{
	enum { COLUMNS = 1024, ROWS = 1001, M = 65 };
	static const char *const some[] = { "int5", "e2m2", "nf4", "e4m0" };
	static const size_t counts[] = { 1, PRODUCT_FEW, M };
	const int before = threads;
	float *x = xalloc(M * COLUMNS, sizeof *x), (*y[2])[ROWS] = { xalloc(M, sizeof **y), xalloc(M, sizeof **y) };

	(void)unused;
	for (size_t i = 0; i < M * COLUMNS; i++)
		x[i] = uniform();
	for (size_t n = 0; n < 3 * 3 * sizeof some / sizeof *some; n++)
		for (cpu = CPU_PLAIN; cpu <= native; cpu++) {
			struct linear l = layer(some[n / 9], ROWS, COLUMNS, 256);
			const size_t m = counts[n % 3];
			struct product p = product_choose(&l, (enum compute_type)(n / 3 % 3), m);
			void *weight = xalloc(product_size(&p, ROWS), 1), *workspace;

			l.input.mode = n % 2 ? INPUT_DYNAMIC_TOKEN : INPUT_AS_IS;
			assert_true(format_parse(&l.input.format, "int8"));
			workspace = xalloc(product_workspace(&p, m), 1);
			for (threads = 1; threads <= 3; threads += 2) {
				product_make(&p, 0, ROWS, weight);
				product_run(&p, 0, ROWS, m, ROWS, y[threads / 2],
					product_input(&p, m, workspace, (const float (*)[COLUMNS])x, NULL), NULL, false);
			}
			assert_memory_equal(y[0], y[1], m * sizeof **y);
			drop(&l);
			free(weight), free(workspace);
		}
	threads = before;
	native_again();
	free(x), free(y[0]), free(y[1]);
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
		cmocka_unit_test(words), cmocka_unit_test(choice), cmocka_unit_test(parts), cmocka_unit_test(sharing),
		cmocka_unit_test(edges), cmocka_unit_test(many_threads), cmocka_unit_test(narrow),
	};

	native = cpu, native_half = cpu_half, native_dot = cpu_dot;
#ifdef __x86_64__
	native_pairs = cpu == CPU_AVX512 && __builtin_cpu_supports("avx512bf16");	/* be they quicker or not */
#endif
	threads_init(0);
	linalg_init();
	noise = random_open(1, "product");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
