/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * repack.h -- converts the codes of layers to packed words, and back
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

/* part() of a filter: converts the selected layers with codes (unpack: with packed words), including
 * embeddings and heads, and copies the rest. A part without such layers is passed on unchanged. */
void repack_part(void *repack, const struct filter *f);
#endif
