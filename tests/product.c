/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * product -- the table of products: the selected row, and every row that fits against the product in double
 * (product_reference.h), within its bound. Two rows differ by at most the sum of their bounds
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "amx.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "case.h"
#include "num/linalg.h"
#include "product/product.h"
#include "product/product_integer_private.h"
#include "product_reference.h"
#include "quant/pack.h"

static const char *const formats[] = { "int4", "uint4", "e0m3", "e1m2", "e2m1", "mxfp4", "nvfp4",
	"e3m0", "nf4", "int3", "uint3", "int5", "uint5", "e0m4", "e1m3", "e2m2", "e3m1", "e4m0", "nf5" };
enum { FORMATS = sizeof formats / sizeof *formats };

static struct random_stream noise;
static uint64_t drawn;

static float uniform(void)
{
	return (float)random_uniform(&noise, drawn++) * 2 - 1;
}

static size_t below(size_t n)
{
	return (size_t)(random_uniform(&noise, drawn++) * (double)n);
}

/* A packed layer with all codes of the format, some with divided scales; free it with drop(). */
static struct linear layer(const char *format, size_t out, size_t in, long group)
{
	static const float divisor = 37.3f;
	struct linear l = { .out = out, .in = in, .group = group, .groups = linear_groups(in, group),
		.scale_tensor = strcmp(format, "nvfp4") && (out + in) % 5 ? NULL : &divisor };
	size_t words, values = (group < 0 ? 1 : out) * l.groups;
	uint8_t *code, *zero;
	uint32_t *packed;
	float *scale;
	size_t codes;

	assert_true(format_parse(&l.storage, format));
	words = pack_words(l.storage.bits, in);
	codes = (size_t)(1 << l.storage.bits) - (strncmp(format, "int", 3) == 0);
	code = xalloc(in, 1), packed = xalloc(out * words, sizeof *packed);
	scale = xalloc(values, sizeof *scale), zero = xalloc(values, 1);
	for (size_t o = 0; o < out; o++) {
		for (size_t i = 0; i < in; i++)
			code[i] = (uint8_t)(codes > in ? below(codes) : (o + i * 7) % codes);
		pack_row(l.storage.bits, in, packed + o * words, code);
	}
	for (size_t i = 0; i < values; i++) {
		scale[i] = 0.01f * (1.5f + uniform());
		zero[i] = (uint8_t)below(codes);
	}
	l.packed = packed, l.scale = scale, l.zero = l.storage.asymmetric ? zero : NULL;
	if (!l.zero)
		free(zero);
	free(code);
	return l;
}

static void drop(struct linear *l)
{
	free((void *)(uintptr_t)l->packed);
	free((void *)(uintptr_t)l->scale), free((void *)(uintptr_t)l->zero);
}

/* The features of the processor. */
static enum cpu native;
static bool native_tiles, native_pairs, native_half, native_dot;

/* Whether the processor can run kernels for this kind. With AVX-512 in plain C (tests/again.h) it cannot run
 * AVX2. */
static bool runs(enum cpu kind)
{
	return kind <= native && (kind != CPU_AVX2 || cpu_widest >= CPU_AVX2);
}

/* The next kind that this processor can emulate. */
static enum cpu wider(enum cpu kind)
{
	do
		kind++;
	while (kind < native && !runs(kind));
	return kind;
}

static void native_again(void)
{
	cpu = native, cpu_bf16 = native_pairs, cpu_half = native_half, cpu_dot = native_dot;
	cpu_amx = false;
}

/* A product with its memory. */
struct ready { struct product p; void *weight, *workspace; };

/* row NULL: the selected one. */
static struct ready ready(const struct product_row *row, const struct linear *l, enum compute_type type,
	size_t m)
{
	struct ready r = { .p = product_choose(l, type, m) };

	r.p.row = row ? row : r.p.row;
	r.weight = xalloc(product_size(&r.p, l->out), 1);
	r.workspace = xalloc(product_workspace(&r.p, m ? m : MANY), 1);
	product_make(&r.p, 0, l->out, r.weight);
	return r;
}

static void ready_free(struct ready *r)
{
	free(r->weight), free(r->workspace);
}

/* The row's product of these inputs is within its bound of the result of multiply(). */
static void check(const struct product_row *row, const struct linear *l, enum compute_type type, size_t m,
	const float *x, const uint8_t *modality, bool add)
{
	const size_t in = l->in, out = l->out, stride = out + 3;
	struct ready r = ready(row, l, type, m);
	const void *input = product_input(&r.p, m, r.workspace, (const float (*)[in])x, modality);
	float (*y)[stride] = xalloc(m, sizeof *y);

	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < stride; o++)
			y[t][o] = (float)(t + o);
	product_run(&r.p, 0, out, m, stride, y, input, l->bias, add);
	for (size_t t = 0; t < m; t++) {
		for (size_t o = 0; o < out; o++) {
			double start = add ? (double)(t + o) : 0, bias = l->bias ? (double)l->bias[o] : 0;
			double sum = exact.sum[t][o] + start + bias;
			double max = bound(row, (double)in, t, o, fabs(start) + fabs(bias));

			if (!(fabs((double)y[t][o] - sum) <= max))
				fail_msg("%s, %s, %s, cpu %d, %zu rows, %zu columns, group %ld: %g, not %g",
					row->name, compute_types[type], l->storage.name, (int)cpu, m, in,
					l->group, (double)y[t][o], sum);
		}
		for (size_t o = out; o < stride; o++)
			assert_true(y[t][o] == (float)(t + o));
	}
	ready_free(&r);
	free(y);
}

/* ---- rows of packed words: every format, end and group ---- */

static const size_t columns[] = { 1, 31, 33, 64, 128, 129, 300, 1024 };
static const size_t outputs[] = { 1, 7, 19, MAX };
static const long groups[] = { 0, -1, 32, 64, 96, 128, 160, 256 };
enum { COLUMNS = sizeof columns / sizeof *columns, GROUPS = sizeof groups / sizeof *groups };

/* Formats that each row of packed words must support, and the flag of the processor that it needs. */
static const struct { const char *name; size_t formats; const bool *flag; } packed[] = {
	{ "packed-fixed", FORMATS - 5, &native_dot }, { "packed-table-avx512", FORMATS - 3, &native_half },
	{ "packed-integer-avx512", 6, &native_half }, { "packed-half-avx512", 11, &native_half },
	{ "packed-half-avx2", 11, &native_half }, { "packed-integer-avx2", 6, &native_half },
	{ "packed-table-avx2", FORMATS - 3, &native_half }, { "packed-plain", FORMATS, NULL },
};
enum { PACKED = sizeof packed / sizeof *packed };

static void words(void **unused)
{
	static const size_t some[] = { 1, 2, 3, PRODUCT_FEW };
	size_t done[PACKED] = { 0 };
	float *x = xalloc(PRODUCT_FEW * 1024, sizeof *x), bias[MAX] = { 0 };

	(void)unused;
	for (size_t n = 0; n < FORMATS * COLUMNS * GROUPS; n++) {
		CASE("words %zu", n);
		size_t f = n % FORMATS, c = n / FORMATS % COLUMNS, g = n / FORMATS / COLUMNS;
		struct linear l = layer(formats[f], outputs[(c + 3 * g + f) % 4], columns[c], groups[g]);

		l.bias = f % 2 ? NULL : bias;
		for (size_t i = 0; i < PRODUCT_FEW * l.in; i++)
			x[i] = bias[i % MAX] = uniform() * (i % 50 ? 1 : 100);
		for (size_t k = 0; k < 4; k++) {
			enum compute_type type = k % 2 ? COMPUTE_INT16 : COMPUTE_F32;
			size_t m = k / 2 ? some[(c + g + f) % 4] : 1;

			multiply(&l, type, m, x, NULL);
			for (size_t r = 0; r < PACKED; r++)
				if (runs(product_rows[r].cpu) &&
				    product_fits(&product_rows[r], &l, type, m)) {
					done[r]++;
					check(&product_rows[r], &l, type, m, x, NULL, f % 2);
				}
		}
		drop(&l);
	}
	for (size_t r = 0; r < PACKED; r++) {
		CASE("%s", packed[r].name);
		bool has = runs(product_rows[r].cpu) && (!packed[r].flag || *packed[r].flag);

		assert_string_equal(product_rows[r].name, packed[r].name);
		assert_int_equal(done[r], has ? 4 * packed[r].formats * COLUMNS * GROUPS : 0);
	}
	if (native < CPU_AVX512 || !native_half || !native_dot)
		print_message("# SKIP: this processor, or PTQ_CPU, does not have all of "
			"avx2, f16c, avx512, avx512vnni, avx512vbmi\n");
	free(x);
}

/* ---- the selected row, for each processor, type, layer and number of rows ---- */

enum { OUT = 33, IN = 160 };

/* A kind of layer; grid: the kind of values of its words, if products with few rows read the words. */
struct kind {
	const char *name, *storage, *compute, *grid;
	enum half_type plain;
	float saturate;
	bool packed, index, scale8, integers;	/* integers: with scales, also for integer inputs */
	long group;
	bool divided;			/* scales are divided */
};
static const struct kind kinds[] = {
	{ .name = "f32" }, { .name = "f16", .plain = HALF_F16 }, { .name = "bf16", .plain = HALF_BF16 },
	{ .name = "codes", .storage = "uint4", .group = 32, .integers = true },
	{ .name = "codes of a tensor", .storage = "e4m3fn", .group = -1, .divided = true },
	{ .name = "codes of channels", .storage = "e2m2", .integers = true },
	{ .name = "five bits of exponent", .storage = "e5m2", .group = 32 },
	{ .name = "codes of 8 bits", .storage = "uint8", .group = 64, .integers = true },
	{ .name = "dual precision", .storage = "uint4", .compute = "e4m3fn", .group = 32, .divided = true },
	{ .name = "dual, cut between two values", .storage = "uint4", .compute = "e4m3fn", .group = 32,
		.saturate = 100.3f },
	{ .name = "dual, cut at a value", .storage = "uint4", .compute = "e4m3fn", .saturate = 104 },
	{ .name = "dual, of integers", .storage = "uint4", .compute = "int8", .group = 32, .scale8 = true,
		.integers = true },
	{ .name = "dual, of integers out of order", .storage = "e3m2", .compute = "int8", .index = true,
		.group = 32, .saturate = 120, .integers = true },
	{ .name = "dual, of integers that are cut between two", .storage = "int4", .compute = "int8",
		.group = 32, .saturate = 100.3f },
	{ .name = "dual, of small integers", .packed = true, .storage = "uint8", .compute = "int4",
		.scale8 = true, .integers = true },
	{ .name = "packed, dual", .packed = true, .storage = "int4", .compute = "e4m3ieee", .scale8 = true },
	{ .name = "packed, out of order", .packed = true, .storage = "int4", .index = true, .group = 32 },
	{ .name = "packed, groups of half a block", .packed = true, .storage = "e2m2", .group = 16,
		.integers = true },
	{ .name = "packed", .packed = true, .storage = "int3", .group = 32, .grid = "int",
		.integers = true },
	{ .name = "packed", .packed = true, .storage = "uint3", .group = 64, .grid = "uint",
		.integers = true },
	{ .name = "packed", .packed = true, .storage = "nf3", .grid = "quantiles" },
	{ .name = "packed, two bits", .packed = true, .storage = "int2", .group = 32, .integers = true },
	{ .name = "packed", .packed = true, .storage = "int4", .group = 32, .grid = "int",
		.integers = true },
	{ .name = "packed", .packed = true, .storage = "int5", .grid = "int", .integers = true },
	{ .name = "packed", .packed = true, .storage = "uint4", .group = 128, .grid = "uint",
		.integers = true, .divided = true },
	{ .name = "packed", .packed = true, .storage = "uint5", .group = -1, .grid = "uint",
		.integers = true },
	{ .name = "packed", .packed = true, .storage = "e2m1", .group = 96, .grid = "small",
		.integers = true },
	{ .name = "packed", .packed = true, .storage = "e2m2", .grid = "small", .integers = true },
	{ .name = "packed", .packed = true, .storage = "e3m1", .group = 64, .grid = "large" },
	{ .name = "packed", .packed = true, .storage = "e4m0", .group = -1, .grid = "large" },
	{ .name = "packed", .packed = true, .storage = "nf4", .group = 32, .grid = "quantiles" },
	{ .name = "MXFP4", .storage = "mxfp4", .group = 32, .integers = true },
	{ .name = "packed NVFP4", .packed = true, .storage = "nvfp4", .group = 16, .integers = true,
		.divided = true },
	{ .name = "packed", .packed = true, .storage = "nf5", .grid = "quantiles" },
};

/* The row for words of such a grid, by hand: without F16C, with it, and with AVX-512's dot products. */
static const struct { const char *grid, *avx2[2], *avx512[4]; } choices[] = {
	{ "int", { "plain", "integer-avx2" }, { "plain", "table-avx512", "fixed", "fixed" } },
	{ "uint", { "plain", "integer-avx2" }, { "plain", "integer-avx512", "fixed", "fixed" } },
	{ "small", { "plain", "half-avx2" }, { "plain", "table-avx512", "fixed", "fixed" } },
	{ "large", { "plain", "half-avx2" }, { "plain", "table-avx512", "plain", "table-avx512" } },
	{ "quantiles", { "plain", "table-avx2" }, { "plain", "table-avx512", "plain", "table-avx512" } },
};

/* Layers with one group and values that are bf16, as for inputs that are rounded. */
static bool pairs_fit(const struct kind *k, bool rounded)
{
	return rounded && k->storage && fmodf(k->saturate, 8) == 0 &&
		(k->compute || (!k->index && k->group <= 0)) && !(k->grid && !strcmp(k->grid, "quantiles"));
}

/* Whether its codes represent integers that differ by at most 16. */
static bool is_small(const char *storage)
{
	return strstr(" int2 int3 int4 uint3 uint4 ", storage);
}

/* rounded, integers: properties of the inputs. */
static char *expected(const struct kind *k, enum compute_type type, size_t m, bool rounded, bool integers)
{
	const bool words = k->grid && m && m <= 16;
	size_t c = 0;

	/* By bytes or by bf16, from 17 rows on. */
	const bool tiles = cpu_amx && (!m || m > 16);

	if (type == COMPUTE_BF16 && tiles)
		return xformat("bf16-amx");
	if (type == COMPUTE_F32 && tiles && rounded && k->storage && (k->compute || !k->index) &&
	    fmodf(k->saturate, 8) == 0 && !(k->grid && !strcmp(k->grid, "quantiles")))
		return xformat("exact-amx");
	if (type == COMPUTE_F32 && !words && cpu == CPU_AVX512 && pairs_fit(k, rounded) &&
	    !(integers && k->integers && cpu_dot) && cpu_bf16)
		return xformat("exact-pairs");
	if (type == COMPUTE_BF16)
		return xformat("%s", cpu == CPU_AVX512 && cpu_bf16 ? "bf16-pairs" : "bf16-widened");
	if (!words && type == COMPUTE_F32 && integers && k->integers && cpu >= CPU_AVX2)
		return xformat("integer-%s", cpu == CPU_AVX512 && cpu_dot ? "dots" :
			is_small(k->compute ? k->compute : k->storage) ? "quads" : "pairs");
	if (type == COMPUTE_F32 && k->plain && m && m <= 16)
		return xformat("half");
	if (!words)
		return xformat("%s%s", m > 1 && m <= 16 ? "few-" : "", compute_types[type]);
	while (strcmp(choices[c].grid, k->grid))
		c++;
	return xformat("packed-%s", cpu == CPU_PLAIN ? "plain" : cpu == CPU_AVX2 ? choices[c].avx2[cpu_half] :
		choices[c].avx512[cpu_half + 2 * cpu_dot]);
}

/* A layer of the kind in static memory: only one at a time. */
static struct linear layer_of(const struct kind *k)
{
	static float weight[OUT * IN], scale[OUT * IN / 16], scale8[OUT], bias[OUT], divisor = 3.7f;
	static uint16_t half[OUT * IN];
	static uint8_t codes[OUT * IN], zero[OUT * IN / 16];
	static uint32_t packed_codes[OUT * IN];
	static int32_t index[IN];
	struct linear l = { .out = OUT, .in = IN, .bias = drawn % 2 ? bias : NULL, .group = k->group,
		.groups = linear_groups(IN, k->group), .scale8 = scale8, .scales8 = k->scale8 ? OUT : 1,
		.saturate = k->saturate, .scale_tensor = k->divided ? &divisor : NULL };
	size_t count, words_of_row;

	for (size_t i = 0; i < OUT * IN; i++)
		weight[i] = uniform();
	for (size_t o = 0; o < OUT; o++)
		bias[o] = uniform(), scale8[o] = 0.5f + 0.01f * (float)o;
	if (!k->storage) {
		half_narrow(OUT * IN, half, weight, k->plain);
		l.weight = k->plain ? (const void *)half : weight, l.weight_type = k->plain;
		return l;
	}
	assert_true(format_parse(&l.storage, k->storage));
	assert_true(!k->compute || format_parse(&l.compute, k->compute));
	count = (size_t)(1 << l.storage.bits) - (strncmp(k->storage, "int", 3) == 0);
	for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
		scale[i] = (k->compute && *k->compute == 'i' ? 8 : 0.02f) * (1.5f + uniform()),
			zero[i] = (uint8_t)(i * 5 % count);
	for (size_t i = 0; i < OUT * IN; i++)
		codes[i] = (uint8_t)below(count);
	if (!strncmp(k->storage, "e4m3fn", 6))
		for (size_t i = 0; i < OUT * IN; i++)
			codes[i] &= 0xbf;	/* without the NaN of the format */
	for (size_t i = 0; i < IN; i++)
		index[i] = (int32_t)(i * 7 % l.groups);
	words_of_row = pack_words(l.storage.bits, IN);
	for (size_t o = 0; k->packed && o < OUT; o++)
		pack_row(l.storage.bits, IN, packed_codes + o * words_of_row, codes + o * IN);
	l.codes = k->packed ? NULL : codes, l.packed = k->packed ? packed_codes : NULL;
	l.scale = scale, l.zero = l.storage.asymmetric ? zero : NULL, l.group_index = k->index ? index : NULL;
	return l;
}

/* Plain C is slow: two panels of tiles, one of them partial, are enough; and six pieces of AVX-512. */
static size_t max_rows(size_t m)
{
	return cpu_amx || cpu > cpu_widest ? min(m, 48) : m;
}

/* The outputs of a row of x have the same bits in another place of PRODUCT_FEW rows, with other rows, and
 * with fewer rows, but at least PRODUCT_APART. */
static void check_apart(const struct product_row *row, const struct linear *l, enum compute_type type,
	const float *x)
{
	enum { M = PRODUCT_FEW };
	const size_t in = l->in, out = l->out;
	struct ready r = ready(row, l, type, M);
	float (*y)[M][out] = xalloc(2, sizeof *y), (*other)[in] = xalloc(M, sizeof *other);

	for (size_t t = 0; t < M; t += 3)	/* the other rows are 0 */
		memcpy(other[M - 1 - t], x + t * in, sizeof *other);
	for (int i = 0; i < 2; i++) {
		const float (*from)[in] = i ? (const float (*)[in])other : (const float (*)[in])x;
		const void *input = product_input(&r.p, M, r.workspace, from, NULL);

		product_run(&r.p, 0, out, M, out, y[i], input, l->bias, false);
	}
	for (size_t t = 0; t < M; t += 3)
		if (memcmp(y[0][t], y[1][M - 1 - t], sizeof y[0][t]))
			fail_msg("%s, %s, %s, cpu %d, %zu columns: row %zu depends on the other rows",
				row->name, compute_types[type], l->storage.name, (int)cpu, in, t);
	for (size_t m = PRODUCT_APART; m < M; m++) {
		product_run(&r.p, 0, out, m, out, y[1], product_input(&r.p, m, r.workspace,
			(const float (*)[in])x, NULL), l->bias, false);
		if (memcmp(y[0], y[1], m * sizeof y[0][0]))
			fail_msg("%s, %s, %s, cpu %d, %zu columns: not the same with %zu rows",
				row->name, compute_types[type], l->storage.name, (int)cpu, in, m);
	}
	ready_free(&r);
	free(y), free(other);
}

/* All rows that fit, except those in done[cpu], which were checked on such a processor. */
static void check_all(const struct linear *l, enum compute_type type, size_t m, const float *x,
	const uint8_t *modality, unsigned done[CPU_AVX512 + 1])
{
	for (unsigned r = 0; product_rows[r].name; r++)
		if (runs(product_rows[r].cpu) && product_fits(&product_rows[r], l, type, m) &&
		    !(done[cpu] >> r & 1)) {
			check(&product_rows[r], l, type, max_rows(m), x, modality, m % 2);
			done[cpu] |= 1u << r;
		}
}

/* The next kind that this processor can emulate, from the plain one without flags on; false: no more. */
static bool next_processor(int *flags)
{
	do {
		*flags = (*flags + 1) % 16;
		cpu = *flags ? cpu : wider(cpu);
		cpu_bf16 = *flags & 1, cpu_half = *flags & 2, cpu_dot = *flags & 4;
		cpu_amx = *flags & 8;
		/* Vectors have no effect on tiles. */
	} while (cpu_amx > (native_tiles && cpu == native) || cpu_bf16 > native_pairs ||
		cpu_half > native_half || cpu_dot > native_dot);
	return cpu <= native;
}

static void check_kind(const struct kind *k, const struct linear *l, enum compute_type type, const float *x,
	const uint8_t *modality)
{
	static const size_t counts[] = { 1, 16, 17, MANY };
	const bool rounded = l->input.mode != INPUT_AS_IS;
	const bool integers = rounded && strcmp(l->input.format.name, "e4m3fn");
	unsigned done[4][CPU_AVX512 + 1] = { { 0 } };
	int flags = 0;

	multiply(l, type, MANY, x, modality);
	cpu = CPU_PLAIN, cpu_amx = cpu_bf16 = cpu_half = cpu_dot = false;
	do
		for (size_t c = 0; c < 4; c++) {
			char *name = expected(k, type, counts[c], rounded, integers);
			struct product p = product_choose(l, type, counts[c]);

			if (strcmp(p.row->name, name))
				fail_msg("%s %s, %s, %zu rows, cpu %d, flags %d: %s, not %s", k->name,
					l->storage.name, compute_types[type], counts[c], (int)cpu, flags,
					p.row->name, name);
			free(name);
			if (counts[c] == PRODUCT_FEW)
				check_apart(p.row, l, type, x);
			check_all(l, type, counts[c], x, modality, done[c]);
		}
	while (next_processor(&flags));
	native_again();
	/* The product does not depend on the processor, only its selection. */
	for (unsigned r = 0; type == COMPUTE_F32 && pairs_fit(k, rounded) && product_rows[r].name; r++)
		if (!strcmp(product_rows[r].name, "exact-pairs"))
			check(&product_rows[r], l, type, max_rows(MANY), x, modality, true);
	assert_ptr_equal(product_choose(l, type, 0).row, product_choose(l, type, MANY).row);
}

static void choice(void **unused)
{
	static const float act_scale[] = { 0.02f, 0.3f };
	static const char *const inputs[] = { "e4m3fn", "int8", "e2m1" };
	static uint8_t modality[MANY];
	float *x = xalloc(MANY * IN, sizeof *x);

	(void)unused;
	native_tiles = amx_on();
	for (size_t t = 0; t < MANY; t++)
		modality[t] = t / 3 % 2;
	for (size_t i = 0; i < MANY * IN; i++)
		x[i] = uniform() * (i % 50 ? 1 : 10);
	for (size_t n = 0; n < 3 * 4 * 3 * sizeof kinds / sizeof *kinds; n++) {
		CASE("%s, case %zu", kinds[n / 36].name, n);
		struct linear l = layer_of(&kinds[n / 36]);

		l.input.mode = (enum input_mode)(n / 3 % 4);
		if (l.input.mode == INPUT_AS_IS && n / 12 % 3)
			continue;
		l.input.scale = act_scale, l.input.modalities = 2;
		assert_true(format_parse(&l.input.format, inputs[n / 12 % 3]));
		check_kind(&kinds[n / 36], &l, (enum compute_type)(n % 3), x, modality);
	}
	native_tiles = false;
	native_again();
	free(x);
}

/* ---- integers ---- */

/* Integers of a row of rounded numbers, and their weight; for formats with such values only. */
static float integers_of_row(const struct format *f, size_t n, int32_t q[n], const float x[n], float scale)
{
	const float unit = !strcmp(f->name, "e2m2") || !strcmp(f->name, "nvfp4") ? 0.5f : 1;

	for (size_t i = 0; i < n; i++)
		q[i] = (int32_t)rintf(x[i] / (scale * unit));
	return unit;
}

/* Equal bit for bit to sums of integers that are scaled group by group. */
static void check_integers(const char *row, const char *format, long group, const char *input, size_t m)
{
	enum { ALL = 45, WIDTH = 210 };
	struct linear l = layer(format, ALL, WIDTH, group);
	const size_t each = group > 0 ? (size_t)group : WIDTH;
	float *x = xalloc(m * WIDTH, sizeof *x), *v = xalloc(m * WIDTH, sizeof *v), y[ALL], bias[ALL];
	static float all[MANY][ALL];
	int32_t q[WIDTH];
	const void *made;
	struct ready r;

	CASE("%s, %s, group %ld, inputs %s, %zu rows", row, format, group, input, m);
	l.input.mode = INPUT_DYNAMIC_TOKEN;
	assert_true(format_parse(&l.input.format, input));
	for (size_t i = 0; i < m * WIDTH; i++)
		x[i] = uniform() * (i % 30 ? 1 : 8);
	for (size_t o = 0; o < ALL; o++)
		bias[o] = uniform();
	r = ready(NULL, &l, COMPUTE_F32, 0);
	assert_string_equal(r.p.row->name, row);
	made = product_input(&r.p, m, r.workspace, (const float (*)[WIDTH])x, NULL);
	linear_input(&l, m, (float (*)[WIDTH])v, (const float (*)[WIDTH])x, NULL);
	for (size_t t = 0; t < m; t++) {
		const float s = linear_input_scale(&l, x + t * WIDTH, 0);
		const float unit = integers_of_row(&l.input.format, WIDTH, q, v + t * WIDTH, s);

		product_run(&r.p, 0, ALL, m, ALL, all, made, bias, false);
		for (size_t o = 0; o < ALL; o++) {
			const float count = strcmp(format, "e2m2") && strcmp(format, "nvfp4") ? 1 : 0.5f;
			uint8_t code[WIDTH];

			pack_unrow(l.storage.bits, WIDTH, code,
				l.packed + o * pack_words(l.storage.bits, WIDTH));
			y[o] = 0;
			for (size_t i = 0, g = 0; i < WIDTH; g++) {
				const size_t at = group < 0 ? 0 : o * l.groups + g;
				int32_t sum = 0;

				for (; i < WIDTH && i < (g + 1) * each; i++)
					sum += q[i] * ((int32_t)(l.storage.grid[code[i]] / count) -
						(l.zero ? l.zero[at] : 0));
				y[o] = fmaf((float)sum, l.scale[at] / (l.scale_tensor ? *l.scale_tensor : 1) *
					count, y[o]);
			}
			y[o] = y[o] * (s * unit) + bias[o];
		}
		assert_memory_equal(y, all[t], sizeof y);
	}
	x[m * WIDTH - 1] = NAN;		/* affects its own row only */
	made = product_input(&r.p, m, r.workspace, (const float (*)[WIDTH])x, NULL);
	product_run(&r.p, 0, ALL, m, ALL, all, made, NULL, false);
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < ALL; o++)
			assert_true(isnan(all[t][o]) == (t == m - 1));
	free(x), free(v), drop(&l), ready_free(&r);
}

/* The same for codes that are rounded to int8: y_o = s_t s₈_o Σ round((c - z) s) q + b_o, in integers. */
static void check_computed(const char *row, const char *format, long group, size_t m, size_t saturated[2])
{
	enum { ALL = 45, WIDTH = 210 };
	struct linear l = layer(format, ALL, WIDTH, group);
	float *x = xalloc(m * WIDTH, sizeof *x), *v = xalloc(m * WIDTH, sizeof *v), bias[ALL], scale8[ALL];
	float *scale = (float *)(uintptr_t)l.scale, y[ALL], all[MANY][ALL];
	const size_t each = group > 0 ? (size_t)group : WIDTH;
	int32_t q[WIDTH];
	const void *made;
	struct ready r;

	CASE("%s, %s to int8, group %ld, %zu rows", row, format, group, m);
	for (size_t i = 0; i < linear_scales(&l); i++)
		scale[i] *= 9000 * (l.scale_tensor ? *l.scale_tensor : 1) / l.storage.max;
	for (size_t o = 0; o < ALL; o++)
		bias[o] = uniform(), scale8[o] = 0.02f * (1.5f + uniform());
	assert_true(format_parse(&l.compute, "int8") && format_parse(&l.input.format, "int8"));
	l.input.mode = INPUT_DYNAMIC_TOKEN, l.scale8 = scale8, l.scales8 = ALL, l.saturate = m % 2 ? 127 : 0;
	for (size_t i = 0; i < m * WIDTH; i++)
		x[i] = uniform() * (i % 30 ? 1 : 8);
	r = ready(NULL, &l, COMPUTE_F32, 0);
	assert_string_equal(r.p.row->name, row);
	made = product_input(&r.p, m, r.workspace, (const float (*)[WIDTH])x, NULL);
	linear_input(&l, m, (float (*)[WIDTH])v, (const float (*)[WIDTH])x, NULL);
	product_run(&r.p, 0, ALL, m, ALL, all, made, bias, false);
	for (size_t t = 0; t < m; t++) {
		const float s = linear_input_scale(&l, x + t * WIDTH, 0);

		integers_of_row(&l.input.format, WIDTH, q, v + t * WIDTH, s);
		for (size_t o = 0; o < ALL; o++) {
			uint8_t code[WIDTH];
			int32_t sum = 0;

			pack_unrow(l.storage.bits, WIDTH, code,
				l.packed + o * pack_words(l.storage.bits, WIDTH));
			for (size_t i = 0; i < WIDTH; i++) {
				const size_t at = group < 0 ? 0 : o * l.groups + i / each;
				const float z = l.zero ? l.zero[at] : 0;
				const float w = rintf((l.storage.grid[code[i]] - z) *
					(scale[at] / (l.scale_tensor ? *l.scale_tensor : 1)));

				saturated[fabsf(w) > 127]++;
				sum += q[i] * (int32_t)fminf(fmaxf(w, -127), 127);
			}
			y[o] = (float)sum * scale8[o] * s + bias[o];
		}
		assert_memory_equal(y, all[t], sizeof y);
	}
	free(x), free(v), drop(&l), ready_free(&r);
}

static void computed(void **unused)
{
	static const char *const codes[] = { "int4", "uint4", "uint8", "e2m2", "nf4" };
	static const long sizes[] = { 0, -1, 10, 64 };
	enum { ALL = 5 * 4 };
	size_t saturated[2] = { 0 };

	(void)unused;
	cpu_amx = amx_on();
	for (size_t i = 0; cpu_amx && i < ALL; i++)
		check_computed("exact-amx", codes[i % 5], sizes[i / 5], 1 + i % 37, saturated);
	native_again();
	cpu_amx = false;
	for (size_t i = 0; native == CPU_AVX512 && native_dot && i < ALL; i++)
		check_computed("integer-dots", codes[i % 5], sizes[i / 5], 1 + i % 18, saturated);
	cpu_dot = cpu_bf16 = false;
	for (size_t i = 0; runs(CPU_AVX2) && i < ALL; i++)
		check_computed("integer-pairs", codes[i % 5], sizes[i / 5], 1 + i % 18, saturated);
	native_again();
	assert_true(!runs(CPU_AVX2) || (saturated[0] > 1000 && saturated[1] > 1000));
}

static void integers(void **unused)
{
	static const char *const codes[] = { "int4", "uint4", "int8", "uint8", "e2m1", "e2m2", "int3",
		"nvfp4" };
	static const char *const inputs[] = { "int8", "int4", "e2m2" };
	static const long sizes[] = { 0, -1, 16, 64, 1024 };

	(void)unused;
	cpu_amx = amx_on();
	for (size_t i = 0; cpu_amx && i < 8 * 3 * 5; i++)
		check_integers("exact-amx", codes[i % 8], sizes[i / 24], inputs[i / 8 % 3], 1 + i % 37);
	native_again();
	cpu_amx = false;
	if (native < CPU_AVX512 || !native_dot)
		print_message("# SKIP integer-dots: this processor, or PTQ_CPU, has no avx512vnni\n");
	for (size_t i = 0; native == CPU_AVX512 && native_dot && i < 8 * 3 * 5; i++)
		check_integers("integer-dots", codes[i % 8], sizes[i / 24], inputs[i / 8 % 3], 1 + i % 18);
	cpu_dot = cpu_bf16 = false;
	if (!runs(CPU_AVX2))
		print_message("# SKIP integer-quads, -pairs: this processor, or PTQ_CPU, has no avx2\n");
	for (size_t i = 0; runs(CPU_AVX2) && i < 8 * 3 * 5; i++)
		check_integers(is_small(codes[i % 8]) ? "integer-quads" : "integer-pairs", codes[i % 8],
			sizes[i / 24], inputs[i / 8 % 3], 1 + i % 18);
	native_again();
}

/* Inputs as integers, on any processor, also for scales with inverses beyond floats: the nearest integers. */
static void integers_of_inputs(void **unused)
{
	enum { WIDTH = 64, M = 3 };
	static const char *const inputs[] = { "int8", "int4", "e2m2", "e1m6" };
	static const float units[] = { 1, 1, 0.5f, 0x1p-5f };
	static float x[M][WIDTH], scale;
	struct linear l = { .in = WIDTH, .input = { .mode = INPUT_STATIC_TENSOR, .scale = &scale,
		.modalities = 1 } };
	const struct product p = { .l = &l };

	(void)unused;
	for (int n = 0; n < 4 * 240; n++) {
		CASE("%s, n %d", inputs[n % 4], n);
		const double unit = units[n % 4];
		int16_t *pairs;
		int8_t *q;

		assert_true(format_parse(&l.input.format, inputs[n % 4]));
		scale = ldexpf(1 + uniform() / 3, n / 4 - 149);
		for (size_t i = 0; i < M * WIDTH; i++)
			x[i / WIDTH][i % WIDTH] = uniform() * l.input.format.max * 1.1f * scale;
		q = xalloc(integer_input_size(&l, M), 1);
		integer_input(&p, M, q, (const float (*)[WIDTH])x, NULL);
		pairs = xalloc(integer_pairs_input_size(&l, M), 1);
		integer_pairs_input(&p, M, pairs, (const float (*)[WIDTH])x, NULL);
		for (size_t i = 0; i < M * WIDTH; i++) {
			const double quotient = (double)x[i / WIDTH][i % WIDTH] / (double)scale;
			double min_off = INFINITY;

			for (int c = 0; c < 1 << l.input.format.bits; c++)
				min_off = fmin(min_off, fabs((double)l.input.format.grid[c] - quotient));
			assert_true(fabs(q[i] * unit - quotient) == min_off && pairs[i] == q[i]);
		}
		free(q), free(pairs);
	}
}

/* ---- parts of a product, and several products with one input ---- */

/* Rows from a multiple of 32 on, prepared alone or with others, are the same numbers. */
static void parts(void **unused)
{
	enum { ALL = 100, WIDTH = 70, M = 5, FIRST = 64, N = ALL - FIRST };
	float x[M][WIDTH], y[M][ALL], z[M][N];

	(void)unused;
	for (size_t i = 0; i < M * WIDTH; i++)
		x[i / WIDTH][i % WIDTH] = uniform();
	for (int n = 0; n < 6; n++) {
		struct linear l = layer("e2m2", ALL, WIDTH, 32);
		struct ready r = ready(NULL, &l, (enum compute_type)(n / 2), n % 2 ? M : 0);
		const void *input = product_input(&r.p, M, r.workspace, (const float (*)[WIDTH])x, NULL);

		product_run(&r.p, 0, ALL, M, ALL, y, input, NULL, false);
		for (int alone = 0; alone < 2; alone++) {
			CASE("alone %d", alone);
			memset(r.weight, 0, product_size(&r.p, ALL));
			product_make(&r.p, alone ? FIRST : 0, alone ? N : ALL, r.weight);
			product_run(&r.p, FIRST, N, M, N, z, input, NULL, false);
			for (size_t t = 0; t < M; t++)
				for (size_t o = 0; o < N; o++)
					assert_true(fabsf(z[t][o] - y[t][FIRST + o]) < 1e-5f);
		}
		drop(&l);
		ready_free(&r);
	}
}

/* Layers share an input if they prepare it in the same way. They are one product if their weights are rows of
 * float. */
static void sharing(void **unused)
{
	enum { NONE, TENSOR, TOKEN, EACH };	/* of enum input_mode */
	static const float scale[] = { 0.5f, 0.25f, 0.5f, 0.5f };
	static const struct { int a, b; size_t scale, modalities; const char *format; bool same; } cases[] = {
		{ NONE, NONE, 1, 1, "e4m3ieee", true }, { TENSOR, NONE, 0, 1, "e4m3fn", false },
		{ TENSOR, TOKEN, 0, 1, "e4m3fn", false }, { TOKEN, TOKEN, 1, 1, "e4m3fn", true },
		{ TENSOR, TENSOR, 1, 1, "e4m3fn", false }, { TENSOR, TENSOR, 2, 1, "e4m3fn", true },
		{ TENSOR, TENSOR, 2, 1, "e4m3ieee", false }, { EACH, EACH, 2, 2, "e4m3fn", false },
		{ EACH, EACH, 0, 2, "e4m3fn", true },
	};
	struct linear a = { .out = 4, .in = 64 }, b = { .out = 8, .in = 64 };

	(void)unused;
	for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
		CASE("cases[%zu], type %zu", i / 3, i % 3);
		enum compute_type type = (enum compute_type)(i % 3);
		struct product p = product_choose(&a, type, 0), q = product_choose(&b, type, 0);

		a.input.mode = (enum input_mode)cases[i / 3].a;
		b.input.mode = (enum input_mode)cases[i / 3].b;
		a.input.scale = scale, b.input.scale = scale + cases[i / 3].scale;
		a.input.modalities = b.input.modalities = cases[i / 3].modalities;
		assert_true(format_parse(&a.input.format, "e4m3fn"));
		assert_true(format_parse(&b.input.format, cases[i / 3].format));
		assert_true(product_input_same(&p, &q) == cases[i / 3].same);
		assert_true(product_joins(&p, &q) == (cases[i / 3].same && type != COMPUTE_BF16));
	}
}

/* With AMX, inputs are shared if they have the same layout: bytes, with or without sums, and groups. */
static void sharing_by_amx(void **unused)
{
	static const struct { const char *a, *b; long group; bool same; } cases[] = {
		{ "int4", "int8", 64, true }, { "int4", "int8", 32, false }, { "int8", "uint8", 64, false },
		{ "uint8", "uint8", 64, true }, { "uint8", "uint8", 32, false },
		{ "int8", "e4m3fn", 64, false },
	};
	struct linear a = { .out = 4, .in = 128, .group = 64, .input = { .mode = INPUT_DYNAMIC_TOKEN } }, b;

	(void)unused;
	if (!amx_on())
		return;
	assert_true(format_parse(&a.input.format, "int8"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CASE("cases[%zu], type %zu", i / 3, i % 3);
		struct product p, q;

		b = a, b.group = cases[i].group;
		assert_true(format_parse(&a.storage, cases[i].a) && format_parse(&b.storage, cases[i].b));
		p = product_choose(&a, COMPUTE_F32, 0), q = product_choose(&b, COMPUTE_F32, 0);
		assert_string_equal(p.row->name, "exact-amx");
		assert_string_equal(q.row->name, "exact-amx");
		assert_true(product_input_same(&p, &q) == cases[i].same);
	}
	native_again();
}

/* Inputs for words of other bits, or for other integers in fixed point, are not shared. */
static void sharing_of_words(void **unused)
{
	struct linear a = layer("e2m2", 4, 64, 32), b = layer("int5", 4, 64, 32);
	struct linear c = layer("int4", 4, 64, 32);

	(void)unused;
	for (const struct product_row *row = product_rows; row < product_rows + PACKED; row++)
		if (product_fits(row, &a, COMPUTE_F32, 1) && product_fits(row, &b, COMPUTE_F32, 1)) {
			CASE("%s", row->name);
			struct ready p = ready(row, &a, COMPUTE_F32, 1), q = ready(row, &b, COMPUTE_F32, 1);
			struct ready r = ready(row, &c, COMPUTE_F32, 1);
			bool fixed = !strcmp(row->name, "packed-fixed");

			assert_true(product_input_same(&p.p, &q.p) == !fixed);
			assert_false(product_input_same(&q.p, &r.p) || product_joins(&p.p, &p.p));
			ready_free(&p), ready_free(&q), ready_free(&r);
		}
	drop(&a), drop(&b), drop(&c);
}

/* NaN and infinity affect their own row only; zeros give zeros. */
static void edges(void **unused)
{
	enum { ALL = 7, WIDTH = 256, MAX_ROWS = 3 };
	static const float odd[] = { INFINITY, -INFINITY, NAN, 0, 1e-44f };

	(void)unused;
	for (cpu = CPU_PLAIN; cpu <= native; cpu = wider(cpu))
		for (size_t n = 0; n < 2 * MAX_ROWS * sizeof odd / sizeof *odd; n++) {
			CASE("cpu %d, case %zu", (int)cpu, n);
			size_t m = 1 + n / 2 % MAX_ROWS, bad;
			struct linear l = layer("e2m2", ALL, WIDTH, 128);
			struct ready r = ready(NULL, &l, n % 2 ? COMPUTE_INT16 : COMPUTE_F32, m);
			float x[MAX_ROWS][WIDTH] = { { 0 } }, y[MAX_ROWS][ALL], v = odd[n / 2 / MAX_ROWS];
			const void *input;

			x[m - 1][WIDTH - 1] = v, bad = isfinite(v) ? m : m - 1;
			input = product_input(&r.p, m, r.workspace, (const float (*)[WIDTH])x, NULL);
			product_run(&r.p, 0, ALL, m, ALL, y, input, NULL, false);
			for (size_t t = 0; t < m; t++)
				for (size_t o = 0; o < ALL; o++)
					assert_true(t == bad ? !isfinite(y[t][o]) : fabsf(y[t][o]) < 1e-40f);
			drop(&l);
			ready_free(&r);
		}
	native_again();
}

/* Bytes do not depend on the number of threads, with one row and with enough rows that inputs are divided. */
static void many_threads(void **unused)
{
	enum { ALL = 1001, WIDTH = 1024, M = 65 };
	static const char *const some[] = { "int5", "e2m2", "nf4", "e4m0" };
	static const size_t counts[] = { 1, PRODUCT_FEW, M };
	const int before = threads;
	static float numbers[M][WIDTH];
	const float (*x)[WIDTH] = (const float (*)[WIDTH])numbers;
	float (*y[2])[ALL] = { xalloc(M, sizeof **y), xalloc(M, sizeof **y) };

	(void)unused;
	for (size_t i = 0; i < M * WIDTH; i++)
		numbers[i / WIDTH][i % WIDTH] = uniform();
	for (size_t n = 0; n < 3 * 3 * sizeof some / sizeof *some; n++)
		for (cpu = CPU_PLAIN; cpu <= native; cpu = wider(cpu)) {
			CASE("%s, case %zu, cpu %d", some[n / 9], n, (int)cpu);
			struct linear l = layer(some[n / 9], ALL, WIDTH, 256);
			const size_t m = counts[n % 3];

			l.input.mode = n % 2 ? INPUT_DYNAMIC_TOKEN : INPUT_AS_IS;
			assert_true(format_parse(&l.input.format, "int8"));
			for (threads = 1; threads <= 3; threads += 2) {
				struct ready r = ready(NULL, &l, (enum compute_type)(n / 3 % 3), m);
				const void *input = product_input(&r.p, m, r.workspace, x, NULL);

				product_run(&r.p, 0, ALL, m, ALL, y[threads / 2], input, NULL, false);
				ready_free(&r);
			}
			assert_memory_equal(y[0], y[1], m * sizeof **y);
			drop(&l);
		}
	threads = before;
	native_again();
	free(y[0]), free(y[1]);
}

/* ---- added terms: a branch, split columns ---- */

/* A layer of `name` in separate memory: halves, words or codes. */
static struct linear part(const char *name, size_t out, size_t in)
{
	struct linear l = { .out = out, .in = in };
	uint16_t *half;
	float *w;

	if (strcmp(name, "f16") && strcmp(name, "f32"))
		return layer(name, out, in, 32);
	w = xalloc(out * in, sizeof *w), half = xalloc(out * in, sizeof *half);
	for (size_t i = 0; i < out * in; i++)
		w[i] = uniform();
	half_narrow(out * in, half, w, HALF_F16);
	l.weight_type = strcmp(name, "f16") ? HALF_NONE : HALF_F16;
	l.weight = l.weight_type ? (const void *)half : w;
	free(l.weight_type ? (void *)w : half);
	return l;
}

static void part_free(struct linear *l)
{
	free((void *)(uintptr_t)l->weight);
	drop(l);
}

/*
 * For any storage of the three parts and any number of rows, y is the sum of main path, branch and split
 * columns. Float sums of n numbers are off by at most (n + 16) 2⁻²⁴ of their magnitudes: those of A x, times
 * |B|; those of B; those of the main path. Fixed point adds less than as much again.
 */
static void added(enum compute_type type, const char *name, const char *a, const char *b, size_t m,
	size_t splits, bool add)
{
	/* the error that the type adds to a sum of products. bf16: two roundings of each product, of x and of
	 * A x once more; int16: half a step of 1/32639 of the largest of 128 numbers, for x and for A x */
	static const double more[] = { [COMPUTE_BF16] = 4 * 0x1p-8, [COMPUTE_INT16] = 0x1p-9 };
	enum { ALL = 200, WIDTH = 160, RANK = 40 };
	static const int32_t column[] = { 3, 158 };
	struct linear l = part(name, ALL, WIDTH), la = part(a, RANK, WIDTH), lb = part(b, ALL, RANK);
	double *x = xalloc(m * WIDTH, sizeof *x), *main = xalloc(m * ALL, sizeof *main);
	double *main_size = xalloc(m * ALL, sizeof *main_size), *ax = xalloc(m * RANK, sizeof *ax);
	double *ax_size = xalloc(m * RANK, sizeof *ax_size), *y = xalloc(m * ALL, sizeof *y);
	double *size = xalloc(m * ALL, sizeof *size), *none = xalloc(m * ALL, sizeof *none);
	float *input = xalloc(m * WIDTH, sizeof *input), *got = xalloc(m * ALL, sizeof *got), out[ALL * 2];
	struct ready r;

	for (size_t i = 0; i < m * WIDTH; i++)
		x[i] = (double)(input[i] = uniform());
	for (size_t i = 0; i < ALL * 2; i++)
		out[i] = uniform();
	l.rank = RANK, l.branch_a = &la, l.branch_b = &lb;
	l.splits = splits, l.split_index = column, l.split_weight = out;
	r = ready(NULL, &l, type, m);
	for (size_t i = 0; i < m * ALL; i++)
		got[i] = 0.5f;
	product_run(&r.p, 0, ALL, m, ALL, (float (*)[ALL])got,
		product_input(&r.p, m, r.workspace, (const float (*)[WIDTH])input, NULL), NULL, add);
	plain_product(&l, m, main, main_size, x);
	plain_product(&la, m, ax, ax_size, x);
	plain_product(&lb, m, y, none, ax);
	plain_product(&lb, m, none, size, ax_size);
	for (size_t i = 0; i < m * ALL; i++) {
		double sum = main[i] + y[i] + (add ? 0.5 : 0), all = main_size[i] + 2 * size[i] + 1;

		for (size_t k = 0; k < splits; k++)
			sum += x[i / ALL * WIDTH + (size_t)column[k]] * (double)out[i % ALL * splits + k];
		if (!(fabs(sum - (double)got[i]) <= (2 * (WIDTH + 32) * 0x1p-24 + more[type]) * all))
			fail_msg("%s with %s and %s, %zu rows: %g, not %g", name, a, b, m, (double)got[i],
				sum);
	}
	ready_free(&r), part_free(&l), part_free(&la), part_free(&lb);
	free(x), free(main), free(main_size), free(ax), free(ax_size), free(y), free(size), free(none);
	free(input), free(got);
}

static void branches(void **unused)
{
	static const char *const names[] = { "f32", "f16", "uint4", "e2m2", "uint3" };
	static const char *const parts[] = { "f16", "f32", "int4", "nf4" };
	static const size_t counts[] = { 1, 3, PRODUCT_FEW, PRODUCT_FEW + 1, 90 };

	(void)unused;
	for (cpu = CPU_PLAIN; cpu <= native; cpu = wider(cpu))
		for (size_t n = 0; n < 5 * 4 * 5; n++)
			added((enum compute_type)(n % 3), names[n % 5], parts[n / 5 % 4],
				parts[(n + n / 5) % 4], counts[n / 20], n % 4 ? 0 : 2, n % 2);
	native_again();
}

/* Rounding to 16 bits by hand: at most half a step of the chunk, and exact for a multiple of it. */
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
		cmocka_unit_test(words), cmocka_unit_test(choice), cmocka_unit_test(computed),
		cmocka_unit_test(integers),
		cmocka_unit_test(integers_of_inputs), cmocka_unit_test(parts),
		cmocka_unit_test(sharing), cmocka_unit_test(sharing_by_amx),
		cmocka_unit_test(sharing_of_words), cmocka_unit_test(branches), cmocka_unit_test(edges),
		cmocka_unit_test(many_threads), cmocka_unit_test(narrow),
	};

	cpu_amx = false, native = cpu, native_half = cpu_half, native_dot = cpu_dot;
#ifdef __x86_64__
	native_pairs = cpu == CPU_AVX512 && __builtin_cpu_supports("avx512bf16");	/* faster or not */
#endif
	threads_init(0);
	linalg_init();
	noise = random_open(1, "product");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
