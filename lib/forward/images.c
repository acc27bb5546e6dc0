/* SPDX-License-Identifier: GPL-3.0-or-later */
/* images.c -- images through an encoder and its projector; see images.h */
#include "forward/images.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "vision/vision.h"

/* Rows of an image, with its class token. */
static size_t rows_of_image(const struct images *m, size_t i)
{
	return vision_rows(m->config, m->image[i].rows, m->image[i].columns);
}

/* Makes a sequence of each image. An encoder with two axes gets the row and column of each patch as position.
 */
static void make_windows(struct images *m, const char *name, size_t n)
{
	const struct stack *s = config_encoder(m->config);
	struct windows *y = &m->windows;

	*y = (struct windows){ .name = name, .n = n, .modalities = 1, .axes = s->axes ? s->axes : 1,
		.sequence = xalloc(n, sizeof *y->sequence) };
	for (size_t i = 0; i < n; i++) {
		vision_check(m->config, name, &m->image[i]);
		y->sequence[i] = (struct sequence){ .first = y->rows, .length = rows_of_image(m, i) };
		y->rows += rows_of_image(m, i);
		y->longest = max(y->longest, rows_of_image(m, i));
		y->positions = max(y->positions, max(m->image[i].rows, m->image[i].columns));
	}
	y->index = xalloc(y->rows, sizeof *y->index);	/* all 0: each row attends to its whole image */
	if (y->axes < 2)
		return;
	y->position = xalloc(y->rows, y->axes * sizeof *y->position);
	for (size_t i = 0; i < n; i++)
		for (size_t t = 0; t < y->sequence[i].length; t++) {
			int32_t *at = y->position + (y->sequence[i].first + t) * y->axes;
			size_t row, column;

			vision_place(m->config, &m->image[i], t, &row, &column);
			at[0] = (int32_t)row, at[1] = (int32_t)column;
		}
}

/* Makes a sequence of each attention window. The rows are those of the sequences of images. */
static void make_local(struct images *m)
{
	struct windows *y = &m->local;

	if (!m->config->vision.window)
		return;
	*y = m->windows;
	y->sequence = xalloc(y->rows, sizeof *y->sequence);
	y->n = y->longest = 0;
	for (size_t i = 0; i < m->windows.n; i++) {
		const struct sequence image = m->windows.sequence[i];

		for (size_t at = 0, n; at < image.length; at += n) {
			n = vision_window(m->config, &m->image[i], at);
			y->sequence[y->n++] = (struct sequence){ .first = image.first + at, .length = n };
			y->longest = max(y->longest, n);
		}
	}
}

struct images *images_open(const struct config *c, const struct execution *e, const struct windows *w,
	size_t memory)
{
	struct images *m = xalloc(1, sizeof *m);
	size_t features = 0;

	m->config = c;
	m->execution = e;
	m->image = w->image;
	make_windows(m, w->name, w->images);
	make_local(m);
	m->first = xalloc(w->images, sizeof *m->first);
	for (size_t i = 0; i < w->images; i++) {
		m->first[i] = features;
		features += m->image[i].n;
	}
	m->hidden = hidden_make(m->windows.rows, config_encoder(c)->hidden, memory);
	m->feature = hidden_make(features, config_last(c)->hidden, memory);
	return m;
}

void images_close(struct images *m)
{
	free(m->local.sequence);
	windows_free(&m->windows);
	hidden_free(&m->hidden);
	hidden_free(&m->feature);
	free(m->first), free(m->prepared_by);
	free(m);
}

void images_prepare(struct images *m, const struct part *part)
{
	m->processor = processor_of(part);
	m->processor.name = m->prepared_by = xformat("%s", m->processor.name);	/* outlives the part */
}

/* Additions to the patches. */
struct images_places {
	const float *class;		/* [hidden] or NULL */
	struct layer position;
	struct norm norm;
};

/* The encoder's class token, or NULL; free() it. */
static float *read_class(const struct images *m, const struct part *part)
{
	const struct stack *s = config_encoder(m->config);
	const char *path = s->arch->class_token;
	float *x = path ? layer_vector(part, path, s->hidden) : NULL;

	if (path && !x)
		die("%s: %s: is missing", part_name(part), path);
	return x;
}

/* Puts the class token first, adds positions, and applies the norm. x: the rows of an image. */
static void place_patches(const struct images *m, const struct images_places *p,
	const struct token_image *image, size_t rows, float *x)
{
	const size_t hidden = m->hidden.width;
	float *row = xalloc(hidden, sizeof *row);

	if (p->class)
		memcpy(x, p->class, hidden * sizeof *x);
	for (size_t t = 0; p->position.path && t < rows; t++) {
		linear_weight(&p->position.linear, vision_position(m->config, image, t), 1,
			(float (*)[hidden])row);
		for (size_t j = 0; j < hidden; j++)
			x[t * hidden + j] += row[j];
	}
	if (p->norm.n)
		norm_apply(&p->norm, rows, (float (*)[hidden])x, (const float (*)[hidden])x);
	free(row);
}

static void embed_one(struct images *m, const struct projection *patch, const struct images_places *places,
	size_t i,
	struct workspace *workspace, const struct observer *observer)
{
	const struct sequence *s = &m->windows.sequence[i];
	const size_t class = !!places->class, n = s->length - class, in = patch->in, out = patch->out;
	const struct sequence all = { .length = n };
	const struct batch batch = { .rows = n, .sequences = 1, .sequence = &all };
	float *x = xalloc(n, in * sizeof *x), *row = m->hidden.x + s->first * out;

	vision_patches(m->config, &m->processor, m->windows.name, &m->image[i], x);
	projection_apply(patch, &batch, 0, n, out, (float (*)[out])(row + class * out),
		(const float (*)[in])x, workspace, observer, false);
	place_patches(m, places, &m->image[i], s->length, row);
	free(x);
}

void images_embed(struct images *m, const struct part *part, const struct observer *observer)
{
	const struct config *c = m->config;
	const struct stack *s = config_encoder(c);
	struct projection patch = { 0 };
	struct workspace workspace = { 0 };
	float *class = read_class(m, part);
	struct images_places p = { .class = class };

	if (s->arch->position) {
		p.position = layer_read(part, s->arch->position, c->vision.rows, s->hidden);
		layer_require_plain(part, &p.position);
	}
	if (s->arch->embedding_norm)
		p.norm = norm_read(part, s->arch->embedding_norm, s, s->hidden);
	projection_patch(&patch, part, c, m->execution);
	for (size_t i = 0; i < m->windows.n; i++) {
		progress("images", i, m->windows.n);
		embed_one(m, &patch, &p, i, &workspace, observer);
	}
	m->embedded = true;
	projection_free(&patch);
	norm_free(&p.norm);
	layer_free(&p.position);
	free(class), free(workspace.memory);
}

/* Copies rows of the encoder in the order of features: rows of a class token first, then squares of patches,
 * from the order of windows to that of the image. */
static void order_features(const struct images *m, size_t i, float *to)
{
	const struct vision *v = &m->config->vision;
	const struct sequence *s = &m->windows.sequence[i];
	const size_t hidden = m->hidden.width, each = v->merge * v->merge, n = s->length - v->skipped;
	const float *from = m->hidden.x + (s->first + v->skipped) * hidden;

	for (size_t k = 0, row, column; v->window && k < n; k += each) {
		vision_place(m->config, &m->image[i], k, &row, &column);
		memcpy(to + (row * m->image[i].columns + column * v->merge) * hidden, from + k * hidden,
			each * hidden * sizeof *to);
	}
	if (!v->window)
		memcpy(to, from, n * hidden * sizeof *to);
}

void images_project(struct images *m, const struct block *projector, struct work *w, size_t first, size_t n,
	struct stage stage, const struct observer *observer)
{
	const struct vision *v = &m->config->vision;
	const struct sequence *from = &m->windows.sequence[first];
	const size_t hidden = m->hidden.width, bytes = hidden * sizeof(float);
	struct sequence *sequence = xalloc(n, sizeof *sequence);
	struct batch batch = { .sequences = n, .sequence = sequence };
	float *x = xalloc(from[n - 1].first + from[n - 1].length - from->first, bytes), *to = x;

	for (size_t i = 0; i < n; i++) {
		const size_t rows = from[i].length - v->skipped;

		sequence[i] = (struct sequence){ .first = batch.rows, .length = m->image[first + i].n };
		batch.rows += sequence[i].length;
		order_features(m, first + i, to);
		to += rows * hidden;
	}
	block_project(projector, w, &batch, m->feature.x + m->first[first] * m->feature.width, x, stage,
		observer);
	free(x), free(sequence);
}
