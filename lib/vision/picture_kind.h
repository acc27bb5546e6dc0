/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * picture_kind.h -- the kinds of picture files, each of which fills in a picture or says why it does not
 *
 * A kind works on the bytes of a file in memory. It believes the size in a header only where the bytes
 * could fill it. libpng and libjpeg leave by longjmp(), into a function that gives back what they hold.
 */
#ifndef VISION_PICTURE_KIND_H
#define VISION_PICTURE_KIND_H
#include <setjmp.h>
#include <stdbool.h>
#include "vision/picture.h"

/* What changes behind a setjmp() is in here, not in variables of the function. */
struct picture_reader {
	const char *name;		/* for messages */
	const unsigned char *bytes;	/* [n] of the file */
	size_t n, used;
	struct picture y;		/* rgb is freed by the caller where the file is refused */
	char why[256];			/* it is refused */
	jmp_buf back;
};

/* False: the file is refused. */
bool picture_png(struct picture_reader *r);

/* Why a picture of h x w pixels is not read, or NULL. most: pixels that the bytes of the file can hold. */
const char *picture_unfit(size_t h, size_t w, size_t most);
/* Memory for the pixels. */
void picture_make(struct picture_reader *r, size_t h, size_t w);
#endif
