/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantizer -- properties in the table of quantizers against their behaviour */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "num/code_form.h"
#include "num/linalg.h"
#include "transform/layers.h"
#include "transform/quantizer.h"

enum { M = 24, N = 64, LAYERS = 3 };

static float w[LAYERS][M][N], h[2][N][N];	/* h: of channels of similar and of different sizes */
static float cross[2][N][N];	/* Σ z xᵀ with the x of h[0], for other inputs z and for z = x */

static void make(void)
{
	const struct random_stream stream = random_open(1, "quantizer");
	uint64_t k = 0;

	for (size_t i = 0; i < LAYERS * M * N; i++)
		w[i / N / M][i / N % M][i % N] = (float)(random_normal(&stream, k++) * (i % 11 ? 0.1 : 0.4));
	for (size_t b = 0; b < 2; b++)
		for (size_t t = 0; t < 3 * N; t++) {
			const double common = random_normal(&stream, k++);
			double x[N];

			for (size_t i = 0; i < N; i++)
				x[i] = (random_normal(&stream, k++) + common) * (double)(1 + i % (b ? 9 : 2));
			for (size_t i = 0; i < N; i++)
				for (size_t j = 0; j < N; j++)
					h[b][i][j] += (float)(x[i] * x[j]);
			for (size_t i = 0; i < N && !b; i++)
				for (size_t j = 0; j < N; j++)
					cross[0][i][j] += (float)((x[i] + 0.1 * x[(i + 1) % N]) * x[j]);
		}
	memcpy(cross[1], h[0], sizeof *cross);
}

static struct method method_of(const struct quantizer *z)
{
	struct method m = { .quantizer = z, .solver = { .group = 16, .damp = 0.01,
		.compensate = z->branch ? z->branch->compensate : z->needs_hessian ? COMPENSATE_BOTH :
		COMPENSATE_NONE }, .branch = { .rank = 3, .steps = 30, .rate = 2e-3, .every = 10 } };

	assert_true(format_parse(&m.solver.storage, !z->form ? "uint3" : strstr(z->name, "e8p") ? "e8p3" :
		strstr(z->name, "trellis") ? "1mad3-10" : "iq4_nl"));
	return m;
}

/* A layer of method m; main: a main path to keep, or NULL. The order is from the last column to the first. */
static struct quantized *layer(const struct method *m, size_t which, const float *hessian,
	const struct linear *main)
{
	static int32_t order[N];
	struct quantized *t = xalloc(1, sizeof *t);

	for (int32_t i = 0; i < N; i++)
		order[i] = N - 1 - i;
	t->method = m;
	t->layer.path = xformat("/layer");
	t->layer.linear = main ? *main : (struct linear){ .out = M, .in = N, .weight = w[which] };
	t->weight = xalloc(1, sizeof *t->weight);
	*(struct linear *)(uintptr_t)t->weight = (struct linear){ .out = M, .in = N, .weight = w[which] };
	t->main = main;
	t->inputs = (struct second_moments){ .hessian = hessian,
		.cross = hessian && m->quantizer->needs_cross ? cross[0][0] : NULL,
		.order = m->quantizer->takes_order ? order : NULL };
	if (!main) {
		t->codes = solver_codes(&m->solver, M, N);
		layers_codes(&t->codes);
	}
	m->quantizer->begin(t);
	return t;
}

/* In exactly the memory that it requests, which sanitizers check. */
static void run(size_t n, struct quantized *const t[n])
{
	const struct quantizer *z = t[0]->method->quantizer;
	void *workspace = xalloc(z->workspace(n, t), 1);

	z->run(n, t, workspace);
	free(workspace);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(t[i]->status, STATUS_DONE);
		z->view(t[i]);
	}
}

static void release(struct quantized *t)
{
	t->method->quantizer->free(t);
	free(t->codes.memory), free(t->layer.path), free((void *)(uintptr_t)t->weight), free(t);
}

struct result { float w[M][N]; };

/* The effective weight of the layer. */
static struct result result_of(const struct method *m, const float *hessian)
{
	struct quantized *t = layer(m, 0, hessian, NULL);
	struct result y;

	run(1, &t);
	linear_whole(&t->layer.linear, 0, M, y.w);
	release(t);
	return y;
}

static bool same(const struct result *a, const struct result *b)
{
	return !memcmp(a, b, sizeof *a);
}

/* A row that reads cross moments: with those of equal inputs the result is that of GPTQ. */
static void equal_inputs(const struct method *m)
{
	struct method gptq = *m;
	struct quantized *t = layer(m, 0, h[0][0], NULL);
	struct result a, b, c = result_of(m, h[0][0]);

	gptq.quantizer = quantizer_named("gptq");
	b = result_of(&gptq, h[0][0]);
	t->inputs.cross = cross[1][0];
	run(1, &t);
	linear_whole(&t->layer.linear, 0, M, a.w);
	release(t);
	assert_true(same(&a, &b) && !same(&b, &c));
}

/* The row with blocks longer than a row of the layers here. Its functions are those of the one for shorter
 * blocks. */
static bool is_too_long(const struct quantizer *z)
{
	const struct quantizer *like = quantizer_named("gguf-32");
	const bool yes = z->form && z->form->columns > N;

	assert_true(!yes || (z->run == like->run && z->check == like->check && z->view == like->view &&
		z->reads_hessian == like->reads_hessian && !strcmp(z->without_effect.names,
		like->without_effect.names)));
	return yes;
}

static void rows_do_as_they_say(void **unused)
{
	(void)unused;
	for (const struct quantizer *z = quantizers; z->name; z++) {
		CASE("%s", z->name);
		if (is_too_long(z))
			continue;
		const struct method m = method_of(z);
		struct result a, b;
		struct quantized *t = layer(&m, 0, h[0][0], NULL);
		double value[REPORT_COLUMNS], off = 0, all = 0;

		run(1, &t);
		z->values(t, value);
		linear_whole(&t->layer.linear, 0, M, a.w);
		for (size_t i = 0; i < M * N; i++) {
			const double x = (double)w[0][i / N][i % N];

			off += pow(x - (double)a.w[i / N][i % N], 2), all += x * x;
		}
		assert_true(off > 0 && off < 0.2 * all);
		assert_true(value[0] > 0 && value[0] < 0.2);
		assert_true(!!t->layer.linear.branch_a == z->makes_branch);
		for (int k = 0; k < 2; k++)
			assert_true(z->report[k] && z->report[k]->columns <= REPORT_COLUMNS);
		release(t);
		b = result_of(&m, h[1][0]);
		if (same(&a, &b) == z->reads_hessian)
			fail_msg("%s: reads_hessian is wrong", z->name);
		if (!z->needs_hessian)
			result_of(&m, NULL);
		if (z->needs_cross)
			equal_inputs(&m);
		assert_true(z->reads_hessian || !z->needs_hessian);
		assert_ptr_equal(quantizer_named(z->name), z);
	}
	for (size_t i = 0; branch_names[i]; i++)
		assert_true(quantizer_named(branch_names[i]) &&
			quantizer_named(branch_names[i])->makes_branch);
	assert_null(quantizer_named("none"));
}

static const struct quantizer *row_of(const char *storage, enum compensate compensate)
{
	struct solver s = { .compensate = compensate };

	assert_true(format_parse(&s.storage, storage));
	return quantizer_of(&s);
}

/* By the form of the codes, and by whether errors are compensated. */
static void row_of_settings(void **unused)
{
	static const struct code_form other = { .rows = 1 };
	struct solver s = { .compensate = COMPENSATE_BOTH, .storage.form = &other };

	(void)unused;
	assert_string_equal(row_of("int4", COMPENSATE_NONE)->name, "rtn");
	assert_string_equal(row_of("int4", COMPENSATE_BOTH)->name, "gptq");
	assert_string_equal(row_of("nvfp4", COMPENSATE_STORAGE)->name, "gptq");
	assert_null(quantizer_of(&s));
	assert_string_equal(row_of("e8p", COMPENSATE_NONE)->name, "e8p-rtn");
	assert_string_equal(row_of("e8p4", COMPENSATE_BOTH)->name, "e8p");
	assert_string_equal(row_of("q6_k", COMPENSATE_NONE)->name, "gguf-256");
	assert_string_equal(row_of("iq4_nl", COMPENSATE_NONE)->name, "gguf-32");
}

/* The result does not depend on the other layers that are quantized with it. */
static void together(void **unused)
{
	(void)unused;
	for (const struct quantizer *z = quantizers; z->name; z++) {
		CASE("%s", z->name);
		const struct method m = method_of(z);
		struct quantized *t[LAYERS];

		if (z->max_layers < LAYERS)
			continue;
		for (size_t i = 0; i < LAYERS; i++)
			t[i] = layer(&m, i, h[0][0], NULL);
		run(LAYERS, t);
		for (size_t i = 0; i < LAYERS; i++) {
			struct quantized *alone = layer(&m, i, h[0][0], NULL);

			run(1, &alone);
			assert_memory_equal(t[i]->codes.codes, alone->codes.codes, M * N);
			assert_memory_equal(t[i]->codes.scale, alone->codes.scale,
				alone->codes.scales * sizeof(float));
			release(alone);
			release(t[i]);
		}
	}
}

/* Given codes are kept. */
static void main_kept(void **unused)
{
	const struct method rtn = method_of(quantizer_named("rtn"));
	struct quantized *first = layer(&rtn, 0, NULL, NULL);
	char *names = quantizer_keepers();
	size_t rows = 0;

	(void)unused;
	run(1, &first);
	for (const struct quantizer *z = quantizers; z->name; z++) {
		CASE("%s", z->name);
		const struct method m = method_of(z);
		struct quantized *t;

		assert_true(!!strstr(names, z->name) == z->keeps_main);
		if (!z->keeps_main)
			continue;
		t = layer(&m, 0, h[0][0], &first->layer.linear), rows++;
		run(1, &t);
		assert_ptr_equal(t->layer.linear.codes, first->layer.linear.codes);
		assert_true(t->layer.linear.branch_a && !t->codes.codes);
		release(t);
	}
	assert_int_equal(rows, 2);
	release(first);
	free(names);
}

static bool is_unread(const struct quantizer *z, const char *name)
{
	if (z->branch && !strcmp(name, "steps"))
		return z->branch->steps == 1;
	if (z->branch)
		return !z->branch->descends;
	return z->without_effect.names && strstr(z->without_effect.names, name);
}

static void other_damp(struct method *m) { m->solver.damp = 0.3; }
static void other_view(struct method *m) { m->solver.group_view = VIEW_ORIGINAL; }
static void other_groups(struct method *m) { m->solver.static_groups = true; }
static void other_rate(struct method *m) { m->branch.rate = 1e-2; }
static void other_sigma(struct method *m) { m->branch.sigma = 0.1; }
static void other_steps(struct method *m) { m->branch.steps = 1; }

/* An option that a row does not read, by the table, changes nothing; any other option does. */
static void unread(void **unused)
{
	static const struct { const char *name; bool branch; void (*change)(struct method *); } options[] = {
		{ "damp", false, other_damp }, { "group-view", false, other_view },
		{ "static-groups", false, other_groups }, { "lr", true, other_rate },
		{ "init-sigma", true, other_sigma }, { "steps", true, other_steps },
	};

	(void)unused;
	for (const struct quantizer *z = quantizers; z->name; z++) {
		CASE("%s", z->name);
		if (is_too_long(z))
			continue;
		struct method m = method_of(z);
		const struct result before = result_of(&m, h[0][0]);

		for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
			struct result after;

			if (options[i].branch != z->makes_branch)
				continue;
			m = method_of(z);
			options[i].change(&m);
			after = result_of(&m, h[0][0]);
			if (same(&before, &after) != is_unread(z, options[i].name))
				fail_msg("%s: --%s: the table is wrong", z->name, options[i].name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_do_as_they_say), cmocka_unit_test(together),
		cmocka_unit_test(main_kept), cmocka_unit_test(unread),
		cmocka_unit_test(row_of_settings),
	};

	linalg_init();
	make();

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
