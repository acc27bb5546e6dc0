/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * repack.h -- layers of a file from codes to packed words, and back
 */
#ifndef TRANSFORM_REPACK_H
#define TRANSFORM_REPACK_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"
#include "model/filter.h"

struct repack {
	const struct selection *layers;
	bool unpack;
	size_t done;			/* layers so far */
};

/* The layers of a part that are selected and have codes (unpack: packed words), embeddings and heads among
 * them; the rest is copied, a part without any is passed on. */
void repack_part(void *repack, const struct filter *f);
#endif
