/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * image.h -- images as red, green and blue: PNG, JPEG, PPM and PGM files
 *
 * The kind is told by the first bytes. What transformers' processors make of a file comes out: palettes and
 * fewer bits are spread over 0..255, gray is three equal channels, of 16 bits the high byte counts, and
 * what is transparent lies on white: round((c · a + 255 (255 - a))/255). Gamma, profiles and the
 * orientation that a camera notes change nothing. Refused by name: PNG of 16-bit gray (Pillow clips it),
 * JPEG of CMYK, PPM and PGM whose maximum is not 255.
 */
#ifndef VISION_IMAGE_H
#define VISION_IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pixels and bytes of a file, at most. */
enum { IMAGE_PIXELS = 1 << 26, IMAGE_BYTES = 1 << 28 };

struct image {
	size_t h, w;
	uint8_t *rgb;		/* [h, w, 3]; free() it */
};

/* The file at path ("-": standard input). Dies, naming it, where it is damaged, cut, or claims more pixels
 * than its bytes can hold: nothing is allocated for those. */
struct image image_read(const char *path);
/* Height and width by the header, with rgb NULL: nothing is decoded, and damage after the header not seen. */
struct image image_extents(const char *path);
/* Both for n bytes of a file, which may be none; name: for messages. */
struct image image_parse(const char *name, size_t n, const unsigned char *bytes, bool pixels);
#endif
