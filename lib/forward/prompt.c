/* SPDX-License-Identifier: GPL-3.0-or-later */
/* prompt.c -- see prompt.h */
#include "forward/prompt.h"
#include <stdbool.h>
#include <stdlib.h>
#include "base/error.h"

/* Rows are counted where there is no memory for them yet. */
static void put(struct windows *w, const struct stretch *s, size_t at, int32_t target)
{
	if (w->id) {
		w->id[w->rows] = s->id[at];
		w->target[w->rows] = target;
		if (w->modality)
			w->modality[w->rows] = s->modality ? s->modality[at] : 0;
	}
	w->rows++;
}

/* The window of the rows from `first` on is whole. */
static void end_window(struct windows *w, size_t first, size_t past, size_t prefix)
{
	const size_t length = w->rows - first;

	if (w->sequence)
		w->sequence[w->n] = (struct sequence){ .first = first, .length = length, .past = past,
			.prefix = past ? prefix : 0 };
	w->longest = past + length > w->longest ? past + length : w->longest;
	w->n++;
}

static void add_prompt(struct windows *w, const struct prompt *p)
{
	const size_t begin = w->rows, past = p->context.n - 1;

	for (size_t i = 0; i < past; i++)
		put(w, &p->context, i, -1);
	if (past)
		end_window(w, begin, 0, 0);
	for (size_t k = 0; k < p->continuations; k++) {
		const struct stretch *c = &p->continuation[k];
		const size_t first = w->rows;

		put(w, &p->context, past, c->id[0]);
		for (size_t i = 0; i + 1 < c->n; i++)
			put(w, c, i, c->id[i + 1]);
		end_window(w, first, past, begin);
	}
}

static bool has_modalities(size_t n, const struct prompt p[n])
{
	for (size_t i = 0; i < n; i++) {
		if (p[i].context.modality)
			return true;
		for (size_t k = 0; k < p[i].continuations; k++)
			if (p[i].continuation[k].modality)
				return true;
	}
	return false;
}

struct windows prompt_windows(const char *name, size_t n, const struct prompt p[n])
{
	struct windows w = { .name = name };

	for (size_t i = 0; i < n; i++)
		add_prompt(&w, &p[i]);
	w.sequence = xalloc(w.n, sizeof *w.sequence);
	w.id = xalloc(w.rows, sizeof *w.id);
	w.target = xalloc(w.rows, sizeof *w.target);
	if (has_modalities(n, p))
		w.modality = xalloc(w.rows, 1);
	w.n = w.rows = 0;
	for (size_t i = 0; i < n; i++)
		add_prompt(&w, &p[i]);
	windows_count(&w);
	return w;
}

size_t prompt_context_windows(const struct prompt *p)
{
	return p->context.n > 1;
}

static void free_stretch(struct stretch *s)
{
	free(s->id), free(s->modality);
}

void prompts_free(size_t n, struct prompt *p)
{
	for (size_t i = 0; i < n; i++) {
		free_stretch(&p[i].context);
		for (size_t k = 0; k < p[i].continuations; k++)
			free_stretch(&p[i].continuation[k]);
		free(p[i].continuation);
	}
	free(p);
}
