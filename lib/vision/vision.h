/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vision.h -- images in a vision-language model: their patches, tokens, positions
 *
 * LLaVA: the encoder has one row for each patch; CLIP has a class row before them. The strategy `full`
 * keeps all rows, `default` drops the first row in any case. So a SigLIP encoder, which has no class row,
 * loses a patch. Qwen2-VL and Idefics3: merge x merge patches become one token.
 *
 * Qwen2.5-VL: most blocks of the encoder attend within windows. A window is window x window of these squares
 * of patches, less at the right and at the bottom of an image. The rows of the encoder are in the order of
 * windows, so that a window is a sequence; the tokens are in the order of the image.
 */
#ifndef VISION_VISION_H
#define VISION_VISION_H
#include <stddef.h>
#include <stdint.h>
#include "model/config.h"
#include "model/tokens.h"
#include "vision/processor.h"

/* The image processor of the model, from the part that has /processor; fatal error if it is absent. Its
 * name for messages is freed with the part. */
struct processor processor_of(const struct part *part);
/* The rows of the encoder (with a class row) and the tokens of an image of rows x columns patches; 0
 * tokens: none is left. */
size_t vision_rows(const struct config *c, size_t rows, size_t columns);
size_t vision_tokens(const struct config *c, size_t rows, size_t columns);
/*
 * The patches and tokens of an image of h x w pixels. name: its file, for messages, or NULL. Fatal
 * error if the model does not support the size that the processor makes of it, if the model has other
 * patches, or if no token is left.
 */
struct token_image vision_image(const struct config *c, const struct processor *p, const char *name, size_t h,
	size_t w);
/* Fatal error if the patches or tokens of an image of a tokens file do not fit the model. */
void vision_check(const struct config *c, const char *file, const struct token_image *image);
/* Row and column of patch i. Patches are ordered by windows, row by row of the image, within a window by the
 * squares that become one token, and row by row within each square. */
void vision_place(const struct config *c, const struct token_image *image, size_t i, size_t *row,
	size_t *column);
/* The row of the table of positions for row t of the encoder, with a class row: rows of the table are in the
 * order of the image. */
size_t vision_position(const struct config *c, const struct token_image *image, size_t t);
/* The patches of the attention window that begins with patch i; without windows: of the image. */
size_t vision_window(const struct config *c, const struct token_image *image, size_t i);
/*
 * Stores all patches of an image, prepared by the processor: channels, then frames, which are all equal,
 * rows and columns of pixels. An image that is a file is decoded first. file: the file that names the
 * image, for messages.
 */
void vision_patches(const struct config *c, const struct processor *p, const char *file,
	const struct token_image *image, float *x);
/*
 * Multimodal rotary positions (frame, row, column) of n tokens of a sequence. Text increases all three by
 * one per token. The tokens of an image begin at the current position and add their place in the image.
 * Text after an image continues from the largest coordinate, plus one (transformers' get_rope_index).
 * image: the images of the sequence, whose tokens start at `first`.
 */
void vision_positions(const struct config *c, size_t n, int32_t position[n][AXES], size_t first,
	size_t images, const struct token_image image[images]);
#endif
