/* SPDX-License-Identifier: GPL-3.0-or-later */
/* images.c -- images through an encoder and its projector; see images.h */
#include "forward/images.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "vision/image.h"
#include "vision/vision.h"

/* Rows of an image, of its class token too. */
static size_t rows_of(const struct images *m, size_t i)
{
	return vision_rows(m->config, m->image[i].rows, m->image[i].columns);
}

/* Dies where the tokens of an image are not as many as its features. */
static void check_image(const struct images *m, size_t i)
{
	const struct vision *v = &m->config->vision;
	const struct token_image *p = &m->image[i];
	const size_t n = vision_tokens(m->config, p->rows, p->columns);

	if (v->rows && rows_of(m, i) != v->rows)
		die("%s: /image_grid: image %zu has %zu rows and %zu columns of patches, the encoder takes "
			"%zu of each", m->windows.name, p->number, p->rows, p->columns, v->side / v->patch);
	if (p->frames != 1 || p->rows % v->merge || p->columns % v->merge)
		die("%s: /image_grid: image %zu has %zu frames, %zu rows and %zu columns of patches, "
			"expected 1 frame and multiples of %zu", m->windows.name, p->number, p->frames,
			p->rows, p->columns, v->merge);
	if (p->n != n)
		die("%s: /image_span: image %zu has %zu tokens, the model makes %zu", m->windows.name,
			p->number, p->n, n);
}

/* Patch i of an image: by squares of those that become one feature, row by row of each. */
static void place_of(const struct vision *v, const struct token_image *p, size_t i, size_t *row,
	size_t *column)
{
	const size_t merge = v->merge, square = merge * merge, across = p->columns / merge;

	*row = i / square / across * merge + i % square / merge;
	*column = i / square % across * merge + i % merge;
}

/* A sequence of each image; of two axes, the places of its rows. */
static void make_windows(struct images *m, const char *name, size_t n)
{
	const struct stack *s = config_encoder(m->config);
	struct windows *y = &m->windows;

	*y = (struct windows){ .name = name, .n = n, .modalities = 1, .axes = s->axes ? s->axes : 1,
		.sequence = xalloc(n, sizeof *y->sequence) };
	for (size_t i = 0; i < n; i++) {
		check_image(m, i);
		y->sequence[i] = (struct sequence){ .first = y->rows, .length = rows_of(m, i) };
		y->rows += rows_of(m, i);
		y->longest = max(y->longest, rows_of(m, i));
		y->positions = max(y->positions, max(m->image[i].rows, m->image[i].columns));
	}
	y->index = xalloc(y->rows, sizeof *y->index);	/* all 0: each row sees all of its image */
	if (y->axes < 2)
		return;
	y->position = xalloc(y->rows, y->axes * sizeof *y->position);
	for (size_t i = 0; i < n; i++)
		for (size_t t = 0; t < y->sequence[i].length; t++) {
			int32_t *at = y->position + (y->sequence[i].first + t) * y->axes;
			size_t row, column;

			place_of(&m->config->vision, &m->image[i], t, &row, &column);
			at[0] = (int32_t)row, at[1] = (int32_t)column;
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
	windows_free(&m->windows);
	hidden_free(&m->hidden);
	hidden_free(&m->feature);
	free(m->first), free(m->prepared_by);
	free(m);
}

void images_prepare(struct images *m, const struct part *part)
{
	m->processor = processor_of(part);
	m->processor.name = m->prepared_by = xformat("%s", m->processor.name);	/* the part will be gone */
}

/* Patches of an image: channels, then frames, which are all the same, rows and columns of pixels. */
static void cut_patches(const struct vision *v, const struct token_image *image, size_t width, size_t plane,
	float *x, const float *pixels)
{
	const size_t p = v->patch;

	for (size_t i = 0, row, column; i < image->rows * image->columns; i++) {
		place_of(v, image, i, &row, &column);
		for (size_t c = 0; c < CHANNELS * v->frames; c++)
			for (size_t y = 0; y < p; y++, x += p)
				memcpy(x, pixels + c / v->frames * plane + (row * p + y) * width + column * p,
					p * sizeof *x);
	}
}

/* The patches of an image, as the model's processor prepares it. */
static void read_patches(const struct images *m, size_t i, float *x)
{
	const struct vision *v = &m->config->vision;
	const struct token_image *p = &m->image[i];
	size_t height, width, rows, columns;
	struct image image = { 0 };
	float *pixels;

	vision_grid(m->config, &m->processor, p->h, p->w, &rows, &columns);
	processor_size(&m->processor, p->h, p->w, &height, &width);
	if (rows != p->rows || columns != p->columns)
		die("%s: /images/%zu: is %zu × %zu pixels when it is prepared, %zu × %zu patches of %zu were "
			"expected", m->windows.name, p->number, height, width, p->rows, p->columns, v->patch);
	if (!p->rgb)
		image = image_read(p->path);
	if (!p->rgb && (image.h != p->h || image.w != p->w))
		die("%s: was %zu x %zu pixels, and is %zu x %zu now", p->path, p->h, p->w, image.h,
			image.w);
	pixels = xalloc(CHANNELS * height * width, sizeof *pixels);
	processor_run(&m->processor, height, width, (float (*)[height][width])pixels, p->h, p->w,
		(const uint8_t (*)[p->w][3])(p->rgb ? p->rgb : image.rgb));
	cut_patches(v, p, width, height * width, x, pixels);
	free(pixels), free(image.rgb);
}

/* What stands beside the patches. */
struct places {
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

/* Rows of an image: the class token before them, positions added, and normed. */
static void place(const struct images *m, const struct places *p, size_t rows, float *x)
{
	const size_t hidden = m->hidden.width;
	float *row = xalloc(hidden, sizeof *row);

	if (p->class)
		memcpy(x, p->class, hidden * sizeof *x);
	for (size_t t = 0; p->position.path && t < rows; t++) {
		linear_weight(&p->position.linear, t, 1, (float (*)[hidden])row);
		for (size_t j = 0; j < hidden; j++)
			x[t * hidden + j] += row[j];
	}
	if (p->norm.n)
		norm_apply(&p->norm, rows, (float (*)[hidden])x, (const float (*)[hidden])x);
	free(row);
}

static void embed_one(struct images *m, const struct projection *patch, const struct places *places, size_t i,
	struct workspace *workspace, const struct observer *observer)
{
	const struct sequence *s = &m->windows.sequence[i];
	const size_t class = !!places->class, n = s->length - class, in = patch->in, out = patch->out;
	const struct sequence all = { .length = n };
	const struct batch batch = { .rows = n, .sequences = 1, .sequence = &all };
	float *x = xalloc(n, in * sizeof *x), *row = m->hidden.x + s->first * out;

	read_patches(m, i, x);
	projection_apply(patch, &batch, 0, n, out, (float (*)[out])(row + class * out),
		(const float (*)[in])x, workspace, observer, false);
	place(m, places, s->length, row);
	free(x);
}

void images_embed(struct images *m, const struct part *part, const struct observer *observer)
{
	const struct config *c = m->config;
	const struct stack *s = config_encoder(c);
	struct projection patch = { 0 };
	struct workspace workspace = { 0 };
	float *class = read_class(m, part);
	struct places p = { .class = class };

	if (s->arch->position) {
		p.position = layer_read(part, s->arch->position, c->vision.rows, s->hidden);
		layer_plain(part, &p.position);
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
		memcpy(to, m->hidden.x + (from[i].first + v->skipped) * hidden, rows * bytes);
		to += rows * hidden;
	}
	block_project(projector, w, &batch, m->feature.x + m->first[first] * m->feature.width, x, stage,
		observer);
	free(x), free(sequence);
}
