/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cache_format.h -- what keys, after rotation, and values are rounded to; forward/cache.h */
#ifndef MODEL_CACHE_FORMAT_H
#define MODEL_CACHE_FORMAT_H
#include <stdbool.h>
#include <stddef.h>
#include "num/format.h"

struct cache_format {
	struct format format;		/* kind NULL: they stay as they are */
	size_t group;			/* channels of a head that share a scale; 0: all */
	bool given;			/* by an option, be it "none": what the model says does not count */
};
#endif
