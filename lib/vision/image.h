/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * image.h -- reads PNG, JPEG, PPM and PGM files as red, green and blue
 *
 * The kind of a file is found by its first bytes. Pixels are those of transformers' processors: palettes
 * are resolved, fewer than 8 bits are expanded to 0..255, gray becomes three equal channels, of 16 bits the
 * high byte is used, and transparent pixels are laid over white: round((c · a + 255 (255 - a))/255). Gamma,
 * profiles and the orientation noted by a camera are ignored.
 *
 * A file that is damaged, cut or not supported is a fatal error. Not supported are PNG of 16-bit gray
 * (Pillow clips it), JPEG of CMYK, and PPM and PGM whose maximum is not 255.
 */
#ifndef VISION_IMAGE_H
#define VISION_IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most pixels and bytes of a file. */
enum { IMAGE_PIXELS = 1 << 26, IMAGE_BYTES = 1 << 28 };

struct image {
	size_t h, w;
	uint8_t *rgb;		/* [h, w, 3]; the caller frees it */
};

/* Reads the file at path ("-": standard input). The error names it. A file whose header has more pixels
 * than its bytes can encode is refused before memory is allocated. */
struct image image_read(const char *path);
/* Reads height and width from the header, with rgb NULL. Nothing is decoded, so damage after the header is
 * not found. */
struct image image_extents(const char *path);
/* Reads an image, or with pixels false its extents, from n ≥ 0 bytes of a file; name: a name for messages. */
struct image image_parse(const char *name, size_t n, const unsigned char *bytes, bool pixels);
#endif
