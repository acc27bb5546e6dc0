/* SPDX-License-Identifier: GPL-3.0-or-later */
/* images.c -- images through an encoder and its projector; see images.h */
#include "forward/images.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"

enum { TOGETHER = 4 };		/* images whose patches are multiplied together */

struct images *images_open(const struct config *c, const struct windows *w, size_t memory)
{
	const struct vision *v = &c->vision;
	struct images *m = xalloc(1, sizeof *m);
	struct windows *y = &m->windows;

	m->config = c;
	m->image = w->image;
	*y = (struct windows){ .name = w->name, .n = w->images, .rows = w->images * v->rows,
		.longest = v->rows, .positions = v->rows, .modalities = 1 };
	y->sequence = xalloc(y->n, sizeof *y->sequence);
	for (size_t i = 0; i < y->n; i++)
		y->sequence[i] = (struct sequence){ .first = i * v->rows, .length = v->rows };
	y->index = xalloc(y->rows, sizeof *y->index);	/* all 0: each row sees all of its image */
	m->hidden = hidden_make(y->rows, config_encoder(c)->hidden, memory);
	m->feature = hidden_make(y->n * v->features, config_last(c)->hidden, memory);
	return m;
}

void images_close(struct images *m)
{
	windows_free(&m->windows);
	hidden_free(&m->hidden);
	hidden_free(&m->feature);
	free(m);
}

void images_prepare(struct images *m, const struct image *image)
{
	char *text;

	if (!image_has(image, "/processor"))
		die("%s: /processor: is missing; a model that sees images needs its preprocessor_config.json",
			image_name(image));
	text = image_string(image, "/processor");
	m->processor = processor_parse(image_name(image), text);
	m->processed = true;
	free(text);
}

/* Patches of an image, row by row of it: channels, then rows, then columns of pixels. */
static void cut_patches(const struct vision *v, size_t side, float *x, const float *pixels)
{
	const size_t p = v->patch, across = side / p;

	for (size_t i = 0; i < across * across; i++)
		for (size_t c = 0; c < CHANNELS; c++)
			for (size_t y = 0; y < p; y++) {
				const float *row = pixels + (c * side + i / across * p + y) * side;

				memcpy(x + ((i * CHANNELS + c) * p + y) * p, row + i % across * p,
					p * sizeof *x);
			}
}

/* The patches of an image, as the model's processor prepares it. */
static void read_patches(const struct images *m, size_t i, float *x)
{
	const struct vision *v = &m->config->vision;
	const struct token_image *p = &m->image[i];
	float *pixels = xalloc(CHANNELS * v->side * v->side, sizeof *pixels);
	size_t height, width;

	processor_size(&m->processor, p->h, p->w, &height, &width);
	if (p->n != v->features)
		die("%s: /image_span: image %zu has %zu tokens, the model makes %zu", m->windows.name, i,
			p->n, v->features);
	if (height != v->side || width != v->side)
		die("%s: /images/%zu: is %zu × %zu pixels when it is prepared, the encoder takes %zu × %zu",
			m->windows.name, i, height, width, v->side, v->side);
	processor_run(&m->processor, height, width, (float (*)[height][width])pixels, p->h, p->w,
		(const uint8_t (*)[p->w][3])p->rgb);
	cut_patches(v, v->side, x, pixels);
	free(pixels);
}

/* What stands beside the patches. */
struct places {
	const float *class;		/* [hidden] or NULL */
	struct layer position;
	struct norm norm;
};

/* A vector of the encoder as floats, or NULL; free() it. */
static float *read_class(const struct images *m, const struct image *image)
{
	const struct stack *s = config_encoder(m->config);

	return s->arch->class_token ? layer_vector(image, s->arch->class_token, s->hidden) : NULL;
}

/* The rows of an image: the class token before them, positions added, and normed. */
static void place(const struct images *m, const struct places *p, float *x)
{
	const size_t rows = m->config->vision.rows, hidden = m->hidden.width;
	float *row = xalloc(hidden, sizeof *row);

	for (size_t t = 0; t < rows; t++) {
		linear_weight(&p->position.linear, t, 1, (float (*)[hidden])row);
		if (!t && p->class)
			memcpy(x, p->class, hidden * sizeof *x);
		for (size_t j = 0; j < hidden; j++)
			x[t * hidden + j] += row[j];
	}
	if (p->norm.n)
		norm_apply(&p->norm, rows, (float (*)[hidden])x, (const float (*)[hidden])x);
	free(row);
}

/* Images first .. first + n - 1. */
static void embed_some(struct images *m, const struct projection *patch, const struct places *places,
	size_t first, size_t n, struct workspace *workspace, const struct observer *observer)
{
	const struct vision *v = &m->config->vision;
	const size_t class = !!places->class, each = v->rows - class, in = patch->in, out = patch->out;
	struct sequence sequence[TOGETHER];
	const struct batch batch = { .rows = n * each, .sequences = n, .sequence = sequence };
	float *x = xalloc(n * each, in * sizeof *x), *y = xalloc(n * each, out * sizeof *y);

	for (size_t i = 0; i < n; i++) {
		sequence[i] = (struct sequence){ .first = i * each, .length = each };
		read_patches(m, first + i, x + i * each * in);
	}
	projection_apply(patch, &batch, 0, n * each, out, (float (*)[out])y, (const float (*)[in])x,
		workspace, observer, false);
	for (size_t i = 0; i < n; i++) {
		float *row = m->hidden.x + (first + i) * v->rows * out;

		memcpy(row + class * out, y + i * each * out, each * out * sizeof *y);
		place(m, places, row);
	}
	free(x), free(y);
}

void images_embed(struct images *m, const struct image *image, const struct observer *observer)
{
	const struct config *c = m->config;
	const struct stack *s = config_encoder(c);
	struct projection patch = { 0 };
	struct workspace workspace = { 0 };
	float *class = read_class(m, image);
	struct places p = { .class = class,
		.position = layer_read(image, s->arch->position, c->vision.rows, s->hidden) };

	layer_plain(image, &p.position);
	if (s->arch->embedding_norm)
		p.norm = norm_read(image, s->arch->embedding_norm, s, s->hidden);
	projection_patch(&patch, image, c);
	for (size_t i = 0, n; i < m->windows.n; i += n) {
		n = least(TOGETHER, m->windows.n - i);
		progress("images", i, m->windows.n);
		embed_some(m, &patch, &p, i, n, &workspace, observer);
	}
	m->embedded = true;
	projection_free(&patch);
	norm_free(&p.norm);
	layer_free(&p.position);
	free(class), free(workspace.memory);
}

void images_project(struct images *m, const struct block *projector, struct work *w, size_t first, size_t n,
	struct stage stage, const struct observer *observer)
{
	const struct vision *v = &m->config->vision;
	const size_t hidden = m->hidden.width, each = v->features, out = m->feature.width;
	struct sequence *sequence = xalloc(n, sizeof *sequence);
	const struct batch batch = { .rows = n * each, .sequences = n, .sequence = sequence };
	float *x = xalloc(n * each, hidden * sizeof *x);

	for (size_t i = 0; i < n; i++) {
		sequence[i] = (struct sequence){ .first = i * each, .length = each };
		memcpy(x + i * each * hidden, m->hidden.x + ((first + i) * v->rows + v->skipped) * hidden,
			each * hidden * sizeof *x);
	}
	block_project(projector, w, &batch, m->feature.x + first * each * out, x, stage, observer);
	free(x), free(sequence);
}
