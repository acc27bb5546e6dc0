/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vision.c -- see vision.h */
#include "vision/vision.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "vision/image.h"

struct processor processor_of(const struct part *part)
{
	struct processor p;
	char *text;

	if (!part_has(part, "/processor"))
		die("%s: /processor: is missing; a vision-language model needs its preprocessor_config.json",
			part_name(part));
	text = part_string(part, "/processor");
	p = processor_parse(part_keep(part, xformat("%s: /processor", part_name(part))), text);
	free(text);
	return p;
}

/* Rows and columns of patches after the processor, for an image of h x w pixels. */
static void grid_of(const struct config *c, const struct processor *p, size_t h, size_t w, size_t *rows,
	size_t *columns)
{
	const struct vision *v = &c->vision;
	size_t height, width;

	if (p->patch && (p->patch != v->patch || p->merge != v->merge || p->frames != v->frames))
		die("%s: patch %zu, frames %zu, merge %zu, expected %zu, %zu, %zu as in /config", p->name,
			p->patch, p->frames, p->merge, v->patch, v->frames, v->merge);
	processor_size(p, h, w, &height, &width);
	if (v->side && (height != v->side || width != v->side))
		die("%s: makes %zu x %zu pixels of an image of %zu x %zu; the encoder needs %zu x %zu",
			p->name, height, width, h, w, v->side, v->side);
	*rows = height / v->patch, *columns = width / v->patch;
	if (!v->side && (!p->patch || *rows % v->merge || *columns % v->merge))
		die("%s: is of %sImageProcessor, expected Qwen2VLImageProcessor for this model", p->name,
			p->kind);
}

size_t vision_rows(const struct config *c, size_t rows, size_t columns)
{
	return rows * columns + !!config_encoder(c)->arch->class_token;
}

size_t vision_tokens(const struct config *c, size_t rows, size_t columns)
{
	const struct vision *v = &c->vision;
	const size_t all = vision_rows(c, rows, columns);

	return all > v->skipped ? (all - v->skipped) / (v->merge * v->merge) : 0;
}

struct token_image vision_image(const struct config *c, const struct processor *p, const char *name, size_t h,
	size_t w)
{
	struct token_image y = { .frames = 1, .h = h, .w = w };

	grid_of(c, p, h, w, &y.rows, &y.columns);
	y.n = vision_tokens(c, y.rows, y.columns);
	if (!y.n)
		die("%s%shas %zu x %zu patches, which leave no token", name ? name : "", name ? ": " : "",
			y.rows, y.columns);
	return y;
}

void vision_check(const struct config *c, const char *file, const struct token_image *image)
{
	const struct vision *v = &c->vision;
	const size_t rows = image->rows, columns = image->columns, n = vision_tokens(c, rows, columns);

	if (v->rows && vision_rows(c, rows, columns) != v->rows)
		die("%s: /image_grid: image %zu has %zu rows and %zu columns of patches, the encoder takes "
			"%zu of each", file, image->number, rows, columns, v->side / v->patch);
	if (image->frames != 1 || rows % v->merge || columns % v->merge)
		die("%s: /image_grid: image %zu has %zu frames, %zu rows and %zu columns of patches, "
			"expected 1 frame and multiples of %zu", file, image->number, image->frames, rows,
			columns, v->merge);
	if (image->n != n)
		die("%s: /image_span: image %zu has %zu tokens, the model makes %zu", file, image->number,
			image->n, n);
}

/* An attention window: its corner, its size, and the squares of earlier windows. All in squares. */
struct window { size_t row, column, rows, columns, first; };

/* The window of a square; without windows, the whole image. */
static struct window window_of(const struct vision *v, const struct token_image *image, size_t square)
{
	const size_t rows = image->rows / v->merge, columns = image->columns / v->merge;
	const size_t side = v->window ? v->window : max(rows, columns);
	struct window y = { .row = square / (side * columns) * side };

	y.rows = min(side, rows - y.row);
	y.column = (square - y.row * columns) / (y.rows * side) * side;
	y.columns = min(side, columns - y.column);
	y.first = y.row * columns + y.column * y.rows;
	return y;
}

void vision_place(const struct config *c, const struct token_image *image, size_t i, size_t *row,
	size_t *column)
{
	const size_t merge = c->vision.merge, each = merge * merge;
	const struct window w = window_of(&c->vision, image, i / each);
	const size_t square = i / each - w.first;

	*row = (w.row + square / w.columns) * merge + i % each / merge;
	*column = (w.column + square % w.columns) * merge + i % merge;
}

size_t vision_position(const struct config *c, const struct token_image *image, size_t t)
{
	const size_t class = !!config_encoder(c)->arch->class_token;
	size_t row, column;

	if (t < class)
		return t;
	vision_place(c, image, t - class, &row, &column);
	return class + row * image->columns + column;
}

size_t vision_window(const struct config *c, const struct token_image *image, size_t i)
{
	const size_t merge = c->vision.merge;
	const struct window w = window_of(&c->vision, image, i / (merge * merge));

	return w.rows * w.columns * merge * merge;
}

/* Decodes a file, which must still have its earlier extents; the caller frees the pixels. */
static uint8_t *decode(const char *file, const struct token_image *image)
{
	char *where = xformat("%s:%zu", file, image->line);
	struct image y;

	error_prefix(where);
	y = image_read(image->path);
	if (y.h != image->h || y.w != image->w)
		die("%s: was %zu x %zu pixels, and is %zu x %zu now", image->path, image->h, image->w, y.h,
			y.w);
	error_prefix(NULL);
	free(where);
	return y.rgb;
}

void vision_patches(const struct config *c, const struct processor *p, const char *file,
	const struct token_image *image, float *x)
{
	const size_t patch = c->vision.patch, frames = c->vision.frames;
	size_t height, width, rows, columns;
	uint8_t *own = NULL;
	float *pixels;

	grid_of(c, p, image->h, image->w, &rows, &columns);
	processor_size(p, image->h, image->w, &height, &width);
	if (rows != image->rows || columns != image->columns)
		die("%s: /images/%zu: is %zu × %zu pixels when it is prepared, %zu × %zu patches of %zu "
			"were expected", file, image->number, height, width, image->rows, image->columns,
			patch);
	if (!image->rgb)
		own = decode(file, image);
	pixels = xalloc(CHANNELS * height * width, sizeof *pixels);
	processor_run(p, height, width, (float (*)[height][width])pixels, image->h, image->w,
		(const uint8_t (*)[image->w][3])(own ? own : image->rgb));
	for (size_t i = 0, row, column; i < rows * columns; i++) {
		vision_place(c, image, i, &row, &column);
		for (size_t k = 0; k < CHANNELS * frames; k++)
			for (size_t y = 0; y < patch; y++, x += patch)
				memcpy(x, pixels + (k / frames * height + row * patch + y) * width +
					column * patch, patch * sizeof *x);
	}
	free(pixels), free(own);
}

void vision_positions(const struct config *c, size_t n, int32_t position[n][AXES], size_t first,
	size_t images, const struct token_image image[images])
{
	const size_t merge = c->vision.merge;
	int32_t next = 0;

	for (size_t i = 0; i < n;) {
		if (!images || image->first != first + i) {
			for (int a = 0; a < AXES; a++)
				position[i][a] = next;
			next++, i++;
			continue;
		}
		const int32_t rows = (int32_t)(image->rows / merge);
		const int32_t columns = (int32_t)(image->columns / merge);

		for (int32_t k = 0; k < rows * columns; k++, i++) {
			position[i][0] = next;
			position[i][1] = next + k / columns;
			position[i][2] = next + k % columns;
		}
		next += rows > columns ? rows : columns;
		image++, images--;
	}
}
