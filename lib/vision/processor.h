/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * processor.h -- the image processor of a model, by its preprocessor_config.json
 *
 * The steps are, in this order, each one if the processor has it: padding to a square with the mean colour,
 * resizing (vision/resample.h), a crop of the centre (black outside the image), and for each value v of
 * channel c
 *
 *	p = (v · rescale_factor - image_mean[c]) / image_std[c]
 *
 * in float32, as in the Pillow classes of transformers. The torchvision classes ("Fast", now the default)
 * resize with 16-bit weights and can differ by one or two steps of 255. If an image is smaller than the
 * crop by an odd number of pixels, their image is one pixel further up or left.
 *
 * Supported classes are CLIPImageProcessor, SiglipImageProcessor, LlavaImageProcessor and
 * Qwen2VLImageProcessor, with or without "Fast". They are rows of a table, with their defaults.
 *
 * Calling sequence: processor_parse(), then for each image processor_size() and processor_run().
 */
#ifndef VISION_PROCESSOR_H
#define VISION_PROCESSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "vision/resample.h"

/*
 * The size of the resized image: EXACT: height x width. SHORTEST: the shorter side is `shortest`, the other
 * in proportion. PIXELS (Qwen2-VL): both sides are the nearest multiples of patch · merge, after scaling if
 * there are more than `max` or fewer than `min` pixels.
 */
enum processor_sizing { PROCESSOR_EXACT, PROCESSOR_SHORTEST, PROCESSOR_PIXELS };

struct processor {
	const char *name;		/* of the file, for messages; borrowed */
	const char *kind;		/* "CLIP" */
	bool square, resize, crop, rescale, normalize;
	enum resample resample;
	enum processor_sizing sizing;
	size_t height, width, shortest, min, max;
	size_t crop_height, crop_width;
	double factor, mean[3], std[3];
	/* Of Qwen2-VL: pixels per side of a patch, images per patch, patches per side of a token; other
	 * classes: 0. */
	size_t patch, frames, merge;
};

/* Parses preprocessor_config.json, or processor_config.json, which has it as image_processor. Fatal error
 * on unknown settings, since they could change the pixels. */
struct processor processor_parse(const char *name, const char *text);
/* The size of the result for an image of h x w pixels. Fatal error if the image is too elongated, or the
 * result would have more than 2^26 pixels. */
void processor_size(const struct processor *p, size_t h, size_t w, size_t *height, size_t *width);
void processor_run(const struct processor *p, size_t height, size_t width, float pixels[3][height][width],
	size_t h, size_t w, const uint8_t rgb[h][w][3]);
#endif
