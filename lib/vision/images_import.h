/* SPDX-License-Identifier: GPL-3.0-or-later */
/* images_import.h -- inserts images into a tokens file, at the placeholders in its ids */
#ifndef VISION_IMAGES_IMPORT_H
#define VISION_IMAGES_IMPORT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the tokens file at `tokens` to the path `to`, with the n images at `path`. The ids must contain
 * the model's placeholder n times. Each placeholder is repeated as often as its image has tokens for the
 * model (vision/vision.h). /images, /image_grid, /image_span and /modality are added, and /position for
 * multimodal rotary positions (docs/format.md). /sequence is adjusted; a token of an image has 0 /bytes.
 *
 * Fatal error if the tokens have a /position, /index or images already. force: see tokens_read().
 */
void images_import(const char *to, const char *model, const char *tokens, bool force, size_t n,
	const char *const path[n]);
#endif
