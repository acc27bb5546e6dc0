/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * aifs.h -- visual tokens first, text after (MQuant section 4.1, attention-invariant flexible switching)
 *
 * Tokens of a kind keep their order, so that a matrix of activations is two stretches, each under one static
 * scale. Where a token came from, its index, goes with it: token p sees token q where index(q) ≤ index(p),
 * its position is the one it had, and its target is the token of the next index. What a model computes of
 * each token stays the same.
 */
#ifndef VISION_AIFS_H
#define VISION_AIFS_H
#include <stddef.h>
#include <stdint.h>

/*
 * The tokens file at `path` with the tokens of every sequence in this order, to `to` as output_open() takes
 * it. All that has a row for each token is reordered, /index is written, and /image_span says where images
 * are now. A file whose tokens stand so already, or that has no visual tokens, of which it warns, passes as
 * it is.
 */
void aifs_file(const char *path, const char *to);
#endif
