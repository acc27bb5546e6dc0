/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * processor.h -- what a model's image processor makes of an image, by its preprocessor_config.json
 *
 * In this order, each step if the processor has it: padded to a square by the mean colour, resized
 * (vision/resample.h), the middle cut out (what lies outside the image is black), and of each value v of
 * channel c
 *
 *	p = (v · rescale_factor - image_mean[c]) / image_std[c]
 *
 * in float32, as the classes of transformers that work with Pillow have it. Those that work with torchvision
 * ("Fast", by now the default) resize by weights of 16 bits and may be off by a step or two of 255; where a
 * image is smaller than the part that is cut out, by an odd number, theirs lies a pixel further up or left.
 *
 * Classes: CLIPImageProcessor, SiglipImageProcessor, LlavaImageProcessor, Qwen2VLImageProcessor, with or
 * without "Fast"; they are rows of a table, with their defaults.
 */
#ifndef VISION_PROCESSOR_H
#define VISION_PROCESSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "vision/resample.h"

/*
 * How large an image becomes: height x width; the shorter side `shortest`, the other in proportion; or
 * both sides the nearest multiples of patch · merge, scaled down or up where they have more than `max`
 * pixels or fewer than `min` (Qwen2-VL).
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
	/* Of Qwen2-VL: pixels of a patch's side, images of one, patches of a token's side; 0: of others. */
	size_t patch, frames, merge;
};

/* From the text of preprocessor_config.json, or of processor_config.json, which holds it as image_processor.
 * Dies on what it does not know and what could change the pixels. */
struct processor processor_parse(const char *name, const char *text);
/* The size that an image of h x w gets; dies where it is too elongated, or would be larger than 2^26
 * pixels. */
void processor_size(const struct processor *p, size_t h, size_t w, size_t *height, size_t *width);
void processor_run(const struct processor *p, size_t height, size_t width, float pixels[3][height][width],
	size_t h, size_t w, const uint8_t rgb[h][w][3]);
#endif
