/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cuda_kernels -- kernels of lib/cuda against plain loops in double: products of packed codes and of bytes,
 * fast Hadamard products, rounding of inputs
 *
 * The kernels run on the processor (tests/cuda/plain.h). With an argument, a file, they run on its device:
 *	build/tests/cuda_kernels build/cuda.so
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "case.h"
#include "device/device_codes.h"
#include "device/device_open.h"
#include "num/format.h"
#include "quant/pack.h"

/* The error of an addition is at most LOSS times the largest of its numbers. */
#define LOSS 0x1p-24
enum { MARGIN = 3 };			/* unused columns of y */

static const struct device *device;
static struct random_stream noise;
static uint64_t drawn;

static double normal(void)
{
	return random_normal(&noise, drawn++);
}

static size_t below(size_t n)
{
	return (size_t)(random_bits(&noise, drawn++) % n);
}

static float as_bf16(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	u &= 0xffff0000u;
	memcpy(&x, &u, sizeof x);
	return x;
}

static void discard(const void *x)
{
	device_free(device, (void *)(uintptr_t)x);
}

/* ---- products of packed codes ---- */

struct layer {
	size_t out, in, group, groups, rank;
	struct format format;
	uint8_t *code, *zero;		/* zero NULL: none */
	float *scale, *b;
	void *packed;
	size_t bytes;			/* of packed */
};

static double weight(const struct layer *l, size_t row, size_t i)
{
	const size_t g = row * l->groups + (l->group ? i / l->group : 0);

	return ((double)l->format.grid[l->code[row * l->in + i]] - (l->zero ? l->zero[g] : 0)) * l->scale[g];
}

static uint8_t valid_code(const struct format *f)
{
	uint8_t c;

	do
		c = (uint8_t)below((size_t)1 << f->bits);
	while ((c & f->code_mask) > f->code_last);
	return c;
}

static void make_codes(struct layer *l)
{
	const size_t words = pack_words(l->format.bits, l->in);

	l->code = xalloc(l->out * l->in, 1);
	l->bytes = l->out * words * sizeof(uint32_t);
	l->packed = xalloc(l->bytes, 1);
	for (size_t i = 0; i < l->out * l->in; i++)
		l->code[i] = valid_code(&l->format);
	for (size_t o = 0; o < l->out; o++)
		pack_row(l->format.bits, l->in, (uint32_t *)l->packed + o * words, l->code + o * l->in);
}

static struct layer layer_of(const char *format, size_t out, size_t in, size_t group, size_t rank)
{
	struct layer l = { .out = out, .in = in, .group = group, .rank = rank };

	l.groups = group ? ceil_div(in, group) : 1;
	l.scale = xalloc(out * l.groups, sizeof *l.scale);
	for (size_t i = 0; i < out * l.groups; i++)
		l.scale[i] = (float)exp(normal());
	assert_true(format_parse(&l.format, format));
	assert_true(device_codes_fit(&l.format, group));
	make_codes(&l);
	if (l.format.asymmetric) {
		l.zero = xalloc(out * l.groups, 1);
		for (size_t i = 0; i < out * l.groups; i++)
			l.zero[i] = valid_code(&l.format);
	}
	l.b = xalloc(out * rank + 1, sizeof *l.b);
	for (size_t i = 0; i < out * rank; i++)
		l.b[i] = as_bf16((float)normal());
	return l;
}

static void layer_free(struct layer *l)
{
	free(l->code), free(l->zero), free(l->scale), free(l->b), free(l->packed);
}

/* b as numbers of a type. */
static void *branch_of(const struct layer *l, enum device_type type)
{
	const size_t n = l->out * l->rank;
	uint16_t *narrow = xalloc(n + 1, sizeof *narrow);
	void *b;

	for (size_t i = 0; i < n; i++)
		memcpy(narrow + i, (const char *)(l->b + i) + 2, 2);
	b = type == DEVICE_BF16 ? device_copy(device, narrow, n * sizeof *narrow) :
		device_copy(device, l->b, n * sizeof *l->b);
	free(narrow);
	return b;
}

/* y[m][out + MARGIN] of the device. */
static void run(const struct layer *l, size_t m, float *y, const float *x, const float *ax,
	enum device_type type, bool add)
{
	const size_t bytes = m * (l->out + MARGIN) * sizeof *y;
	struct device_packed p = { 0 };
	float *result = device_copy(device, y, bytes);

	device_codes(device, &l->format, &p);
	p.m = m, p.out = l->out, p.in = l->in, p.stride = l->out + MARGIN;
	p.group = l->group;
	p.y = result;
	p.x = device_copy(device, x, m * l->in * sizeof *x);
	p.packed = device_copy(device, l->packed, l->bytes);
	p.scale = device_copy(device, l->scale, l->out * l->groups * sizeof *l->scale);
	p.zero = device_copy(device, l->zero, l->out * l->groups);
	p.add = add;
	p.rank = l->rank;
	p.type = type;
	p.b = l->rank ? branch_of(l, type) : NULL;
	p.ax = l->rank ? device_copy(device, ax, m * l->rank * sizeof *ax) : NULL;
	device->packed(&p);
	device->download(y, result, bytes);
	discard(result), discard(p.x), discard(p.packed), discard(p.scale), discard(p.zero);
	discard(p.b), discard(p.ax), discard(p.table);
}

/*
 * Roundings that a term passes: its product and its scale; the additions to the unit of 32 columns, of the
 * units of a lane, of a warp, and of the warps; to the former y; and those of the branch.
 */
static double additions(const struct layer *l)
{
	return 2 + 32 + (double)ceil_div(l->in, 1024) + 5 + 16 + 1 + (double)ceil_div(l->rank, 32) + 5;
}

static void check_rows(const struct layer *l, size_t m, const float *y, const float *before, const float *x,
	const float *ax, bool add)
{
	const size_t stride = l->out + MARGIN;

	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < stride; o++) {
			double sum = add ? before[t * stride + o] : 0, most = fabs(sum);

			if (o >= l->out) {		/* not touched */
				assert_memory_equal(&y[t * stride + o], &before[t * stride + o], sizeof *y);
				continue;
			}
			for (size_t i = 0; i < l->in; i++) {
				const double v = weight(l, o, i) * x[t * l->in + i];

				sum += v, most += fabs(v);
			}
			for (size_t i = 0; i < l->rank; i++) {
				const double v = (double)l->b[o * l->rank + i] * ax[t * l->rank + i];

				sum += v, most += fabs(v);
			}
			if (!(fabs(y[t * stride + o] - sum) <= additions(l) * LOSS * most))
				fail_msg("row %zu of x, row %zu: %.9g, expected %.9g ± %.2g", t, o,
					y[t * stride + o], sum, additions(l) * LOSS * most);
		}
}

static float *normals(size_t n)
{
	float *x = xalloc(n + 1, sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = (float)normal();
	return x;
}

static void check(const struct layer *l, size_t m, enum device_type type, bool add)
{
	const size_t n = m * (l->out + MARGIN);
	float *x = normals(m * l->in), *ax = normals(m * l->rank), *y = normals(n);
	float *before = xalloc(n, sizeof *before);

	memcpy(before, y, n * sizeof *y);
	run(l, m, y, x, ax, type, add);
	check_rows(l, m, y, before, x, ax, add);
	free(x), free(ax), free(y), free(before);
}

static const char *const formats[] = {
	"int2", "uint2", "e1m0", "nf2", "int3", "uint3", "e1m1", "nf3", "int4", "uint4", "e2m1", "mxfp4",
	"e3m0", "nf4", "int5", "uint5", "e2m2", "e1m3", "e4m0", "nf5", "int6", "uint6", "e3m2", "e5m0", "nf6",
	"int8",	"uint8", "e0m7", "e6m1", "e4m3fn", "e5m2ieee", "nf8",
};
enum { FORMATS = sizeof formats / sizeof *formats };

/*
 * Each row of x has one number other than 0. So y has the errors of the scale and of two additions only, and
 * a wrong or inexact number of a code is visible in the last bits.
 */
static void numbers(void **state)
{
	(void)state;
	for (size_t k = 0; k < FORMATS; k++) {
		struct layer l = layer_of(formats[k], 16, 64, 32, 0);
		float *x = normals(l.in * l.in), *y = xalloc(l.in * (l.out + MARGIN), sizeof *y);

		CASE("%s", formats[k]);
		for (size_t t = 0; t < l.in; t++)
			for (size_t i = 0; i < l.in; i++)
				x[t * l.in + i] *= i == t;
		run(&l, l.in, y, x, NULL, DEVICE_F32, false);
		for (size_t t = 0; t < l.in; t++)
			for (size_t o = 0; o < l.out; o++) {
				const double v = weight(&l, o, t) * x[t * l.in + t];

				if (!(fabs(y[t * (l.out + MARGIN) + o] - v) <= 5 * LOSS * fabs(v)))
					fail_msg("column %zu, row %zu: %.9g, expected %.9g", t, o,
						y[t * (l.out + MARGIN) + o], v);
			}
		free(x), free(y);
		layer_free(&l);
	}
}

/* Every format, groups, rows of x. */
static void products(void **state)
{
	static const size_t group[] = { 0, 32, 64, 128, 256 }, rows[] = { 1, 3, 2, 5, 6 };

	(void)state;
	for (size_t k = 0; k < FORMATS; k++)
		for (size_t i = 0; i < sizeof group / sizeof *group; i++) {
			struct layer l = layer_of(formats[k], 17, 288, group[i], 0);

			CASE("%s, groups of %zu, %zu rows of x", formats[k], group[i], rows[i]);
			check(&l, rows[i], DEVICE_F32, i % 2);
			layer_free(&l);
		}
}

/* Layers that are not whole units, blocks and warps; more units than a block has threads; many rows of x. */
static void sizes(void **state)
{
	static const struct { const char *format; size_t m, out, in, group; } size[] = {
		{ "int4", 1, 1, 1, 0 }, { "int4", 16, 3, 31, 32 }, { "uint4", 17, 16, 33, 64 },
		{ "e2m2", 1, 5, 1300, 128 }, { "uint3", 4, 33, 127, 32 }, { "int8", 3, 15, 129, 128 },
		{ "int4", 1, 1, 8192 + 160, 128 }, { "int4", 1, 17, 11040, 0 }, { "nf4", 35, 2, 1028, 0 },
		{ "uint2", 2, 40, 2048, 64 }, { "e2m2", 16, 16, 640, 640 }, { "int6", 7, 18, 1024, 1024 },
		{ "int8", 2, 3, 8200, 0 }, { "uint4", 1, 2, 16384 + 160, 128 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
		struct layer l = layer_of(size[k].format, size[k].out, size[k].in, size[k].group, 0);

		CASE("%s, %zu x %zu, groups of %zu, %zu rows of x", size[k].format,
			size[k].out, size[k].in, size[k].group, size[k].m);
		check(&l, size[k].m, DEVICE_F32, false);
		layer_free(&l);
	}
}

static void branches(void **state)
{
	static const size_t rank[] = { 1, 31, 64, 128 };

	(void)state;
	for (size_t k = 0; k < sizeof rank / sizeof *rank; k++)
		for (int type = DEVICE_F32; type <= DEVICE_BF16; type++) {
			struct layer l = layer_of("uint4", 19, 256, 128, rank[k]);

			CASE("rank %zu, type %d", rank[k], type);
			check(&l, 1, (enum device_type)type, false);
			check(&l, 18, (enum device_type)type, true);
			layer_free(&l);
		}
}

/* ---- Hadamard matrices ---- */

/* x H/√order by the definition: the sign of H at (i, j) is that of the bits that i and j share. */
static void rotated(void **state)
{
	static const struct { size_t m, n, margin, order; } size[] = {
		{ 1, 1, 0, 1 }, { 2, 6, 1, 2 }, { 3, 12, 0, 4 }, { 2, 40, 5, 8 }, { 2, 48, 0, 16 },
		{ 1, 704, 3, 64 }, { 2, 128, 0, 128 }, { 1, 768, 0, 256 }, { 1, 2048, 7, 1024 },
		{ 1, 6144, 0, 2048 }, { 1, 8192, 0, 8192 }, { 1, 32768, 0, 32768 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
		const size_t m = size[k].m, n = size[k].n, stride = n + size[k].margin, order = size[k].order;
		float *x = normals(m * stride), *y = xalloc(m * n, sizeof *y);
		float *of_x = device_copy(device, x, m * stride * sizeof *x);
		float *of_y = device_memory(device, m * n, sizeof *y);

		CASE("order %zu of %zu", order, n);
		device->rotate(m, n, stride, order, of_y, of_x, NULL);
		device->download(y, of_y, m * n * sizeof *y);
		for (size_t i = 0; i < m * n; i++) {
			const float *from = x + i / n * stride + i % n / order * order;
			double sum = 0, square = 0;

			for (size_t j = 0; j < order; j++) {
				sum += __builtin_parityll(i % n % order & j) ? -(double)from[j] : from[j];
				square += (double)from[j] * from[j];
			}
			/* num/hadamard.h: of d = log₂ order steps, of the scale, of its product with x */
			if (!(fabs(y[i] - sum / sqrt((double)order)) <=
			      (log2((double)order) + 3) * 0x1p-24 * sqrt(square)))
				fail_msg("number %zu: %.9g, expected %.9g", i, y[i],
					sum / sqrt((double)order));
		}
		discard(of_x), discard(of_y);
		free(x), free(y);
	}
}

/* ---- rounding of inputs ---- */

/* Numbers of all magnitudes, and ties: values halfway between two of the format, times the scale. */
static void round_inputs(void **state)
{
	static const char *const names[] = { "int8", "int4", "uint4", "e4m3fn", "e5m2ieee", "e2m1", "e3m2",
		"e0m3", "nf4", "mxfp4" };
	enum { N = 4096 };
	static const float scales[] = { 1, 0.3f, 7e-5f };

	(void)state;
	for (size_t k = 0; k < 2 * sizeof names / sizeof *names; k++)
		for (size_t j = 0; j < 3; j++) {
			struct format f;
			float *x = normals(N), *y = xalloc(N, sizeof *y), *expected = xalloc(N, sizeof *y);

			CASE("%s, ties %s, scale %g", names[k / 2], format_tie_names[k % 2], scales[j]);
			assert_true(format_parse(&f, names[k / 2]));
			format_ties(&f, k % 2);
			for (size_t i = 0; i < N; i++)
				x[i] = scales[j] * (i % 3 ? x[i] * f.max :
					(f.grid[below((size_t)1 << f.bits)] +
					f.grid[below((size_t)1 << f.bits)]) / 2);
			format_round(&f, N, expected, x, scales[j], 0);
			struct device_format of = device_format(&f);
			float *from = device_copy(device, x, N * sizeof *x);

			device->round(&(struct device_rounding){ &of, scales[j], 0 }, 8, N / 8, from, from);
			device->download(y, from, N * sizeof *y);
			for (size_t i = 0; i < N; i++)
				if (!(y[i] == expected[i]))
					fail_msg("%.9g: %.9g, expected %.9g", x[i], y[i], expected[i]);
			discard(from);
			free(x), free(y), free(expected);
		}
}

/* ---- products of bytes ---- */

enum { BYTE_ROWS = 5, BYTE_OUT = 48, BYTES = 272 };
struct bytes {
	enum device_type type;
	struct format format;
	uint8_t x[BYTE_ROWS][BYTES], w[BYTE_OUT][BYTES];
	float *row, *column, *y, *before;	/* y and before: [BYTE_ROWS][BYTE_OUT + MARGIN] */
};

static void fill(const struct bytes *b, size_t n, uint8_t x[n][BYTES])
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < BYTES; k++)
			x[i][k] = b->type == DEVICE_INT8 ? (uint8_t)(below(255) - 127) :
				valid_code(&b->format);
}

static double number(const struct bytes *b, uint8_t code)
{
	return b->type == DEVICE_INT8 ? (int8_t)code : (double)b->format.grid[code];
}

/* Integers are exact, except for the two scales and the sum; FP8 is within the bound of device/device.h. */
static void check_bytes(const struct bytes *b, size_t t, size_t o, bool add)
{
	const size_t at = t * (BYTE_OUT + MARGIN) + o;
	const double scale = o < BYTE_OUT ? (double)b->row[t] * b->column[o] : 0;
	const double former = add || o >= BYTE_OUT ? b->before[at] : 0;
	double sum = 0, most = 0, bound;

	for (size_t k = 0; k < BYTES && o < BYTE_OUT; k++) {
		const double v = number(b, b->x[t][k]) * number(b, b->w[o][k]);

		sum += v, most += fabs(v);
	}
	sum = sum * scale + former;
	bound = 4 * LOSS * (fabs(sum) + fabs(former));
	if (b->type == DEVICE_E4M3)
		bound += 0x1p-13 * most * fabs(scale);
	if (!(fabs(b->y[at] - sum) <= bound))
		fail_msg("row %zu, column %zu: %.9g, expected %.9g +- %.2g", t, o, b->y[at], sum, bound);
}

static void products_of_bytes(void **state)
{
	static const size_t size = BYTE_ROWS * (BYTE_OUT + MARGIN);

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct bytes b = { .type = k / 2 ? DEVICE_E4M3 : DEVICE_INT8 };
		struct device_bytes p = { BYTE_ROWS, BYTE_OUT, BYTES, BYTE_OUT + MARGIN, b.type,
			.add = k % 2 };

		CASE("type %d, add %d", b.type, p.add);
		assert_true(format_parse(&b.format, "e4m3fn"));
		b.row = normals(BYTE_ROWS), b.column = normals(BYTE_OUT);
		b.y = normals(size), b.before = xalloc(size, sizeof *b.before);
		fill(&b, BYTE_ROWS, b.x);
		fill(&b, BYTE_OUT, b.w);
		memcpy(b.before, b.y, size * sizeof *b.y);
		p.y = device_copy(device, b.y, size * sizeof *b.y);
		p.x = device_copy(device, b.x, sizeof b.x);
		p.w = device_copy(device, b.w, sizeof b.w);
		p.row = device_copy(device, b.row, BYTE_ROWS * sizeof *b.row);
		p.column = device_copy(device, b.column, BYTE_OUT * sizeof *b.column);
		device->bytes(&p);
		device->download(b.y, p.y, size * sizeof *b.y);
		for (size_t t = 0; t < BYTE_ROWS; t++)
			for (size_t o = 0; o < BYTE_OUT + MARGIN; o++)
				check_bytes(&b, t, o, p.add);
		discard(p.x), discard(p.w), discard(p.row), discard(p.column), discard(p.y);
		free(b.row), free(b.column), free(b.y), free(b.before);
	}
}

static void copies(void **state)
{
	(void)state;
	for (size_t n = 0; n < 3000; n = n * 2 + 4) {
		float *x = normals(n), *y = xalloc(n + 1, sizeof *y);
		float *of_x = device_copy(device, x, n * sizeof *x);
		float *of_y = device_memory(device, n, sizeof *y);

		CASE("%zu numbers", n);
		device->copy(of_y, of_x, n * sizeof *x);
		device->download(y, of_y, n * sizeof *y);
		assert_memory_equal(y, x, n * sizeof *x);
		discard(of_x), discard(of_y);
		free(x), free(y);
	}
}

/* The clock runs, and does not run backwards. */
static void stopwatch(void **state)
{
	double seconds;

	(void)state;
	device->start(0.01);
	seconds = device->stop();
	assert_true(seconds >= 0 && seconds < 5);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers), cmocka_unit_test(products), cmocka_unit_test(sizes),
		cmocka_unit_test(branches), cmocka_unit_test(rotated),
		cmocka_unit_test(round_inputs), cmocka_unit_test(products_of_bytes),
		cmocka_unit_test(copies), cmocka_unit_test(stopwatch),
	};
	const char *build = getenv("PTQ_BUILD");
	char *path = argc > 1 ? xformat("%s", argv[1]) : xformat("%s/plain.so", build ? build : "./build");

	program = "cuda_kernels";
	if (argc < 2 && access(path, R_OK)) {
		printf("1..0 # SKIP %s is missing: make build/plain.so builds it\n", path);
		return 0;
	}
	device = device_open(path);
	noise = random_open(1, "cuda_kernels");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
