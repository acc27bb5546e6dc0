/* SPDX-License-Identifier: GPL-3.0-or-later */
/* image_png.c -- PNG files, by libpng; see image_private.h */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "vision/image_private.h"

enum { DEFLATE_MAX = 1032 };	/* most bytes of one compressed byte: two bits make 258 */

static void png_fails(png_structp png, const char *what)
{
	struct image_reader *r = png_get_error_ptr(png);

	snprintf(r->why, sizeof r->why, "is a damaged PNG: %s", what);
	longjmp(r->back, 1);
}

static void png_warns(png_structp png, const char *what)
{
	(void)png, (void)what;
}

static void png_gives(png_structp png, png_bytep to, size_t n)
{
	struct image_reader *r = png_get_io_ptr(png);

	if (n > r->n - r->used)
		png_error(png, "it is cut short");
	memcpy(to, r->bytes + r->used, n);
	r->used += n;
}

static _Noreturn void png_refuse(png_structp png, const char *what)
{
	struct image_reader *r = png_get_error_ptr(png);

	snprintf(r->why, sizeof r->why, "%s", what);
	longjmp(r->back, 1);
}

/* Sets up conversion of all types to four channels of 8 bits; returns the number of passes over the rows. */
static int png_prepare(png_structp png, png_infop info, const struct image_reader *r)
{
	const size_t w = png_get_image_width(png, info), h = png_get_image_height(png, info);
	const int type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
	const char *why = image_refusal(h, w,
		r->n * DEFLATE_MAX * 8 / ((size_t)depth * png_get_channels(png, info)));
	int passes;

	if (why)
		png_refuse(png, why);
	if (type == PNG_COLOR_TYPE_GRAY && depth == 16)
		png_refuse(png, "is a PNG of 16-bit gray, which no processor reads as it is meant, "
			"expected 8 bits");
	png_set_strip_16(png);
	png_set_expand(png);
	png_set_gray_to_rgb(png);
	png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
	passes = png_set_interlace_handling(png);
	png_read_update_info(png, info);
	if (png_get_rowbytes(png, info) != 4 * w)
		png_refuse(png, "is a PNG of a kind that is not known");
	return passes;
}

/* Lays a row over white. */
static void drop_alpha(size_t w, uint8_t rgb[w][3], const uint8_t rgba[w][4])
{
	for (size_t i = 0; i < w; i++)
		for (size_t c = 0; c < 3; c++)
			rgb[i][c] = (uint8_t)((rgba[i][c] * rgba[i][3] + 255 * (255 - rgba[i][3]) + 127) /
				255);
}

static void png_rows(png_structp png, struct image_reader *r, uint8_t *rgba, int passes)
{
	const size_t w = r->y.w;

	for (int pass = 0; pass < passes; pass++)
		for (size_t i = 0; i < r->y.h; i++) {
			uint8_t *row = rgba + (passes > 1 ? i * w * 4 : 0);

			png_read_row(png, row, NULL);
			if (pass + 1 == passes)
				drop_alpha(w, (void *)(r->y.rgb + i * w * 3), (void *)row);
		}
}

bool image_png(struct image_reader *r)
{
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, png_fails, png_warns);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	uint8_t *volatile rgba = NULL;
	volatile bool good = false;
	int passes;

	if (!info)
		die("%s: libpng has no memory", r->name);
	if (!setjmp(r->back)) {
		png_set_read_fn(png, r, png_gives);
		png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
		png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);	/* image_refusal() checks */
		png_set_chunk_malloc_max(png, 1 << 20);
		png_read_info(png, info);
		passes = png_prepare(png, info, r);
		if (image_make(r, png_get_image_height(png, info), png_get_image_width(png, info))) {
			rgba = xalloc(passes > 1 ? r->y.h * r->y.w : r->y.w, 4);
			png_rows(png, r, rgba, passes);
			png_read_end(png, NULL);
		}
		good = true;
	}
	png_destroy_read_struct(&png, &info, NULL);
	free(rgba);
	return good;
}
