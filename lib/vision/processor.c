/* SPDX-License-Identifier: GPL-3.0-or-later */
/* processor.c -- see processor.h */
#include "vision/processor.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"

enum {
	SIDE_MAX = 1 << 16,		/* largest side in the file */
	PIXELS_MAX = 1 << 26,		/* most pixels of the result */
	ELONGATED = 200			/* largest ratio of sides for Qwen2-VL */
};

#define CLIP_COLOURS .mean = { 0.48145466, 0.4578275, 0.40821073 }, \
	.std = { 0.26862954, 0.26130258, 0.27577711 }
#define USUAL .resize = true, .rescale = true, .normalize = true, .factor = 1 / 255., \
	.resample = RESAMPLE_BICUBIC

/* A class of processors: its defaults for absent settings, and its features. */
static const struct processor_class {
	struct processor defaults;	/* found by `kind` */
	bool pads, crops;		/* supports do_pad (padding to a square); do_center_crop */
} classes[] = {
	{ { .kind = "CLIP", USUAL, CLIP_COLOURS, .sizing = PROCESSOR_SHORTEST, .shortest = 224,
		.crop = true, .crop_height = 224, .crop_width = 224 }, false, true },
	{ { .kind = "Siglip", USUAL, .mean = { .5, .5, .5 }, .std = { .5, .5, .5 },
		.sizing = PROCESSOR_EXACT, .height = 224, .width = 224 }, false, true },
	{ { .kind = "Llava", USUAL, CLIP_COLOURS, .sizing = PROCESSOR_SHORTEST, .shortest = 224,
		.crop = true, .crop_height = 224, .crop_width = 224 }, true, true },
	{ { .kind = "Qwen2VL", USUAL, CLIP_COLOURS, .sizing = PROCESSOR_PIXELS, .min = 56 * 56,
		.max = 28 * 28 * 1280, .patch = 14, .frames = 2, .merge = 2 }, false, false },
};

/* Keys that are read below, and keys that change no pixel. */
static const char *const known[] = {
	"image_processor_type", "feature_extractor_type", "do_resize", "size", "default_to_square",
	"resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize",
	"image_mean", "image_std", "do_pad", "min_pixels", "max_pixels", "patch_size",
	"temporal_patch_size", "merge_size",
	"processor_class", "_valid_processor_keys", "do_convert_rgb", "data_format", "input_data_format",
	"return_tensors", "device", "disable_grouping", "pad_size", "image_seq_length",
};

/* ---- values ---- */

static json_t *get(const json_t *json, const char *key)
{
	json_t *v = json_object_get(json, key);

	return json_is_null(v) ? NULL : v;
}

static void read_bool(const struct processor *p, const json_t *json, const char *key, bool *value)
{
	const json_t *v = get(json, key);

	if (v && !json_is_boolean(v))
		die("%s: '%s' must be true or false", p->name, key);
	if (v)
		*value = json_is_true(v);
}

static void read_size(const struct processor *p, const json_t *v, const char *key, long min, long max,
	size_t *value)
{
	if (!v)
		return;
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		die("%s: '%s' must be a whole number from %ld to %ld", p->name, key, min, max);
	*value = (size_t)json_integer_value(v);
}

static void read_factor(const struct processor *p, const json_t *json, double *value)
{
	const json_t *v = get(json, "rescale_factor");

	if (v && (!(json_number_value(v) > 0) || isinf(json_number_value(v))))
		die("%s: 'rescale_factor' must be a positive number", p->name);
	if (v)
		*value = json_number_value(v);
}

/* Reads one number, or one per channel. */
static void read_channels(const struct processor *p, const json_t *json, const char *key, double min,
	double value[3])
{
	const json_t *v = get(json, key);

	for (size_t c = 0; v && c < 3; c++) {
		const json_t *one = json_is_array(v) && json_array_size(v) == 3 ? json_array_get(v, c) : v;

		if (!json_is_number(one) || !(json_number_value(one) >= min) ||
		    json_number_value(one) > 1e6)
			die("%s: '%s' must be a number or three, from %g to 1e6", p->name, key, min);
		value[c] = json_number_value(one);
	}
}

/* ---- sizes ---- */

/* Reads {"height": h, "width": w}, [h, w], or a number; false for any other value. */
static bool read_sides(const struct processor *p, const json_t *v, const char *key, size_t *h, size_t *w)
{
	const json_t *high = v, *wide = v;

	if (json_is_object(v))
		high = get(v, "height"), wide = get(v, "width");
	else if (json_is_array(v))
		high = json_array_get(v, 0), wide = json_array_get(v, 1);
	if (!high || !wide)
		return false;
	read_size(p, high, key, 1, SIDE_MAX, h);
	read_size(p, wide, key, 1, SIDE_MAX, w);
	return true;
}

/* Whether an object has keys that are not null, other than these two. */
static bool has_others(const json_t *v, const char *a, const char *b)
{
	const char *key;
	json_t *one;

	json_object_foreach((json_t *)v, key, one)
		if (!json_is_null(one) && strcmp(key, a) && strcmp(key, b))
			return true;
	return false;
}

static void read_pixels(struct processor *p, const json_t *json, const json_t *size)
{
	static const char *const keys[2][2] =
		{ { "shortest_edge", "longest_edge" }, { "min_pixels", "max_pixels" } };

	if (size && (!json_is_object(size) || (has_others(size, keys[0][0], keys[0][1]) &&
	    has_others(size, keys[1][0], keys[1][1]))))
		die("%s: 'size' must have the pixels, 'shortest_edge' and 'longest_edge' or 'min_pixels' and "
			"'max_pixels'", p->name);
	for (size_t i = 0; i < 2; i++) {
		read_size(p, get(size, keys[i][0]), keys[i][0], 1, PIXELS_MAX, &p->min);
		read_size(p, get(size, keys[i][1]), keys[i][1], 1, PIXELS_MAX, &p->max);
	}
	read_size(p, get(json, "min_pixels"), "min_pixels", 1, PIXELS_MAX, &p->min);
	read_size(p, get(json, "max_pixels"), "max_pixels", 1, PIXELS_MAX, &p->max);
	read_size(p, get(json, "patch_size"), "patch_size", 1, SIDE_MAX, &p->patch);
	read_size(p, get(json, "merge_size"), "merge_size", 1, SIDE_MAX, &p->merge);
	read_size(p, get(json, "temporal_patch_size"), "temporal_patch_size", 1, SIDE_MAX, &p->frames);
	if (p->min > p->max)
		die("%s: at least %zu pixels and at most %zu are asked for", p->name, p->min, p->max);
	if (p->patch * p->merge > SIDE_MAX)
		die("%s: 'patch_size' times 'merge_size' must be at most %d", p->name, SIDE_MAX);
}

static void read_sizing(struct processor *p, const json_t *json)
{
	const json_t *size = get(json, "size"), *edge = get(size, "shortest_edge");
	bool square = false;

	read_bool(p, json, "default_to_square", &square);
	if (p->sizing == PROCESSOR_PIXELS) {
		read_pixels(p, json, size);
		return;
	}
	if (!size)
		return;
	if (json_is_integer(size) && !square) {
		p->sizing = PROCESSOR_SHORTEST;
		read_size(p, size, "size", 1, SIDE_MAX, &p->shortest);
	} else if (edge && !has_others(size, "shortest_edge", "")) {
		p->sizing = PROCESSOR_SHORTEST;
		read_size(p, edge, "shortest_edge", 1, SIDE_MAX, &p->shortest);
	} else {
		if ((json_is_object(size) && has_others(size, "height", "width")) ||
		    !read_sides(p, size, "size", &p->height, &p->width))
			die("%s: 'size' must have 'height' and 'width', or 'shortest_edge' alone", p->name);
		p->sizing = PROCESSOR_EXACT;
	}
}

/* ---- the whole ---- */

/* Finds the class by its name, or by the name of its early form. */
static const struct processor_class *find_class(const char *name, const json_t *json)
{
	static const char *const suffixes[] = { "ImageProcessor", "ImageProcessorFast", "FeatureExtractor" };
	const json_t *v = get(json, "image_processor_type");
	const char *type = json_string_value(v ? v : get(json, "feature_extractor_type"));

	if (!type)
		die("%s: names no image_processor_type", name);
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		const char *kind = classes[i].defaults.kind;

		if (strncmp(type, kind, strlen(kind)))
			continue;
		for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++)
			if (!strcmp(type + strlen(kind), suffixes[k]))
				return &classes[i];
	}
	die("%s: image_processor_type '%s' is not known, expected CLIPImageProcessor, SiglipImageProcessor, "
		"LlavaImageProcessor or Qwen2VLImageProcessor", name, type);
}

static void check_keys(const struct processor *p, json_t *json)
{
	const char *key;
	json_t *v;

	json_object_foreach(json, key, v) {
		bool found = json_is_null(v);

		for (size_t i = 0; !found && i < sizeof known / sizeof *known; i++)
			found = !strcmp(key, known[i]);
		if (!found)
			die("%s: '%s' is a setting of an image processor that is not known", p->name, key);
	}
}

static struct processor read_all(const char *name, json_t *json)
{
	const struct processor_class *class = find_class(name, json);
	struct processor p = class->defaults;
	const json_t *crop = get(json, "crop_size");
	size_t resample = p.resample;

	p.name = name;
	check_keys(&p, json);
	read_bool(&p, json, "do_resize", &p.resize);
	read_bool(&p, json, "do_center_crop", &p.crop);
	read_bool(&p, json, "do_rescale", &p.rescale);
	read_bool(&p, json, "do_normalize", &p.normalize);
	read_bool(&p, json, "do_pad", &p.square);
	read_factor(&p, json, &p.factor);
	read_channels(&p, json, "image_mean", -1e6, p.mean);
	read_channels(&p, json, "image_std", 1e-6, p.std);
	read_size(&p, get(json, "resample"), "resample", 0, RESAMPLES - 1, &resample);
	p.resample = (enum resample)resample;
	read_sizing(&p, json);
	if (p.square && !class->pads)
		die("%s: 'do_pad' is true, which %sImageProcessor does not support", name, p.kind);
	if (p.crop && !class->crops)
		die("%s: 'do_center_crop' is true, which %sImageProcessor does not support", name, p.kind);
	if (p.crop && crop && !read_sides(&p, crop, "crop_size", &p.crop_height, &p.crop_width))
		die("%s: 'crop_size' must have 'height' and 'width'", name);
	if (p.crop && !p.crop_height)
		die("%s: 'do_center_crop' is true, but there is no 'crop_size'", name);
	return p;
}

struct processor processor_parse(const char *name, const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error), *json;
	struct processor p;

	if (!root)
		die("%s: not valid JSON: %s", name, error.text);
	json = get(root, "image_processor") ? get(root, "image_processor") : root;
	if (!json_is_object(json))
		die("%s: is not a JSON object", name);
	p = read_all(name, json);
	json_decref(root);
	return p;
}

/* ---- images ---- */

/* The nearest multiple of factor; a tie goes to the even multiple. */
static double multiple(double x, double factor)
{
	return nearbyint(x / factor) * factor;
}

static void size_by_pixels(const struct processor *p, double h, double w, double *height, double *width)
{
	const double factor = (double)(p->patch * p->merge), max = (double)p->max;
	const double fewest = (double)p->min;

	if (fmax(h, w) > ELONGATED * fmin(h, w))
		die("%s: supports images with one side at most %d times the other, this image has %g x %g "
			"pixels", p->name, ELONGATED, h, w);
	*height = multiple(h, factor), *width = multiple(w, factor);
	if (*height * *width > max) {
		const double beta = sqrt(h * w / max);

		*height = fmax(factor, floor(h / beta / factor) * factor);
		*width = fmax(factor, floor(w / beta / factor) * factor);
	} else if (*height * *width < fewest) {
		const double beta = sqrt(fewest / (h * w));

		*height = ceil(h * beta / factor) * factor;
		*width = ceil(w * beta / factor) * factor;
	}
}

/* The size after padding and resizing. */
static void size_before_crop(const struct processor *p, size_t h, size_t w, size_t *height, size_t *width)
{
	double y = (double)h, x = (double)w, limit = PIXELS_MAX;

	if (p->resize && p->sizing == PROCESSOR_EXACT)
		y = (double)p->height, x = (double)p->width;
	else if (p->resize && p->sizing == PROCESSOR_SHORTEST && w <= h)
		y = (double)(p->shortest * h / w), x = (double)p->shortest;
	else if (p->resize && p->sizing == PROCESSOR_SHORTEST)
		y = (double)p->shortest, x = (double)(p->shortest * w / h);
	else if (p->resize)
		size_by_pixels(p, (double)h, (double)w, &y, &x);
	/* resample() has h rows of the new width between its passes */
	if (y * x > limit || (double)h * x > limit || (double)h * (double)w > limit)
		die("%s: makes %g x %g pixels of an image of %zu x %zu, expected at most 2^26 of them, and "
			"of rows of the new width", p->name, y, x, h, w);
	*height = (size_t)y, *width = (size_t)x;
}

void processor_size(const struct processor *p, size_t h, size_t w, size_t *height, size_t *width)
{
	const size_t side = max(h, w);

	size_before_crop(p, p->square ? side : h, p->square ? side : w, height, width);
	if (p->crop)
		*height = p->crop_height, *width = p->crop_width;
	if (*height > PIXELS_MAX / *width)
		die("%s: 'crop_size' is %zu x %zu, expected at most 2^26 pixels", p->name, *height, *width);
	if (p->patch && (*height % (p->patch * p->merge) || *width % (p->patch * p->merge)))
		die("%s: 'do_resize' is false, and an image of %zu x %zu pixels has no whole patches of %zu "
			"pixels", p->name, h, w, p->patch * p->merge);
}

/* Puts the image in the middle of a square of the mean colour. */
static uint8_t *pad(const struct processor *p, size_t h, size_t w, const uint8_t rgb[h][w][3])
{
	const size_t side = max(h, w), top = (side - h) / 2, left = (side - w) / 2;
	uint8_t (*y)[side][3] = xalloc(side, sizeof *y);

	for (size_t i = 0; i < side; i++)
		for (size_t j = 0; j < side; j++)
			for (size_t c = 0; c < 3; c++)
				y[i][j][c] = (uint8_t)fmin(fmax(p->mean[c] * 255, 0), 255);
	for (size_t i = 0; i < h; i++)
		memcpy(y[top + i][left], rgb[i], sizeof rgb[i]);
	return (uint8_t *)y;
}

static uint8_t *resize(const struct processor *p, size_t height, size_t width, size_t h, size_t w,
	const uint8_t *rgb)
{
	uint8_t *y = xalloc(height * width, 3);
	void *workspace = xalloc(resample_workspace(p->resample, h, w, height, width), 1);

	resample(p->resample, height, width, (void *)y, h, w, (const void *)rgb, workspace);
	free(workspace);
	return y;
}

/* Computes the result for each value of a channel. */
static void values(const struct processor *p, float y[3][256])
{
	for (size_t c = 0; c < 3; c++)
		for (size_t v = 0; v < 256; v++) {
			const float x = p->rescale ? (float)((double)v * p->factor) : (float)v;

			y[c][v] = p->normalize ? (x - (float)p->mean[c]) / (float)p->std[c] : x;
		}
}

void processor_run(const struct processor *p, size_t height, size_t width, float pixels[3][height][width],
	size_t h, size_t w, const uint8_t rgb[h][w][3])
{
	uint8_t *padded = p->square && h != w ? pad(p, h, w, rgb) : NULL, *resized = NULL;
	const uint8_t *from = padded ? padded : (const uint8_t *)rgb;
	const size_t side = max(h, w);
	size_t rows, columns;
	ptrdiff_t top, left;
	float value[3][256];

	h = padded ? side : h, w = padded ? side : w;
	size_before_crop(p, h, w, &rows, &columns);
	if (rows != h || columns != w)
		from = resized = resize(p, rows, columns, h, w, from);
	values(p, value);
	/* floor of half the difference, which may be negative */
	top = ((ptrdiff_t)rows - (ptrdiff_t)height) >> 1, left = ((ptrdiff_t)columns - (ptrdiff_t)width) >> 1;
	for (size_t c = 0; c < 3; c++)
		for (size_t i = 0; i < height; i++)
			for (size_t j = 0; j < width; j++) {
				const size_t y = (size_t)((ptrdiff_t)i + top);
				const size_t x = (size_t)((ptrdiff_t)j + left);
				const bool within = y < rows && x < columns;

				pixels[c][i][j] = value[c][within ? from[(y * columns + x) * 3 + c] : 0];
			}
	free(padded), free(resized);
}
