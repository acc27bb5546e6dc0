/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vision.h -- what becomes of an image in a model that sees images: patches, tokens, positions
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
#include "model/tokens.h"
#include "vision/processor.h"

/* How the model prepares its images, from the part that has /processor; dies where there is none. Its name
 * for messages is kept with the image. */
struct processor processor_of(const struct part *part);
/* Rows of the encoder, a class row among them, and tokens of an image of rows x columns patches; 0: none. */
size_t vision_rows(const struct config *c, size_t rows, size_t columns);
size_t vision_tokens(const struct config *c, size_t rows, size_t columns);
/* How an image of h x w pixels becomes patches and tokens; name: of its file, for messages, or NULL. Dies
 * where the model does not take the size that the processor makes of it, has other patches, or no token is
 * left. */
struct token_image vision_image(const struct config *c, const struct processor *p, const char *name, size_t h,
	size_t w);
/* Dies where the patches or tokens of an image of a tokens file are not those that the model has. */
void vision_check(const struct config *c, const char *file, const struct token_image *image);
/* Where patch i lies: by squares of those that become one token, row by row of each. */
void vision_place(const struct config *c, const struct token_image *image, size_t i, size_t *row,
	size_t *column);
/* All patches, as the processor prepares the image, which is decoded for it if it is a file: channels, then
 * frames, which are all the same, rows and columns of pixels. file: that names the image, for messages. */
void vision_patches(const struct config *c, const struct processor *p, const char *file,
	const struct token_image *image, float *x);
/*
 * Multimodal rotary positions of n tokens of a sequence, frames, rows and columns: those of text go on by
 * one in all three; the tokens of an image begin where they are and go by their place in it, and text after
 * it continues from the largest, plus one (transformers' get_rope_index). image: those of the sequence, whose
 * tokens count from `first`.
 */
void vision_positions(const struct config *c, size_t n, int32_t position[n][AXES], size_t first,
	size_t images, const struct token_image image[images]);
#endif
