/* SPDX-License-Identifier: GPL-3.0-or-later */
/* aifs.c -- see aifs.h */
#include "vision/aifs.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/part.h"
#include "model/tokens.h"

/* A tokens file; order: the token at each new place. */
struct switched { const struct part *part; struct tokens t; size_t *order; };

/* Computes the order; returns whether it differs from the file's. */
static bool switch_all(struct switched *s)
{
	const size_t sequences = s->t.sequences ? s->t.sequences : 1;
	bool moved = false;

	s->order = xalloc(s->t.n, sizeof *s->order);
	for (size_t i = 0; i < sequences; i++) {
		const size_t first = s->t.sequences ? (size_t)s->t.sequence[i] : 0;
		const size_t end = s->t.sequences ? (size_t)s->t.sequence[i + 1] : s->t.n;
		size_t *order = s->order + first;

		tokens_visual_first(end - first, order, s->t.modality + first,
			s->t.index ? s->t.index + first : NULL);
		for (size_t p = 0; p < end - first; p++) {
			order[p] += first;
			moved |= order[p] != first + p;
		}
	}
	return moved;
}

/* Writes a dataset with a row for each token, reordered, if the file has it. */
static void write_rows(const struct switched *s, struct output *out, const char *path, enum tensor_type type)
{
	struct tensor t;
	size_t row;
	char *rows;

	if (!part_find(s->part, path, type, -1, NULL, &t))
		return;
	if (!t.rank || t.dim[0] != s->t.n)
		die("%s: %s: has %zu rows, expected %zu, one per token", part_name(s->part), path,
			t.rank ? t.dim[0] : 0, s->t.n);
	row = tensor_count(&t) / s->t.n * tensor_size(t.type);
	rows = xalloc(s->t.n, row);
	for (size_t i = 0; i < s->t.n; i++)
		memcpy(rows + i * row, (const char *)t.data + s->order[i] * row, row);
	t.data = rows;
	output_write(out, path, t);
	output_attributes(out, s->part, path);
	free(rows);
}

/* Writes the places of the tokens in their sequences before the switch, for a file without /index. */
static void write_index(const struct switched *s, struct output *out)
{
	int32_t *index = xalloc(s->t.n, sizeof *index);

	for (size_t i = 0, n = 0; i < s->t.n; i++) {
		const size_t first = s->t.sequences ? (size_t)s->t.sequence[n] : 0;

		index[i] = (int32_t)(s->order[i] - first);
		n += s->t.sequences && i + 1 == (size_t)s->t.sequence[n + 1];
	}
	output_write(out, "/index", tensor_1d(TENSOR_I32, index, s->t.n));
	free(index);
}

/* Writes the new spans of the images; the tokens of each image must still be adjacent. */
static void write_spans(const struct switched *s, struct output *out)
{
	size_t *place = xalloc(s->t.n, sizeof *place);
	int64_t (*span)[2] = xalloc(s->t.images, sizeof *span);

	for (size_t i = 0; i < s->t.n; i++)
		place[s->order[i]] = i;
	for (size_t i = 0; i < s->t.images; i++) {
		const struct token_image *p = &s->t.image[i];

		for (size_t k = 1; k < p->n; k++)
			if (place[p->first + k] != place[p->first] + k)
				die("%s: /index: the tokens of image %zu, from %zu on, do not follow each "
					"other", part_name(s->part), i, p->first);
		if (i && (int64_t)place[p->first] < span[i - 1][0])
			die("%s: /index: image %zu comes before the one before it, expected images in their "
				"order", part_name(s->part), i);
		span[i][0] = (int64_t)place[p->first];
		span[i][1] = (int64_t)p->n;
	}
	if (s->t.images) {
		output_write(out, "/image_span", tensor_2d(TENSOR_I64, span, s->t.images, 2));
		output_attributes(out, s->part, "/image_span");
	}
	free(place), free(span);
}

static void write_switched(const struct switched *s, struct output *out)
{
	output_begin(out, s->part);
	write_rows(s, out, "/tokens", TENSOR_I32);
	write_rows(s, out, "/bytes", TENSOR_U16);
	write_rows(s, out, "/modality", TENSOR_U8);
	write_rows(s, out, "/position", TENSOR_I32);
	write_rows(s, out, "/index", TENSOR_I32);
	if (!s->t.index)
		write_index(s, out);
	write_spans(s, out);
	output_rest(out, s->part, NULL);
	output_end(out);
}

/* Whether the file has visual tokens; warns if not. */
static bool is_visual(const struct switched *s)
{
	const char *name = part_name(s->part);
	bool visual = false;

	for (size_t i = 0; s->t.modality && i < s->t.n; i++)
		visual |= s->t.modality[i];
	if (!visual)
		warn("%s: /modality: %s, nothing is reordered", name,
			s->t.modality ? "has no visual token" : "is absent");
	return visual;
}

void aifs_file(const char *path, const char *to)
{
	struct output *out = output_open(to, "tokens");
	struct input *in = input_open(path, NULL, "tokens");
	struct switched s = { .part = input_next(in) };

	if (part_count(s.part) > 1)
		die("%s: has %zu parts, a tokens file has one", part_name(s.part), part_count(s.part));
	s.t = tokens_order(s.part);
	if (!s.t.n)
		die("%s: /tokens: holds no token", part_name(s.part));
	if (is_visual(&s) && switch_all(&s))
		write_switched(&s, out);
	else
		output_pass(out, s.part);
	input_next(in);
	output_close(out);
	input_close(in);
	free(s.order);
}
