/* SPDX-License-Identifier: GPL-3.0-or-later */
/* visual.c -- see visual.h */
#include "eval/visual.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/names.h"
#include "base/number.h"
#include "base/size.h"
#include "vision/processor.h"

enum { TILE = 448, TILES = 9, IMAGE_MAX = 8192 };
enum views { FIXED, TILED, SLICED, PIXELS };

struct visual {
	const char *name, *norm;	/* norm: of the encoder */
	enum views views;
	size_t blocks, hidden, inner, patch, frames;	/* encoder; frames in a patch */
	size_t positions;		/* rows of the table of positions; 0: rotary */
	size_t rows, tokens;		/* R, t; of PIXELS: by the size */
	size_t row, token, queries;	/* P, T, numbers of learned queries */
	/* language model; inner: of a gated MLP */
	struct { size_t blocks, hidden, kv, inner, vocab; } language;
};

/*
 * From config.json and the code of each model. Projectors: two layers (InternVL2, Qwen2-VL); a
 * cross-attention of learned queries, with keys and values of each row (Qwen-VL, MiniCPM-V); a convolution of
 * 2 x 2 rows, a layer and a gated MLP (GLM-4V).
 */
static const struct visual rows[] = {
	{ "internvl2-8b", "pre", TILED, 24, 1024, 4096, 14, 1, 1025, 1025, 256, 0, 4096 * 4096 * 2, 0,
		{ 32, 4096, 1024, 14336, 92553 } },
	{ "qwen-vl-chat", "pre", FIXED, 48, 1664, 8192, 14, 1, 1024, 1024, 256, 4096 * (1664 + 2 * 4096),
		4096 * 4096 * 3, 256, { 32, 4096, 4096, 11008, 151936 } },
	{ "minicpm-v-2.6", "pre", SLICED, 27, 1152, 4304, 14, 1, 4900, 1024, 64, 3584 * (1152 + 2 * 3584),
		3584 * 3584 * 3, 64, { 28, 3584, 512, 18944, 151666 } },
	{ "qwen2-vl-7b", "pre", PIXELS, 32, 1280, 5120, 14, 2, 0, 0, 0, 0, 5120 * (5120 + 3584), 0,
		{ 28, 3584, 512, 18944, 152064 } },
	{ "glm-4v-9b", "post", FIXED, 63, 1792, 15360, 14, 1, 6401, 6401, 1600, 0,
		4096 * (4 * 1792 + 4096 + 3 * 13696), 0, { 40, 4096, 256, 13696, 151552 } },
	{ NULL },
};

static size_t tiles(size_t side)
{
	size_t n = 1;

	for (size_t a = 2; a * a <= TILES; a++)
		if (2 * side * side > TILE * TILE * a * a)
			n = a * a;
	return n;
}

static size_t slices(size_t side)
{
	const size_t m = min((side * side + TILE * TILE - 1) / (TILE * TILE), TILES);
	double least = INFINITY;
	size_t best = 1;

	for (size_t n = m > 1 ? m - 1 : 2; m > 1 && n <= min(m + 1, TILES); n++)
		for (size_t a = 1; n > 1 && a <= n; a++)
			if (n % a == 0 && fabs(log((double)(a * a) / (double)n)) < least) {
				least = fabs(log((double)(a * a) / (double)n));
				best = n;
			}
	return best;
}

/* Views of a square, and the rows and tokens of each. */
static void views_of(const struct visual *v, size_t side, size_t *views, size_t *of_rows, size_t *tokens)
{
	const size_t n = v->views == TILED ? tiles(side) : v->views == SLICED ? slices(side) : 1;
	size_t height, width;

	*views = n > 1 ? n + 1 : 1;
	*of_rows = v->rows;
	*tokens = v->tokens;
	if (v->views != PIXELS)
		return;
	processor_size(&(struct processor){ .name = v->name, .kind = "Qwen2VL", .resize = true,
		.sizing = PROCESSOR_PIXELS, .min = 56 * 56, .max = 28 * 28 * 16384, .patch = v->patch,
		.frames = v->frames, .merge = 2 }, side, side, &height, &width);
	*of_rows = height / v->patch * (width / v->patch);
	*tokens = *of_rows / 4;
}

static void add_row(struct table *t, const struct visual *v, size_t side)
{
	const double hidden = (double)v->hidden, words = (double)(v->language.vocab * v->language.hidden);
	const double encoder = (double)v->blocks * hidden * (4 * hidden + 2 * (double)v->inner);
	const double front = hidden * (double)(3 * v->patch * v->patch * v->frames + v->positions);
	const double width = (double)v->language.hidden;
	const double language = (double)v->language.blocks * width *
		(2 * width + 2 * (double)v->language.kv + 3 * (double)v->language.inner);
	size_t views, of_rows, tokens;

	views_of(v, side, &views, &of_rows, &tokens);
	const double passes = (double)views * (double)of_rows, visual = (double)(views * tokens);

	table_row(t, (const char *[]){ v->name, v->norm }, (double[]){ (double)side, (double)views, passes,
		visual, encoder + front + (double)(v->row + v->token) + (double)v->queries * width,
		language + 2 * words, 2 * (passes * (encoder + (double)v->row) + visual * (double)v->token),
		2 * visual * (language + words) });
}

static void add_images(struct table *t, const struct visual *v, const char *images)
{
	char *copy = xformat("%s", images), *rest = copy, *item;

	while ((item = strsep(&rest, ","))) {
		size_t side;
		const char *end = number_size(item, &side);

		if (!end || *end || side < 28 || side > IMAGE_MAX)
			misuse("--image: '%s' is not a side from 28 to %d", item, IMAGE_MAX);
		add_row(t, v, side);
	}
	free(copy);
}

struct table visual_table(const char *models, const char *images)
{
	static const struct table_column column[] = { { "model", TABLE_TEXT }, { "norm", TABLE_TEXT },
		{ "image", TABLE_INTEGER }, { "views", TABLE_INTEGER }, { "rows", TABLE_INTEGER },
		{ "tokens", TABLE_INTEGER }, { "visual_parameters", TABLE_INTEGER },
		{ "language_parameters", TABLE_INTEGER }, { "visual_operations", TABLE_INTEGER },
		{ "language_operations", TABLE_INTEGER } };
	struct table t = { .columns = sizeof column / sizeof *column, .column = column };
	char *copy = models ? xformat("%s", models) : NULL, *rest = copy, *item;

	for (const struct visual *v = rows; !models && v->name; v++)
		add_images(&t, v, images);
	while (models && (item = strsep(&rest, ","))) {
		const struct visual *v = rows;

		while (v->name && strcmp(v->name, item))
			v++;
		if (!v->name)
			misuse("--models: '%s' has no row of --table visual, expected one of %s", item,
				names_of_rows(rows, sizeof *rows));
		add_images(&t, v, images);
	}
	free(copy);
	return t;
}
