/* SPDX-License-Identifier: GPL-3.0-or-later */
/* image.c -- see image.h; PPM and PGM files */
#include "vision/image.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/contents.h"
#include "vision/image_jpeg_private.h"

const char *image_refusal(size_t h, size_t w, size_t max)
{
	if (!h || !w)
		return "has no pixels";
	if (h > IMAGE_PIXELS / w)
		return "has more pixels than the 2^26 that are read";
	return h * w > max ? "is cut short: its pixels cannot be in so few bytes" : NULL;
}

bool image_make(struct image_reader *r, size_t h, size_t w)
{
	r->y = (struct image){ h, w, r->pixels ? xalloc(h * w, 3) : NULL };
	return r->pixels;
}

/* Reads a number of the header, after blanks and comments; 0 if it is missing. Digits of a number above the
 * limit are skipped. */
static size_t pnm_number(struct image_reader *r)
{
	size_t v = 0;

	while (r->used < r->n && (isspace(r->bytes[r->used]) || r->bytes[r->used] == '#')) {
		if (r->bytes[r->used] == '#')
			while (r->used < r->n && r->bytes[r->used] != '\n')
				r->used++;
		r->used += r->used < r->n;
	}
	for (; r->used < r->n && isdigit(r->bytes[r->used]); r->used++)
		v = v > IMAGE_PIXELS ? v : 10 * v + r->bytes[r->used] - '0';
	return v;
}

static bool pnm_parse(struct image_reader *r)
{
	const size_t channels = r->bytes[1] == '6' ? 3 : 1;
	size_t w, h, max, left;
	const char *why;

	r->used = 2;
	w = pnm_number(r), h = pnm_number(r), max = pnm_number(r);
	why = image_refusal(h, w, IMAGE_PIXELS);
	if (!why && max != 255)
		why = "is a PPM or PGM whose maximum is not 255, expected 8 bits";
	if (!why && (r->used == r->n || !isspace(r->bytes[r->used++])))
		why = "is a PPM or PGM whose header does not end in a blank";
	left = r->n - r->used;
	if (!why && left != h * w * channels)
		why = left < h * w * channels ? "is cut short: a pixel takes 1 byte of PGM, 3 of PPM" :
			"has data after its pixels";
	if (why) {
		snprintf(r->why, sizeof r->why, "%s", why);
		return false;
	}
	for (size_t i = 0, n = image_make(r, h, w) ? 3 * h * w : 0; i < n; i++)
		r->y.rgb[i] = r->bytes[r->used + (channels == 3 ? i : i / 3)];
	return true;
}

static const struct file_reader {
	const char *magic;
	bool (*parse)(struct image_reader *r);
} kinds[] = {
	{ "\x89PNG\r\n\x1a\n", image_png }, { "\xff\xd8\xff", image_jpeg },
	{ "P5", pnm_parse }, { "P6", pnm_parse },
};

struct image image_parse(const char *name, size_t n, const unsigned char *bytes, bool pixels)
{
	struct image_reader r = { .name = name, .bytes = bytes, .n = n, .pixels = pixels };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (n > strlen(kinds[i].magic) && !memcmp(bytes, kinds[i].magic, strlen(kinds[i].magic))) {
			if (kinds[i].parse(&r))
				return r.y;
			free(r.y.rgb);
			die("%s: %s", name, r.why);
		}
	die("%s: is not a supported image file, expected PNG, JPEG, PPM or PGM (P6, P5)", name);
}

static struct image read_file(const char *path, bool pixels)
{
	size_t n;
	char *bytes = contents_read(path, IMAGE_BYTES, &n);
	struct image y = image_parse(strcmp(path, "-") ? path : "<stdin>", n,
		(const unsigned char *)bytes, pixels);

	free(bytes);
	return y;
}

struct image image_read(const char *path)
{
	return read_file(path, true);
}

struct image image_extents(const char *path)
{
	return read_file(path, false);
}
