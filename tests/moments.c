/* SPDX-License-Identifier: GPL-3.0-or-later */
/* moments -- second moments from the callback: from a calibration in memory and from its file */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/option.h"
#include "base/random.h"
#include "calib/calibrate.h"
#include "calib/histogram.h"
#include "case.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "num/linalg.h"
#include "transform/quantize.h"

enum { TOKENS = 64 };
static struct method_options options;
static struct plan plan;
static struct selection layers;
static const struct execution as_it_is;

/* Replaces a run of a model: every projection receives random numbers. */
static struct calibration calibrated(const struct part *part, const struct config *c)
{
	static const enum projection_name names[] = {
		PROJECTION_QKV, PROJECTION_OUTPUT, PROJECTION_GATE_UP, PROJECTION_DOWN
	};
	const struct sequence sequence = { .length = TOKENS };
	const struct batch batch = { .rows = TOKENS, .sequences = 1, .sequence = &sequence };
	const struct random_stream stream = random_open(7, "moments");
	struct calibration k = calibrate_begin(part, c, &as_it_is, &layers, true);
	const struct observer observer = calibrate_observer(&k);
	uint64_t drawn = 0;

	for (size_t i = 0; i < 4 * c->blocks; i++) {
		const size_t in = stack_in(c->stack, names[i % 4]);
		float *x = xalloc(TOKENS * in, sizeof *x);

		for (size_t j = 0; j < TOKENS * in; j++)
			x[j] = (float)random_uniform(&stream, drawn++) * (float)(1 + j % 5) - 1;
		observer.on_input(observer.arg, i / 4, names[i % 4], &batch, 0, TOKENS, in, x);
		free(x);
	}
	return k;
}

static char *kept[8];
static size_t keeps;

/* Removes the file at the end only. Else the next file may get the inode of a removed one, and count as an
 * input. */
static void keep(const char *path)
{
	assert_true(keeps < sizeof kept / sizeof *kept);
	kept[keeps++] = xformat("%s", path);
}

static struct part *reopened(char *path, struct output *out)
{
	struct part *part;

	output_end(out);
	output_close(out);
	part = part_open(path, NULL);
	keep(path);
	return part;
}

static struct output *begun(char *path, const char *kind)
{
	struct output *out;

	close(mkstemp(path));
	out = output_open(path, kind);
	output_start(out, 0, 1);
	return out;
}

/* The model's layers, quantized with the moments of the source. */
static struct part *quantized(struct part *model, const struct config *c, struct moments_source source)
{
	char path[] = "/tmp/ptq-moments-XXXXXX";
	struct cache_format kv = { 0 };
	struct quantize q = { .plan = &plan, .layers = &layers, .source = source, .kv = &kv };
	struct report report = { 0 };
	struct filter f = { .part = model, .config = c, .report = &report };

	close(mkstemp(path));
	f.out = output_open(path, "model");
	quantize_check(&q);
	quantize_part(&q, &f);
	report_close(&report);
	output_close(f.out);
	model = part_open(path, "model");
	keep(path);
	return model;
}

static void from_memory_as_from_a_file(void **unused)
{
	const char *folder = getenv("PTQ_REF");
	char *name = xformat("%s/llama-gqa.h5", folder ? folder : "tests/ref");
	char path[] = "/tmp/ptq-moments-XXXXXX";
	struct part *model = part_open(name, "model"), *a, *b;
	struct config c = config_read(model);
	struct calibration k = calibrated(model, &c);
	struct output *out = begun(path, "hessian");
	struct moments_files files = { 0 };
	struct layer_list list = layer_list(model, &c, &layers);

	(void)unused;
	calibrate_write(&k, out, name);
	files.hessian = reopened(path, out);
	a = quantized(model, &c, moments_of_files(&files));
	b = quantized(model, &c, calibrate_source(&k, name));
	assert_int_equal(list.n, 7 * c.blocks);
	for (size_t i = 0; i < list.n; i++) {
		CASE("%s", list.layer[i].path);
		struct layer x = layer_read(a, list.layer[i].path, 0, 0);
		struct layer y = layer_read(b, list.layer[i].path, 0, 0);
		const struct linear *l = &x.linear, *m = &y.linear;
		const struct hessian h = hessian_find(files.hessian, list.layer[i].path, l->in);
		const struct moments_source source = calibrate_source(&k, name);
		const struct second_moments told = source.find(source.arg, &list.layer[i], l->in, true);

		assert_memory_equal(told.hessian, h.sum, l->in * l->in * sizeof(float));
		assert_memory_equal(told.absmax, h.absmax, l->in * sizeof(float));
		assert_memory_equal(l->codes, m->codes, l->out * l->in);
		assert_memory_equal(l->scale, m->scale, l->out * l->groups * sizeof(float));
		assert_memory_equal(l->zero, m->zero, l->out * l->groups);
		assert_true(*l->input.scale == *m->input.scale && *l->scale8 == *m->scale8);
		layer_free(&x), layer_free(&y);
	}
	layer_list_free(&list);
	calibrate_end(&k);
	config_free(&c);
	part_close(a), part_close(b), part_close(files.hessian), part_close(model);
	free(name);
}

/* Sums of files equal one calibration over all tokens. */
static void sums(void **unused)
{
	enum { IN = 3, N = 8 };
	static const float x[2][N][IN] = { { { 1, 2, 3 }, { -4, 5, 6 } }, { { 7, -8, 9 } } };
	struct moments all = moments_make(IN, true), sum = moments_make(IN, true);
	struct moments half[2] = { moments_make(IN, true), moments_make(IN, true) };

	(void)unused;
	moments_add(&all, 2, N, x);
	for (int i = 0; i < 2; i++) {
		CASE("half[%d]", i);
		moments_add(&half[i], 1, N, &x[i]);
		const struct hessian part = moments_hessian(&half[i], "f", "l");

		assert_true(part.in == IN && part.count == N);
		moments_add_hessian(&sum, "f", "l", &part);
		moments_free(&half[i]);
	}
	const struct hessian a = moments_hessian(&all, "f", "l");
	const struct hessian b = moments_hessian(&sum, "f", "l");

	assert_true(a.count == b.count && a.count == 2 * N);
	assert_memory_equal(a.sum, b.sum, IN * IN * sizeof(float));
	assert_memory_equal(a.absmax, b.absmax, IN * sizeof(float));
	assert_memory_equal(a.mean_abs, b.mean_abs, IN * sizeof(float));
	assert_memory_equal(a.fourth, b.fourth, IN * sizeof(double));
	assert_memory_equal(a.histogram, b.histogram, HISTOGRAM_BINS * sizeof(int64_t));
	moments_add(&all, 1, N, x);	/* rounded numbers are computed again */
	const struct hessian more = moments_hessian(&all, "f", "l");

	assert_true(more.count == 3 * N && more.sum[0] == 1 + 16 + 49 + 1 + 16);
	moments_free(&all), moments_free(&sum);
}

/* Modalities of a file, read together, equal the sums over all tokens. */
static void modalities_joined(void **unused)
{
	enum { IN = 3, N = 8, M = 3 };
	static const float x[M + 1][N][IN] = { { { 1, 2, 3 }, { -4, 5, 6 } }, { { 7, -8, 1 }, { 1, 20, 1 } },
		{ { 30, 1, 1 } }, { { 1, 2, 50 } } };
	char path[] = "/tmp/ptq-moments-XXXXXX";
	struct moments all = moments_make(IN, true);
	struct sums each = sums_make(IN, M, true);
	struct output *out = begun(path, "hessian");
	struct part *file;

	(void)unused;
	for (size_t m = 0; m < M; m++)
		moments_add(&each.moments[m], m < M - 1 ? 1 : 2, N, &x[m]);	/* two windows */
	moments_add(&all, M + 1, N, x);
	sums_write(&each, out, "f", "/l");
	sums_write(&each, out, "f", "/m");	/* a link */
	file = reopened(path, out);
	const struct hessian want = moments_hessian(&all, "f", "l"), is = hessian_find(file, "/l", IN);

	assert_int_equal(hessian_modalities(file, "/l"), M);
	assert_memory_equal(hessian_modality(file, "/m", IN, 1).sum, hessian_modality(file, "/l", IN, 1).sum,
		IN * IN * sizeof(float));
	char *same = part_same(file, "/m");

	assert_string_equal(same, "/l");
	free(same);
	assert_true(is.in == IN && is.count == (M + 1) * N);
	assert_memory_equal(is.sum, want.sum, IN * IN * sizeof(float));
	assert_memory_equal(is.absmax, want.absmax, IN * sizeof(float));
	assert_memory_equal(is.fourth, want.fourth, IN * sizeof(double));
	assert_memory_equal(is.histogram, want.histogram, HISTOGRAM_BINS * sizeof(int64_t));
	for (size_t i = 0; i < IN; i++)	/* means are rounded in the file, and twice if they are joined */
		assert_true(fabsf(is.mean_abs[i] - want.mean_abs[i]) <= 4 * 0x1p-24f * want.mean_abs[i]);
	part_close(file);
	sums_free(&each), moments_free(&all);
}

/* Rows of two modalities, in any order, give the sums over each modality's rows. A prior is mixed in while
 * fewer tokens than inputs were seen: S + (n - c)·S̄. */
static void axes_of_sums(void **unused)
{
	enum { IN = 4, ROWS = 6, OWN = 3 };
	const struct sequence one = { .length = ROWS };
	const uint8_t modality[ROWS] = { 0, 1, 1, 0, 1, 0 };
	float x[ROWS][IN], apart[2][ROWS][IN];
	struct sums s = sums_make(IN, 2, true), own = sums_make(IN, 1, true), prior = sums_make(IN, 1, true);
	size_t n[2] = { 0 };

	(void)unused;
	for (int i = 0; i < ROWS; i++) {
		for (int j = 0; j < IN; j++)
			x[i][j] = (float)((5 * i + 3 * j) % 7 - 3);
		memcpy(apart[modality[i]][n[modality[i]]++], x[i], sizeof x[i]);
	}
	sums_add(&s, HALF_NONE, &(struct batch){ .rows = ROWS, .sequences = 1, .sequence = &one,
		.modality = modality }, *x, &(struct workspace){ 0 });
	for (int m = 0; m < 2; m++) {
		CASE("modality %d", m);
		struct moments want = moments_make(IN, true);

		moments_add(&want, 1, n[m], (const float (*)[n[m]][IN])apart[m]);
		assert_int_equal(s.moments[m].count, n[m]);
		assert_memory_equal(s.moments[m].sum, want.sum, IN * IN * sizeof(double));
		assert_memory_equal(s.moments[m].histogram, want.histogram, HISTOGRAM_BINS * sizeof(int64_t));
		moments_free(&want);
	}
	own.prior = &prior;
	sums_add_rows(&own, HALF_NONE, OWN, *x);
	sums_add_rows(&prior, HALF_NONE, ROWS, *x);
	const struct hessian mixed = sums_mixed(&own, "f", "l");

	for (int i = 0; i < IN; i++)	/* whole numbers are exact */
		for (int j = i; j < IN; j++)
			assert_true(mixed.sum[i * IN + j] == (float)(own.moments->sum[i * IN + j] +
				(double)(IN - OWN) / ROWS * prior.moments->sum[i * IN + j]));
	sums_drop(&own);
	sums_add_rows(&own, HALF_NONE, IN - OWN, x[OWN]);
	assert_null(sums_prior(&own));
	assert_true((double)*sums_mixed(&own, "f", "l").sum == *own.moments->sum);
	assert_true(sums_total(&s)->count == ROWS && s.modalities == 1);
	sums_free(&s), sums_free(&own), sums_free(&prior);
}

/* Without products: magnitudes of columns that are not left out, for any cuts of a row into chunks. */
static void columns_left_out(void **unused)
{
	enum { IN = 600, ROWS = 3 };
	static const int32_t out[] = { 0, 255, 256, 300, 599 };
	static float x[1][ROWS][IN];
	int64_t want[HISTOGRAM_BINS] = { 0 };
	struct moments h = moments_make(IN, false);

	(void)unused;
	h.splits = 5, h.split = out;
	for (int t = 0; t < ROWS; t++)
		for (int j = 0, k = 0; j < IN; j++) {
			x[0][t][j] = (float)(1 + (7 * t + j) % 101);
			if (k < 5 && out[k] == j)
				k++;
			else
				histogram_add(1, want, &x[0][t][j]);
		}
	moments_add(&h, 1, ROWS, (const float (*)[ROWS][IN])x);
	assert_null(h.sum);
	assert_memory_equal(h.histogram, want, sizeof want);
	moments_free(&h);
}

int main(void)
{
	static const struct tool tool = { .name = "moments", .operands = "" };
	static char *argv[] = { "moments", "-q", "--group", "16", "--compute", "e4m3fn", NULL };
	const char *order;
	unsigned reorder, key;
	const struct option_row rows[] = {
		{ 0, "order", OPTION_FILE(&order), "FILE", "" }, METHOD_OPTIONS(&options),
		{ 0, "reorder", OPTION_CHOICE(&reorder, order_kinds), NULL, "", .default_value = "none" },
		{ 0, "key", OPTION_CHOICE(&key, order_keys), NULL, "", .default_value = "max" },
		OPTION_LAYERS(&layers), { .type = OPTION_END },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_memory_as_from_a_file), cmocka_unit_test(sums),
		cmocka_unit_test(modalities_joined), cmocka_unit_test(axes_of_sums),
		cmocka_unit_test(columns_left_out),
	};

	option_parse(sizeof argv / sizeof *argv - 1, argv, &tool, rows);
	plan = plan_read(NULL, rows, &options);
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);

	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	while (keeps)
		unlink(kept[--keeps]);
	return failed;
}
