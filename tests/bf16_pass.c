/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16_pass -- the forward pass in bf16 with each kind of kernels, and with plain ones (products by BLAS)
 *
 * A pass consists of products and of operations between them: norms, attention, activations, sums.
 *
 *	Products. Kernels add in different orders, so their products differ in the last places of a float.
 *	product/product.h has a bound of the difference from exact arithmetic. So each product of each pass is
 *	compared with a sum in double. Its terms are the floats of the input and the layer's weights, both
 *	rounded to bf16 here, by another rule than that of num/half.h. The bias is that of the layer.
 *
 *	Between products, no bit depends on the kernels (num/clones.h, attention_tile.c). So a third pass,
 *	also with plain kernels, replaces the output of each product, after its check, by that of the first
 *	pass. Then both passes must give each product the same bits, and end with the same logits.
 *
 * If both hold, the passes are one function except for the last places of products.
 *
 * There is no useful bound for the logits themselves. A float close to the middle of two bf16 numbers may be
 * rounded up in one pass and down in the other. Rounding is monotone, so this happens only if the floats
 * differ. The first such difference is within the bounds of products. But a step of bf16 is 2^16 steps of
 * float, so later numbers differ by much more, and are rounded again. The test prints such flips and the
 * differences of the logits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "amx.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "num/half.h"
#include "num/linalg.h"
#include "product/product.h"
#include "reference.h"

/* ---- a product against its bound ---- */

/* The step of bf16 at x: eight bits, the exponent at least that of 2^-126. */
static double step_at(double x)
{
	int exponent;

	frexp(x, &exponent);
	return ldexp(1, (exponent > -125 ? exponent : -125) - 8);
}

static double to_bf16(double x)
{
	return rint(x / step_at(x)) * step_at(x);
}

/* Rounds all numbers; returns the largest magnitude. */
static double round_all(size_t n, double y[n], const float x[n])
{
	double max = 0;

	for (size_t i = 0; i < n; i++)
		max = fmax(max, fabs(y[i] = to_bf16((double)x[i])));
	return max;
}

/*
 * The distance of outputs first .. first + n - 1 from exact arithmetic, in bounds of the product's row: at
 * most 1 if the product is right. before: [m][n] the old contents of y, if the product is added to y; or
 * NULL.
 */
static double judge(const struct product *p, size_t first, size_t n, size_t m, const float x[m][p->l->in],
	size_t stride, const float y[m][stride], const float *before)
{
	const struct linear *l = p->l;
	const size_t in = l->in;
	float (*w)[in] = xalloc(n * in, sizeof **w), (*rounded)[in] = xalloc(m * in, sizeof **rounded);
	double (*a)[in] = xalloc(m * in, sizeof **a), (*b)[in] = xalloc(n * in, sizeof **b), tiny, worst = 0;

	linear_weight(l, first, n, w);
	linear_input(l, m, rounded, x, NULL);
	tiny = 1 + round_all(m * in, a[0], rounded[0]);
	tiny += round_all(n * in, b[0], w[0]);
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < n; o++) {
			const double bias = l->bias ? (double)l->bias[first + o] : 0;
			const double old = before ? (double)before[t * n + o] : 0;
			double sum = bias + old, size = fabs(bias) + fabs(old), bound, off;

			for (size_t i = 0; i < in; i++) {
				sum += a[t][i] * b[o][i];
				size += fabs(a[t][i] * b[o][i]);
			}
			bound = (p->row->error.columns * (double)in + p->row->error.ends) * 0x1p-24 * size +
				p->row->error.tiny * (double)in * tiny;
			off = fabs((double)y[t][o] - sum);
			if (!(off <= worst * bound))
				worst = off < INFINITY && bound > 0 ? off / bound : INFINITY;
		}
	free(w), free(rounded), free(a), free(b);
	return worst;
}

/* Products are rounded once to bf16, each by itself, for layers of every kind. */
static void bf16_products_of_layers(void **unused)
{
	enum { OUT = 75, IN = 67, M = 40, GROUPS = 5 };
	static float weight[OUT * IN], x[M][IN], y[M][OUT], scale[OUT * GROUPS], bias[OUT];
	static uint8_t codes[OUT * IN], zero[OUT * GROUPS];
	static uint16_t half[OUT * IN];
	const struct random_stream stream = random_open(1, "bf16_pass");
	uint64_t drawn = 0;

	(void)unused;
	for (int i = 0; i < OUT * IN; i++)
		weight[i] = (float)(4 * random_uniform(&stream, drawn++) - 2);
	for (int i = 0; i < M * IN; i++)
		x[i / IN][i % IN] = (float)(4 * random_uniform(&stream, drawn++) - 2);
	for (int i = 0; i < OUT; i++)
		bias[i] = (float)(4 * random_uniform(&stream, drawn++) - 2);
	half_narrow(OUT * IN, half, weight, HALF_BF16);
	for (int i = 0; i < OUT * IN; i++)
		codes[i] = (uint8_t)(random_bits(&stream, drawn++) % 16);
	for (int i = 0; i < OUT * GROUPS; i++)
		scale[i] = 0.013f * (float)(i + 1), zero[i] = (uint8_t)(i % 16);
	for (int how = 0; how < 5; how++) {	/* f32, bf16, f16, quantized, quantized with rounded inputs */
		CASE("how %d", how);
		struct linear l = { .out = OUT, .in = IN, .bias = bias, .weight = how ? half : (void *)weight,
			.weight_type = how == 1 ? HALF_BF16 : how == 2 ? HALF_F16 : HALF_NONE };
		struct product p;
		void *packed, *input;

		if (how == 2)
			half_narrow(OUT * IN, half, weight, HALF_F16);
		if (how >= 3) {
			l = (struct linear){ .out = OUT, .in = IN, .bias = bias, .codes = codes,
				.scale = scale, .zero = zero, .group = 16, .groups = GROUPS };
			assert_true(format_parse(&l.storage, "uint4") &&
				format_parse(&l.input.format, "e4m3fn"));
			l.input.mode = how == 4 ? INPUT_DYNAMIC_TOKEN : INPUT_AS_IS;
		}
		p = product_choose(&l, COMPUTE_BF16, M);
		packed = xalloc(product_size(&p, OUT), 1), input = xalloc(product_workspace(&p, M), 1);
		product_make(&p, 0, OUT, packed);
		product_run(&p, 0, OUT, M, OUT, y,
			product_input(&p, M, input, (const float (*)[IN])x, NULL), bias, false);
		assert_true(judge(&p, 0, OUT, M, (const float (*)[IN])x, OUT, (const float (*)[OUT])y, NULL)
			<= 1);
		free(packed), free(input);
	}
}

/* ---- passes ---- */

enum { CALLS = 1024 };			/* max products of a pass */

struct matrix { size_t rows, columns; float *x; };

/* Inputs of products before rounding, and outputs, recorded in order by one thread. */
struct pass {
	const struct pass *leader;	/* the pass whose outputs replace its own, or NULL */
	size_t inputs, outputs;
	struct matrix input[CALLS], output[CALLS];
	const void *prepared;		/* of the last input */
	const char *row;		/* of the last product */
	double worst;			/* of the products, in bounds */
	float *logits;
};
static struct pass own, plain, guided;
static struct pass *running;		/* NULL: not recording */
static struct { enum cpu kind; bool pairs, tiles; } native;

static struct matrix copy(size_t rows, size_t columns, size_t stride, const float x[rows][stride])
{
	struct matrix y = { rows, columns, xalloc(rows * columns, sizeof *y.x) };

	for (size_t i = 0; i < rows; i++)
		memcpy(y.x + i * columns, x[i], columns * sizeof *y.x);
	return y;
}

static bool same_shape(const struct matrix *a, const struct matrix *b)
{
	return a->rows == b->rows && a->columns == b->columns;
}

static bool same_bits(const struct matrix *a, const struct matrix *b)
{
	return same_shape(a, b) && !memcmp(a->x, b->x, a->rows * a->columns * sizeof *a->x);
}

/* The linker calls these before the functions of other files (ld --wrap). */
const void *__real_product_input(const struct product *p, size_t m, void *workspace,
	const float x[m][p->l->in], const uint8_t *modality);
const void *__wrap_product_input(const struct product *p, size_t m, void *workspace,
	const float x[m][p->l->in], const uint8_t *modality);
void __real_product_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);
void __wrap_product_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add);

const void *__wrap_product_input(const struct product *p, size_t m, void *workspace,
	const float x[m][p->l->in], const uint8_t *modality)
{
	struct pass *r = running;

	if (!r)
		return __real_product_input(p, m, workspace, x, modality);
	assert_true(r->inputs < CALLS);
	r->input[r->inputs++] = copy(m, p->l->in, p->l->in, x);
	return r->prepared = __real_product_input(p, m, workspace, x, modality);
}

void __wrap_product_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	struct matrix before = { 0 }, *x, *now;
	struct pass *r = running;

	if (!r) {
		__real_product_run(p, first, n, m, stride, y, input, bias, add);
		return;
	}
	assert_true(r->inputs && r->outputs < CALLS);
	x = &r->input[r->inputs - 1], now = &r->output[r->outputs];
	assert_true(p->type == COMPUTE_BF16 && input == r->prepared);
	assert_true(x->rows == m && x->columns == p->l->in);
	if (add)
		before = copy(m, n, stride, (const float (*)[stride])y);
	__real_product_run(p, first, n, m, stride, y, input, bias, add);
	r->worst = fmax(r->worst, judge(p, first, n, m, (const float (*)[x->columns])x->x, stride,
		(const float (*)[stride])y, before.x));
	free(before.x);
	if (r->leader) {
		const struct matrix *by = &r->leader->output[r->outputs];

		assert_true(r->outputs < r->leader->outputs && by->rows == m && by->columns == n);
		for (size_t t = 0; t < m; t++)
			memcpy(y[t], by->x + t * n, n * sizeof *y[t]);
	}
	*now = copy(m, n, stride, (const float (*)[stride])y);
	r->outputs++;
	r->row = p->row->name;
}

static void run_pass(struct pass *r, struct reference *of, const struct pass *leader)
{
	r->leader = leader;
	running = r;
	r->logits = all_logits(of, SIZE_MAX);
	running = NULL;
	assert_true(r->inputs && r->outputs);
}

static void clear(struct pass *r)
{
	for (size_t i = 0; i < r->inputs; i++)
		free(r->input[i].x);
	for (size_t i = 0; i < r->outputs; i++)
		free(r->output[i].x);
	free(r->logits);
	*r = (struct pass){ 0 };
}

/* Counts inputs that two passes round to different numbers, and the steps between them. */
struct flips { size_t n, of; double steps; bool parted; };

/* Up to the first expert that receives other tokens: after it, inputs belong to other tokens. */
static struct flips count_flips(const struct pass *a, const struct pass *b)
{
	struct flips y = { 0 };

	for (size_t k = 0; k < a->inputs; k++) {
		const struct matrix *x = &a->input[k], *z = &b->input[k];

		y.parted = k >= b->inputs || !same_shape(x, z);
		if (y.parted)
			break;
		for (size_t i = 0; i < x->rows * x->columns; i++) {
			const double u = to_bf16((double)x->x[i]), v = to_bf16((double)z->x[i]);

			y.n += u != v;
			y.of++;
			y.steps = fmax(y.steps, fabs(u - v) / step_at(fmax(fabs(u), fabs(v))));
		}
	}
	return y;
}

/* Restores the kernels of the processor after another test, also after one that failed. */
static int fresh(void **unused)
{
	(void)unused;
	cpu = native.kind, cpu_bf16 = native.pairs, cpu_amx = native.tiles;
	running = NULL;
	clear(&own), clear(&plain), clear(&guided);
	return 0;
}

/* With the current kernels. */
static void run_model(const char *name, struct reference *r)
{
	const enum cpu kind = cpu;
	const bool pairs = cpu_bf16, tiles = cpu_amx;
	const size_t n = r->rows * r->config.vocab;
	struct flips flips;
	double off;

	r->execution.compute_type = COMPUTE_BF16;
	run_pass(&own, r, NULL);
	cpu = CPU_PLAIN, cpu_bf16 = cpu_amx = false;
	run_pass(&plain, r, NULL);
	run_pass(&guided, r, &own);
	cpu = kind, cpu_bf16 = pairs, cpu_amx = tiles;

	flips = count_flips(&own, &plain);
	off = difference(n, own.logits, r->logits);
	print_message("# %-16s bf16: %zu of %zu inputs differ%s, at most %.0f units; logits apart by %.2g, "
		"from float by %.2g\n", name, flips.n, flips.of,
		flips.parted ? " before experts get other tokens" : "", flips.steps,
		difference(n, own.logits, plain.logits), off);
	print_message("# %-16s products off by %.2g (%s) and %.2g (%s) of their bounds\n", name, own.worst,
		own.row, plain.worst, plain.row);
	assert_true(own.worst <= 1 && plain.worst <= 1 && guided.worst <= 1);
	assert_true(guided.inputs == own.inputs && guided.outputs == own.outputs);
	for (size_t k = 0; k < own.inputs; k++)
		assert_true(same_bits(&own.input[k], &guided.input[k]));
	assert_memory_equal(own.logits, guided.logits, n * sizeof *own.logits);
	assert_true(off > 1e-4);	/* the float pass is closer: tests/forward.c */
	clear(&own), clear(&plain), clear(&guided);
}

static void run_models(void)
{
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);

		run_model(models[i], &r);
		close_reference(&r);
	}
}

static void passes(void **unused)
{
	(void)unused;
	run_models();
}

static void passes_by_floats(void **unused)
{
	(void)unused;
	if (cpu < CPU_AVX512) {
		print_message("# SKIP fused products of floats: this processor, or PTQ_CPU, has no "
			"AVX-512\n");
		return;
	}
	cpu_bf16 = cpu_amx = false;
	run_models();
}

static void passes_by_tiles(void **unused)
{
	(void)unused;
	if (amx_on())
		run_models();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bf16_products_of_layers),
		cmocka_unit_test_setup(passes, fresh),
		cmocka_unit_test_setup(passes_by_floats, fresh),
		cmocka_unit_test_setup(passes_by_tiles, fresh),
	};

	native.kind = cpu, native.pairs = cpu_bf16, native.tiles = cpu_amx;
	threads_init(1);
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
