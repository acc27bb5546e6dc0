/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * aifs.h -- visual tokens first, then text (MQuant section 4.1, attention-invariant flexible switching)
 *
 * Tokens of one modality keep their order, so a matrix of activations has two spans, each with one static
 * scale. Each token keeps its original place, its index. Token p attends to token q if index(q) ≤ index(p).
 * The position of a token is unchanged, and its target is the token with the next index. So the model
 * computes the same for each token.
 */
#ifndef VISION_AIFS_H
#define VISION_AIFS_H
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the tokens file at `path` to `to` (paths as in output_open()), with the tokens of every sequence
 * in this order. All datasets with a row for each token are reordered, /index is written, and /image_span
 * gets the new spans of the images. A file in this order is copied unchanged, and, with a warning, a file
 * without visual tokens.
 */
void aifs_file(const char *path, const char *to);
#endif
