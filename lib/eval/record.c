/* SPDX-License-Identifier: GPL-3.0-or-later */
/* record.c -- see record.h */
#include "eval/record.h"
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"

struct output *record_open(const char *path, const struct image *model)
{
	struct output *out;

	output_answer(path);
	if (!path)
		return NULL;
	out = output_open(path, "result");
	output_start(out, 0, 1);
	output_history(out, "model", model);
	return out;
}

void record_input(struct output *out, const char *option, const struct image *input)
{
	if (out)
		output_history(out, option, input);
}

static int32_t *targets_of(const struct windows *w)
{
	int32_t *id = xalloc(w->targets, sizeof *id);
	size_t n = 0;

	for (size_t i = 0; i < w->rows; i++)
		if (w->target[i] >= 0)
			id[n++] = w->target[i];
	return id;
}

void record_write(struct output *out, size_t n, const struct answer answer[n], const struct windows *w,
	const double nll[w->targets])
{
	int32_t *id;

	if (!out)
		return;
	id = targets_of(w);
	output_write(out, "/target", tensor_1d(TENSOR_I32, id, w->targets));
	output_write(out, "/nll_of_target", tensor_1d(TENSOR_F64, (void *)(uintptr_t)nll, w->targets));
	for (size_t i = 0; i < n; i++)
		output_number(out, "/", answer[i].name, answer[i].value);
	output_end(out);
	output_close(out);
	free(id);
}

struct image *record_earlier(const char *path, const struct windows *w)
{
	struct image *record = image_open(path, "result");
	size_t n = w->targets;
	struct tensor t = image_tensor(record, "/target", TENSOR_I32, 1, NULL);
	const int32_t *theirs = t.data;
	int32_t *ours = targets_of(w);

	if (t.dim[0] != n)
		die("%s: /target: is over other tokens, or other windows: %zu targets, not %zu", path,
			t.dim[0], n);
	for (size_t i = 0; i < n; i++)
		if (ours[i] != theirs[i])
			die("%s: /target: is over other tokens: target %zu is %d, not %d", path, i, theirs[i],
				ours[i]);
	image_tensor(record, "/nll_of_target", TENSOR_F64, 1, &n);
	free(ours);
	return record;
}

struct paired record_paired(const struct image *record, size_t targets, const double nll[targets])
{
	return perplexity_paired(targets, nll,
		image_tensor(record, "/nll_of_target", TENSOR_F64, 1, &targets).data);
}
