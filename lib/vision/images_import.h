/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * images_import.h -- images into a tokens file, in the place of the ids that stand for them
 */
#ifndef VISION_IMAGES_IMPORT_H
#define VISION_IMAGES_IMPORT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the tokens file at `tokens` to the path `to`, with the n images at `path`: the model's placeholder,
 * which the ids must have once for each, becomes as many of it as the image has tokens for the model
 * (vision/vision.h), and /images, /image_grid, /image_span and /modality are added, for multimodal rotary
 * positions /position too (docs/format.md). /sequence moves along; a token of an image has no /bytes. Dies
 * where tokens have a /position or /index, or images, already; force: tokens_read().
 */
void images_import(const char *to, const char *model, const char *tokens, bool force, size_t n,
	const char *const path[n]);
#endif
