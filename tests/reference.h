/* SPDX-License-Identifier: GPL-3.0-or-later */
/* reference.h -- small models with logits of transformers (tests/ref/make.py), and passes through them */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "forward/forward.h"
#include "io/part.h"
#include "logits.h"

static const char *const models[] = {
	"llama-gqa", "llama-rope", "llama-linear", "llama-tied", "qwen2-bias", "qwen2-window",
	"mistral-window", "gpt2", "qwen3-window", "neox-parallel", "neox-serial",
	"mixtral", "qwen2-moe", "qwen3-moe",
	"phi3-window", "phi3-long",
	"gemma", "gemma2", "gemma3", "opt", "opt-post",
};
enum { MODELS = sizeof models / sizeof *models };

static double difference(size_t n, const float a[n], const float b[n])
{
	double worst = 0, max = 0;

	for (size_t i = 0; i < n; i++) {
		worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
		max = fmax(max, fabs((double)b[i]));
	}
	return worst / max;
}

/* The reference files are next to the source of this test, for any current folder. */
static char *ref(const char *name)
{
	const char *folder = getenv("PTQ_REF");

	return folder ? xformat("%s/%s.h5", folder, name) : xformat("tests/ref/%s.h5", name);
}

struct reference {
	struct part *part;
	struct config config;
	struct execution execution;
	struct windows windows;
	const float *logits;
	size_t rows;
};

static struct reference open_reference(const char *name)
{
	char *path = ref(name);
	struct reference r = { .part = part_open(path, "model") };
	struct tensor t = part_tensor(r.part, "/test/tokens", TENSOR_I32, 2, NULL);
	size_t n = t.dim[0], ctx = t.dim[1], shape[3] = { n, ctx, 0 };

	r.config = config_read(r.part);
	shape[2] = r.config.vocab;
	r.logits = part_tensor(r.part, "/test/logits", TENSOR_F32, 3, shape).data;
	r.rows = n * ctx;
	r.windows = windows_cut(path, &(struct tokens){ .n = n * ctx, .id = t.data, .bos = -1 }, 0, ctx, 0);
	free(path);
	return r;
}

static void close_reference(struct reference *r)
{
	windows_free(&r->windows);
	config_free(&r->config);
	part_close(r->part);
}

static float *all_logits(struct reference *r, size_t memory)
{
	return logits_of(r->part, &r->config, &r->execution, &r->windows, memory, NULL);
}
#endif
