/* SPDX-License-Identifier: GPL-3.0-or-later */
/* prompt.c -- see prompt.h */
#include "forward/prompt.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

/* Appends a row; without memory, only counts it. place: storage order in the prompt. index: order before
 * AIFS. */
static void put_row(struct windows *w, const struct prompt_tokens *s, size_t at, int32_t target, size_t place,
	int32_t index)
{
	const size_t row = w->rows++;

	if (!w->id)
		return;
	w->id[row] = s->id[at];
	w->target[row] = target;
	if (w->feature) {
		w->feature[row] = s->feature ? (int32_t)s->feature[at] : -1;
		w->modality[row] = w->feature[row] >= 0;
	}
	if (w->index)
		w->index[row] = index;
	for (size_t a = 0; w->position && a < w->axes; a++)
		w->position[row * w->axes + a] = s->position ? s->position[at * w->axes + a] :
			w->index ? index : (int32_t)place;
}

/* Ends the window that begins at row `first`. */
static void end_window(struct windows *w, size_t first, size_t past, size_t prefix)
{
	const size_t length = w->rows - first;

	if (w->sequence)
		w->sequence[w->n] = (struct sequence){ .first = first, .length = length, .past = past,
			.prefix = past ? prefix : 0 };
	w->longest = past + length > w->longest ? past + length : w->longest;
	w->n++;
}

/* The number of tokens that the context loses at its beginning before continuation k. */
static size_t cut_of(const struct prompt *p, size_t k, size_t positions)
{
	const size_t rows = p->context.n + p->continuation[k].n - 1, most = p->context.n - 1;

	if (!positions || p->context.feature || rows <= positions)
		return 0;
	return rows - positions < most ? rows - positions : most;
}

size_t prompts_cut(size_t n, const struct prompt p[n], size_t positions)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		bool cut = false;

		for (size_t k = 0; k < p[i].continuations; k++)
			cut |= cut_of(&p[i], k, positions) > 0;
		sum += cut;
	}
	return sum;
}

/* Adds the window of the context from token `cut` on, without the last token. */
static void add_context(struct windows *w, const struct prompt *p, size_t cut)
{
	const size_t begin = w->rows, past = p->context.n - 1;

	for (size_t i = cut; i < past; i++)
		put_row(w, &p->context, i, -1, i - cut, p->index ? p->index[i] : (int32_t)(i - cut));
	if (w->rows > begin)
		end_window(w, begin, 0, 0);
}

static void add_prompt(struct windows *w, const struct prompt *p, size_t positions)
{
	size_t begin = 0, cut = SIZE_MAX;	/* of the context that is in w */

	for (size_t k = 0; k < p->continuations; k++) {
		const struct prompt_tokens *c = &p->continuation[k];
		const size_t own = cut_of(p, k, positions), past = p->context.n - 1 - own;
		size_t first;

		if (own != cut) {
			begin = w->rows;
			add_context(w, p, own);
			cut = own;
		}
		first = w->rows;
		put_row(w, &p->context, p->context.n - 1, c->id[0], past, (int32_t)past);
		for (size_t i = 0; i + 1 < c->n; i++)
			put_row(w, c, i, c->id[i + 1], past + 1 + i, (int32_t)(past + 1 + i));
		end_window(w, first, past, begin);
	}
}

struct windows prompt_windows(const char *name, size_t n, const struct prompt p[n],
	const struct prompt_images *images, size_t axes, size_t positions)
{
	struct windows w = { .name = name, .images = images->n, .image = images->image, .axes = 1 };
	bool switched = false, placed = false;

	for (size_t i = 0; i < n; i++) {
		add_prompt(&w, &p[i], positions);
		switched |= p[i].index != NULL;
		placed |= p[i].context.position != NULL;
	}
	w.axes = placed ? axes : 1;
	w.sequence = xalloc(w.n, sizeof *w.sequence);
	w.id = xalloc(w.rows, sizeof *w.id);
	w.target = xalloc(w.rows, sizeof *w.target);
	if (images->n) {
		w.modality = xalloc(w.rows, 1);
		w.feature = xalloc(w.rows, sizeof *w.feature);
	}
	if (switched)
		w.index = xalloc(w.rows, sizeof *w.index);
	if (switched || placed)
		w.position = xalloc(w.rows, w.axes * sizeof *w.position);
	w.n = w.rows = 0;
	for (size_t i = 0; i < n; i++)
		add_prompt(&w, &p[i], positions);
	windows_count(&w);
	return w;
}

void prompt_visual_first(struct prompt *p, size_t axes)
{
	struct prompt_tokens *s = &p->context, y = { .n = s->n };
	size_t *order;
	uint8_t *visual;

	if (!s->feature)
		return;
	order = xalloc(s->n, sizeof *order);
	visual = xalloc(s->n, 1);
	for (size_t i = 0; i + 1 < s->n; i++)
		visual[i] = s->feature[i] >= 0;
	tokens_visual_first(s->n, order, visual, NULL);
	y.id = xalloc(s->n, sizeof *y.id);
	y.feature = xalloc(s->n, sizeof *y.feature);
	y.position = s->position ? xalloc(s->n, axes * sizeof *y.position) : NULL;
	p->index = xalloc(s->n, sizeof *p->index);
	for (size_t at = 0; at < s->n; at++) {
		y.id[at] = s->id[order[at]];
		y.feature[at] = s->feature[order[at]];
		if (s->position)
			memcpy(y.position + at * axes, s->position + order[at] * axes,
				axes * sizeof *y.position);
		p->index[at] = (int32_t)order[at];
	}
	free(order), free(visual);
	free(s->id), free(s->feature), free(s->position);
	*s = y;
}

void prompt_images_free(struct prompt_images *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->image[i].path);
	free(p->image);
	*p = (struct prompt_images){ 0 };
}

static void free_tokens(struct prompt_tokens *s)
{
	free(s->id), free(s->feature), free(s->position);
}

void prompts_free(size_t n, struct prompt *p)
{
	for (size_t i = 0; i < n; i++) {
		free_tokens(&p[i].context);
		for (size_t k = 0; k < p[i].continuations; k++)
			free_tokens(&p[i].continuation[k]);
		free(p[i].continuation), free(p[i].index);
	}
	free(p);
}
