/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pack.h -- layers of a file from codes to packed words, and back
 */
#ifndef TRANSFORM_REPACK_H
#define TRANSFORM_REPACK_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"
#include "io/image.h"

/* The layers of a part that are selected and have codes (unpack: packed words), embeddings and heads
 * among them; the rest is copied, a part without any is passed on. Returns how many there were. */
size_t pack_part(struct output *out, const struct image *image, const struct selection *layers, bool unpack);
#endif
