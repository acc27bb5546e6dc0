/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * image_private.h -- the kinds of image files, each of which fills in an image or says why it does not
 *
 * A kind works on the bytes of a file in memory. It believes the size in a header only where the bytes
 * could fill it. libpng and libjpeg leave by longjmp(), into a function that gives back what they hold.
 */
#ifndef VISION_IMAGE_PRIVATE_H
#define VISION_IMAGE_PRIVATE_H
#include <setjmp.h>
#include <stdbool.h>
#include "vision/image.h"

/* What changes behind a setjmp() is in here, not in variables of the function. */
struct image_reader {
	const char *name;		/* for messages */
	const unsigned char *bytes;	/* [n] of the file */
	size_t n, used;
	bool pixels;			/* wanted; else the header is enough */
	struct image y;			/* rgb is freed by the caller where the file is refused */
	char why[256];			/* it is refused */
	jmp_buf back;
};

/* False: the file is refused. */
bool image_png(struct image_reader *r);

/* Why an image of h x w pixels is not read, or NULL. max: pixels that the bytes of the file can hold. */
const char *image_unfit(size_t h, size_t w, size_t max);
/* Takes the extents, and makes memory for the pixels; false: these are not wanted. */
bool image_make(struct image_reader *r, size_t h, size_t w);
#endif
