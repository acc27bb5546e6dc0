/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * image_private.h -- the readers of kinds of image files
 *
 * A reader parses the bytes of a file in memory. It fills in an image, or returns false and the reason. It
 * accepts the size in a header only if the bytes can encode that many pixels. libpng and libjpeg leave by
 * longjmp() into a function that frees their memory.
 */
#ifndef VISION_IMAGE_PRIVATE_H
#define VISION_IMAGE_PRIVATE_H
#include <setjmp.h>
#include <stdbool.h>
#include "vision/image.h"

/* The state that changes after setjmp() is here, not in variables of the function. */
struct image_reader {
	const char *name;		/* for messages */
	const unsigned char *bytes;	/* [n] of the file */
	size_t n, used;
	bool pixels;			/* read pixels; false: only the header */
	struct image y;			/* the caller frees rgb if the file is refused */
	char why[256];			/* reason of a refusal */
	jmp_buf back;
};

/* False: the file is refused. */
bool image_png(struct image_reader *r);

/* The reason to refuse an image of h x w pixels, or NULL. max: pixels that the bytes of the file can
 * encode. */
const char *image_refusal(size_t h, size_t w, size_t max);
/* Stores the extents and allocates the pixels; false if pixels are not read. */
bool image_make(struct image_reader *r, size_t h, size_t w);
#endif
