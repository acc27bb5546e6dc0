/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vision.h -- what becomes of an image in a model that sees images: patches, features, positions
 *
 * LLaVA: of the encoder's rows, one for each patch and, of CLIP, one for a class before them, the strategy
 * `full` keeps all, and `default` drops the first, whatever it is: so a SigLIP tower, which has no class
 * row, loses a patch. Qwen2-VL: merge x merge patches become one token.
 */
#ifndef VISION_VISION_H
#define VISION_VISION_H
#include <stddef.h>
#include <stdint.h>
#include "model/config.h"
#include "vision/processor.h"

/* How the model prepares its images, from the part that has /processor; dies where there is none. Its name
 * for messages is kept with the image. */
struct processor processor_of(const struct part *part);
/* Rows and columns of patches that the processor makes of an image of h x w pixels. Dies where the model
 * does not take the size that this gives, or has other patches. */
void vision_grid(const struct config *c, const struct processor *p, size_t h, size_t w, size_t *rows,
	size_t *columns);
/*
 * Multimodal rotary positions of n tokens of a sequence, frames, rows and columns: those of text go on by
 * one in all three; the tokens of an image begin where they are and go by their place in it, and text behind
 * it goes on from the largest, plus one (transformers' get_rope_index). at: the first token of each image
 * of the sequence, whose tokens count from `first`.
 */
void vision_positions(const struct config *c, size_t n, int32_t position[n][AXES], size_t first,
	size_t images, const size_t at[images], const int32_t grid[images][3]);
#endif
