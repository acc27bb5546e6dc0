/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vision -- vision-language models against transformers (tests/ref/vision.py): logits, inputs of each linear
 * layer by modality, the same from a stream, and with visual tokens first (AIFS)
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/thread.h"
#include "calib/calibrate.h"
#include "case.h"
#include "forward/forward.h"
#include "forward/logits.h"
#include "io/part.h"
#include "logits.h"
#include "model/tokens.h"
#include "num/linalg.h"

static const char *const models[] = {
	"llava-clip", "llava-clip-full", "llava-siglip", "llava-postnorm", "vipllava", "qwen2-vl",
	"qwen2.5-vl", "idefics3", "smolvlm",
};
enum { MODELS = sizeof models / sizeof *models };
enum { CTX = 128 };			/* no sequence is longer */

struct reference {
	struct part *part;
	struct config config;
	struct execution execution;
	struct tokens tokens;
	const float *logits;
};

static struct reference open_reference(const char *name)
{
	const char *folder = getenv("PTQ_REF");
	char *path = xformat("%s/vision/%s.h5", folder ? folder : "tests/ref", name);
	struct reference r = { .part = part_open(path, "model") };

	r.config = config_read(r.part);
	r.tokens = tokens_read(r.part, NULL, r.config.vocab, false, 0, 0);
	r.logits = part_tensor(r.part, "/test/logits", TENSOR_F32, 2,
		(size_t[]){ r.tokens.n, r.config.vocab }).data;
	r.execution.modalities = 2;
	free(path);
	return r;
}

static void close_reference(struct reference *r)
{
	config_free(&r->config);
	part_close(r->part);
}

/*
 * The mean nll of the text against the loss of transformers with the labels of images at -100, for each
 * sequence. The error of a row of logits, some 1e-6 of the largest with random sign, is smaller in a mean,
 * and the loss itself is rounded to float32, 1e-7.
 */
static void losses_of_references(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		const double *loss = part_tensor(r.part, "/test/loss", TENSOR_F64, 1,
			&r.tokens.sequences).data;
		struct windows w = windows_scored(windows_cut("tokens", &r.tokens, WINDOWS_GPTQ, CTX, 0));
		struct forward *f = forward_open(&r.config, &r.execution, &w, SIZE_MAX);
		struct head head = head_read(r.part, &r.config, &r.execution, false);
		double *nll = xalloc(w.targets, sizeof *nll);
		size_t *targets = xalloc(w.n, sizeof *targets), k = 0;

		assert_true(forward_part(f, r.part, NULL));
		logits_score(f, &head, nll, NULL);
		windows_targets(&w, targets);
		assert_int_equal(w.n, r.tokens.sequences);
		for (size_t s = 0; s < w.n; s++) {
			double sum = 0;

			for (const size_t end = k + targets[s]; k < end; k++)
				sum += nll[k];
			print_message("# %-16s %zu targets, loss %.7f, off by %.1e\n", models[i], targets[s],
				loss[s], sum / (double)targets[s] - loss[s]);
			assert_true(fabs(sum / (double)targets[s] - loss[s]) < 1e-6 * loss[s]);
		}
		head_free(&head);
		forward_close(f);
		windows_free(&w);
		free(nll), free(targets);
		close_reference(&r);
	}
}

/* Logits of all rows of the windows. */
static float *run(const struct reference *r, const struct tokens *t, size_t memory, struct calibration *k)
{
	struct windows w = windows_cut("tokens", t, WINDOWS_GPTQ, CTX, 0);
	const struct observer observer = k ? calibrate_observer(k) : (struct observer){ 0 };
	float *y;

	assert_int_equal(w.rows, t->n);
	y = logits_of(r->part, &r->config, &r->execution, &w, memory, k ? &observer : NULL);
	windows_free(&w);
	return y;
}

static double difference(size_t n, const float a[n], const float b[n])
{
	double worst = 0, top = 0;

	for (size_t i = 0; i < n; i++) {
		worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
		top = fmax(top, fabs((double)b[i]));
	}
	return worst / top;
}

static void logits_of_references(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		const size_t n = r.tokens.n * r.config.vocab;
		float *y = run(&r, &r.tokens, SIZE_MAX, NULL), *z = run(&r, &r.tokens, 0, NULL);
		const double d = difference(n, y, r.logits);

		print_message("# %-16s largest relative difference %.2g\n", models[i], d);
		assert_true(d < 1e-5);		/* sums of float32 products through blocks */
		assert_memory_equal(y, z, n * sizeof *y);	/* hidden states in a file */
		free(y), free(z);
		close_reference(&r);
	}
}

/* The diagonal of Σ x xᵀ for every layer and modality. */
static void hessians_by_modality(void **unused)
{
	struct selection layers = { 0 };

	(void)unused;
	selection_add(&layers, "*");
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		struct calibration k = calibrate_begin(r.part, &r.config, &r.execution, &layers, true);
		size_t seen = 0;

		free(run(&r, &r.tokens, SIZE_MAX, &k));
		for (size_t l = 0; l < k.list.n; l++) {
			const char *layer = k.list.layer[l].path;
			char *path = xformat("/test/squares%s", layer);
			const struct sums *s = calibrate_find(&k, &k.list.layer[l]);
			struct tensor want;

			if (s && strcmp(layer, r.config.arch->head)) {
				const size_t in = s->in;

				want = part_tensor(r.part, path, TENSOR_F64, 2,
					(size_t[]){ s->modalities, in });
				for (size_t m = 0; m < s->modalities; m++)
					for (size_t j = 0; j < in; j++) {
						const double w = ((double *)want.data)[m * in + j];
						const double y = s->moments[m].sum[j * in + j];

						/* of inputs with errors of some 1e-6; near 0 by rounding */
						assert_true(fabs(y - w) <= 1e-5 * (w + 1e-3));
					}
				seen++;
			}
			free(path);
		}
		assert_int_equal(seen + 2, k.list.n);	/* except embedding and head */
		calibrate_end(&k);
		close_reference(&r);
	}
	selection_free(&layers);
}

/* Visual tokens first, then text, in each sequence. */
static struct tokens visual_first(const struct tokens *t, size_t from[])
{
	struct tokens y = *t;
	int32_t *id = xalloc(t->n, sizeof *id), *index = xalloc(t->n, sizeof *index);
	uint8_t *modality = xalloc(t->n, 1);
	int64_t *feature = xalloc(t->n, sizeof *feature);
	int32_t *position = xalloc(t->n, AXES * sizeof *position);

	for (size_t s = 0; s < t->sequences; s++) {
		const size_t first = (size_t)t->sequence[s], n = (size_t)t->sequence[s + 1] - first;

		tokens_visual_first(n, from + first, t->modality + first, NULL);
		for (size_t k = first; k < first + n; k++) {
			const size_t i = from[k] += first;

			id[k] = t->id[i];
			index[k] = (int32_t)(i - first);
			modality[k] = t->modality[i];
			feature[k] = t->feature[i];
			for (size_t a = 0; t->position && a < t->axes; a++)
				position[k * t->axes + a] = t->position[i * t->axes + a];
		}
	}
	y.id = id, y.index = index, y.modality = modality, y.feature = feature;
	y.position = t->position ? position : NULL;
	if (!t->position)
		free(position);
	return y;
}

static void visual_tokens_first(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		const size_t n = r.tokens.n, vocab = r.config.vocab;
		size_t *from = xalloc(n, sizeof *from), moved = 0;
		struct tokens t = visual_first(&r.tokens, from);
		float *y = run(&r, &t, SIZE_MAX, NULL), *back = xalloc(n * vocab, sizeof *back);

		for (size_t k = 0; k < n; k++) {
			memcpy(back + from[k] * vocab, y + k * vocab, vocab * sizeof *y);
			moved += from[k] != k;
		}
		assert_true(moved > n / 4);
		assert_true(difference(n * vocab, back, r.logits) < 1e-5);
		free((void *)(uintptr_t)t.id), free((void *)(uintptr_t)t.index);
		free((void *)(uintptr_t)t.modality), free((void *)(uintptr_t)t.feature);
		free((void *)(uintptr_t)t.position);
		free(y), free(back), free(from);
		close_reference(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_of_references), cmocka_unit_test(logits_of_references),
		cmocka_unit_test(hessians_by_modality), cmocka_unit_test(visual_tokens_first),
	};

	threads_init(0);
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
