/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cache_format.h -- the format to which keys (after rotation) and values are rounded; forward/cache.h */
#ifndef MODEL_CACHE_FORMAT_H
#define MODEL_CACHE_FORMAT_H
#include <stdbool.h>
#include <stddef.h>
#include "num/format.h"

struct cache_format {
	struct format format;		/* kind NULL: not rounded */
	size_t group;			/* channels of a head that share a scale; 0: all */
	bool given;			/* set by an option, even as "none": overrides the model's */
};
#endif
