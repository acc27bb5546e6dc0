/* SPDX-License-Identifier: GPL-3.0-or-later */
/* states.c -- see states.h */
#include "forward/states.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

static const char STATES[] = "/hidden_states", ROW[] = "/row", TYPE[] = "compute_type";

bool states_in(const struct part *first)
{
	if (strcmp(part_kind(first), "result"))
		return false;
	if (!part_has(first, STATES))
		die("%s: holds a 'result' without %s, expected a 'model' or a result of "
			"eval-ppl --as-reference", part_name(first), STATES);
	return true;
}

/* The token and the window of each row; free() it. */
static int32_t *rows_of(const struct windows *w)
{
	int32_t *row = xalloc(w->rows, 2 * sizeof *row);

	for (size_t k = 0; k < w->n; k++)
		for (size_t i = w->sequence[k].first, end = i + w->sequence[k].length; i < end; i++) {
			row[2 * i] = w->id[i];
			row[2 * i + 1] = (int32_t)k;
		}
	return row;
}

static bool only_text(const struct windows *w)
{
	return !w->images && !w->position && !w->index && !w->modality;
}

void states_read(struct forward *f, const struct part *first)
{
	const struct windows *w = f->windows;
	const char *type = compute_types[f->execution->compute_type];
	const size_t dim[] = { w->rows, f->hidden.width };
	int32_t *row = rows_of(w);
	char *theirs = part_text(first, STATES, TYPE);
	struct tensor t;

	if (!only_text(w) || !part_find(first, ROW, TENSOR_I32, 2, NULL, &t) || t.dim[0] != w->rows ||
	    t.dim[1] != 2 || memcmp(t.data, row, w->rows * sizeof(int32_t[2])))
		die("%s: %s: are of other tokens or windows than %s: use the same --ctx, "
			"--convention, --stride, --skip and --limit", part_name(first), STATES, w->name);
	if (!theirs || strcmp(theirs, type))
		die("%s: %s: are of --compute-type %s, expected %s", part_name(first), STATES,
			theirs ? theirs : "(none)", type);
	memcpy(f->hidden.x, part_tensor(first, STATES, TENSOR_F32, 2, dim).data,
		w->rows * f->hidden.width * sizeof(float));
	f->embedded = f->placed = true;
	f->blocks = f->config->blocks;
	free(row), free(theirs);
}

void states_begin(struct output *out, const struct part *first, const struct windows *w)
{
	const char *const none[] = { NULL };

	if (!only_text(w))
		die("%s: --as-reference needs tokens without images, /position, /index and /modality",
			w->name);
	output_copy(out, first, "/config", none);
}

void states_write(struct output *out, const struct forward *f, const struct part *head)
{
	const struct windows *w = f->windows;
	const char *norm = stack_final_norm(config_last(f->config)), *const none[] = { NULL };
	const struct tensor x = tensor_2d(TENSOR_F32, f->hidden.x, w->rows, f->hidden.width);
	int32_t *row = rows_of(w);

	output_write(out, STATES, x);
	output_text(out, STATES, TYPE, compute_types[f->execution->compute_type]);
	output_write(out, ROW, tensor_2d(TENSOR_I32, row, w->rows, 2));
	if (norm)
		output_copy(out, head, norm, none);
	output_copy(out, head, f->config->arch->head, none);
	free(row);
}
