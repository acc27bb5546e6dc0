/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * aifs -- visual tokens first: the order of six tokens and its mask, computed by hand, and the logits of all
 * tokens on every architecture of the reference models, for sequences with any mixture of spans
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "forward/attention.h"
#include "forward/forward.h"
#include "forward/logits.h"
#include "forward/windows.h"
#include "io/part.h"
#include "logits.h"
#include "model/tokens.h"
#include "num/linalg.h"

static struct random_stream stream;
static uint64_t drawn;

static double draw(void) { return random_uniform(&stream, drawn++); }

/* Row p of the mask: "1" if token p attends to token q. */
static void mask(size_t n, char row[n][8], const int32_t index[n])
{
	for (size_t p = 0; p < n; p++)
		for (size_t q = 0; q < n; q++)
			row[p][q] = index[q] <= index[p] ? '1' : '0';
}

/* Tokens 3 and 4 of six are visual. */
enum { L = 6 };
static const uint8_t six[L] = { 0, 0, 1, 1, 0, 0 };
static const char *const mask_of_six[L] = { "101100", "111100", "001000", "001100", "111110", "111111" };

static void six_tokens(size_t order[L], int32_t index[L])
{
	tokens_visual_first(L, order, six, NULL);
	for (size_t i = 0; i < L; i++)
		index[i] = (int32_t)order[i];
}

static void order_and_mask(void **unused)
{
	static const size_t wanted[L] = { 3, 4, 1, 2, 5, 6 };
	size_t order[L], again[L];
	int32_t index[L];
	uint8_t modality[L];
	char row[L][8] = { { 0 } };

	(void)unused;
	six_tokens(order, index);
	mask(L, row, index);
	for (size_t i = 0; i < L; i++) {
		assert_int_equal(order[i] + 1, wanted[i]);
		assert_string_equal(row[i], mask_of_six[i]);
		modality[i] = six[order[i]];
	}
	tokens_visual_first(L, again, modality, index);	/* they are in this order already */
	for (size_t i = 0; i < L; i++)
		assert_int_equal(again[i], i);
}

/* Attention with this index: masked keys have no weight, other keys have the same weight as without
 * reordering. */
static void attention_sees_the_mask(void **unused)
{
	enum { D = 4 };
	const struct attention a = { 1, 1, D, 0.7, 0, 0 };
	float q[L][D], k[L][D], v[L][D], moved[3][L][D], plain[L][D], y[L][D];
	size_t order[L];
	int32_t index[L];

	(void)unused;
	six_tokens(order, index);
	for (size_t i = 0; i < L; i++)
		for (size_t j = 0; j < D; j++) {
			q[i][j] = (float)draw() - 0.5f, k[i][j] = (float)draw() - 0.5f;
			v[i][j] = (float)draw() + 0.5f;
		}
	attention(&a, 1, &(struct attention_rows){ L, D, D, plain[0], q[0], NULL,
		{ { 0 }, { L, D, k[0], v[0], NULL } } });
	for (size_t i = 0; i < L; i++) {
		memcpy(moved[0][i], q[order[i]], sizeof q[0]);
		memcpy(moved[1][i], k[order[i]], sizeof k[0]);
		memcpy(moved[2][i], v[order[i]], sizeof v[0]);
	}
	attention(&a, 1, &(struct attention_rows){ L, D, D, y[0], moved[0][0], index,
		{ { 0 }, { L, D, moved[1][0], moved[2][0], index } } });
	for (size_t p = 0; p < L; p++)
		for (size_t j = 0; j < D; j++) {
			double max = 0, sum = 0;

			assert_true(fabsf(y[p][j] - plain[order[p]][j]) < 1e-6f);
			for (size_t s = 0; s < L; s++) {
				double dot = 0, weight;

				for (size_t i = 0; i < D; i++)
					dot += (double)moved[0][p][i] * (double)moved[1][s][i];
				weight = mask_of_six[p][s] == '1' ? exp(0.7 * dot) : 0;
				sum += weight, max += weight * (double)moved[2][s][j];
			}
			assert_true(fabs((double)y[p][j] - max / sum) < 1e-6);
		}
}

/* ---- models ---- */

struct model { struct part *part; struct config config; struct execution execution; struct tensor tokens; };

static struct model open_model(const char *name)
{
	const char *folder = getenv("PTQ_REF");
	char *path = xformat("%s/%s.h5", folder ? folder : "tests/ref", name);
	struct model m = { .part = part_open(path, "model") };

	m.config = config_read(m.part);
	m.tokens = part_tensor(m.part, "/test/tokens", TENSOR_I32, 2, NULL);
	free(path);
	return m;
}

static float *all_logits(const struct model *m, const struct windows *w)
{
	return logits_of(m->part, &m->config, &m->execution, w, SIZE_MAX, NULL);
}

/* The largest difference of a logit, relative to the largest logit, over n tokens of these kinds. */
static double logits_apart(const struct model *m, size_t n, const uint8_t modality[n])
{
	const size_t vocab = m->config.vocab;
	size_t order[64];
	int32_t id[64], index[64];
	struct tokens t = { .n = n, .id = m->tokens.data, .bos = -1 };
	struct tokens other = { .n = n, .id = id, .index = index, .bos = -1 };
	struct windows plain = windows_cut("x", &t, WINDOWS_GPTQ, n, 0), switched;
	double worst = 0, max = 0;
	float *y, *z;

	tokens_visual_first(n, order, modality, NULL);
	for (size_t i = 0; i < n; i++)
		id[i] = t.id[order[i]], index[i] = (int32_t)order[i];
	switched = windows_cut("x", &other, WINDOWS_GPTQ, n, 0);
	y = all_logits(m, &plain), z = all_logits(m, &switched);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(switched.target[i], plain.target[order[i]]);
		for (size_t v = 0; v < vocab; v++) {
			const double a = (double)z[i * vocab + v], b = (double)y[order[i] * vocab + v];

			worst = fmax(worst, isfinite(a) ? fabs(a - b) : INFINITY), max = fmax(max, fabs(b));
		}
	}
	free(y), free(z);
	windows_free(&plain), windows_free(&switched);
	return worst / max;
}

/* Logits are float32, and only the order of sums differs: 1e-4. */
static void logits_stay(void **unused)
{
	static const char *const models[] = { "llama-gqa", "qwen2-bias", "qwen2-window", "mistral-window",
		"gpt2", "opt", "neox-parallel", "neox-serial", "phi3-window", "gemma2", "gemma3",
		"qwen3-moe" };

	(void)unused;
	for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
		CASE("%s", models[k]);
		struct model m = open_model(models[k]);
		size_t n = m.tokens.dim[1] < 64 ? m.tokens.dim[1] : 64;
		double worst = 0;
		uint8_t modality[64];
		int mixed = 0;

		for (int spans = 0; spans < 6; spans++) {	/* long spans first, then token by token */
			bool visual = false, any[2] = { false, false };

			for (size_t i = 0; i < n; i++) {
				visual ^= draw() < 0.1 + 0.1 * spans;
				modality[i] = visual;
				any[visual] = true;
			}
			if (!any[0] || !any[1])
				continue;
			mixed++;
			worst = fmax(worst, logits_apart(&m, n, modality));
		}
		print_message("# %-16s %.2g\n", models[k], worst);
		assert_true(mixed > 2 && worst < 1e-4);
		config_free(&m.config);
		part_close(m.part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(order_and_mask),
		cmocka_unit_test(attention_sees_the_mask), cmocka_unit_test(logits_stay) };

	threads_init(0);
	linalg_init();
	stream = random_open(1, "aifs");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
