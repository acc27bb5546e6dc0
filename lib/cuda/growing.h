/* SPDX-License-Identifier: GPL-3.0-or-later */
/* growing.h -- memory of the device that grows on demand, without keeping its contents */
#ifndef CUDA_GROWING_H
#define CUDA_GROWING_H
#include "cuda/library.h"

struct growing { size_t bytes; void *memory; };

static inline void *growing_of(struct growing *s, size_t bytes)
{
	if (s->bytes < bytes) {
		if (s->memory)
			library_release(s->memory);
		s->memory = library_allocate(bytes);
		s->bytes = bytes;
	}
	return s->memory;
}
#endif
