/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * image.c -- any bytes as an image, and the image through a processor
 *
 * Inputs that begin with '{' are a processor, which receives an image. For PNG, checksums are also corrected,
 * since else no input would pass them.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "survive.h"
#include "vision/image.h"
#include "vision/processor.h"

enum { MAX = 1 << 16 };	/* max pixels that are processed: time grows with them, coverage does not */

struct run { const unsigned char *data; size_t n; char *text; };

static void process(const char *text, size_t h, size_t w, const uint8_t *rgb)
{
	const struct processor p = processor_parse("fuzz", text);
	size_t height, width;
	float *pixels;

	processor_size(&p, h, w, &height, &width);
	if (!height || !width)
		abort();
	if (height * width > MAX || h * width > MAX)
		return;
	pixels = xalloc(3 * height * width, sizeof *pixels);
	processor_run(&p, height, width, (void *)pixels, h, w, (const void *)rgb);
	survive_use(pixels, 3 * height * width * sizeof *pixels);
	free(pixels);
}

static void image(void *arg)
{
	static const char qwen[] = "{\"image_processor_type\": \"Qwen2VLImageProcessor\", \"patch_size\": 3, "
		"\"merge_size\": 2, \"min_pixels\": 36, \"max_pixels\": 360}";
	const struct run *r = arg;
	struct image y = image_parse("fuzz", r->n, r->data, true);

	survive_use(y.rgb, 3 * y.h * y.w);
	if (y.h * y.w <= MAX)
		process(qwen, y.h, y.w, y.rgb);
	free(y.rgb);
}

static void processor(void *arg)
{
	static const uint8_t some[5][7][3] = { { { 255, 0, 9 } } };
	const struct run *r = arg;

	process(r->text, 5, 7, (const uint8_t *)some);
}

static uint32_t crc(size_t n, const unsigned char p[n])
{
	uint32_t c = 0xffffffff;

	for (size_t i = 0; i < n; i++) {
		c ^= p[i];
		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
	}
	return ~c;
}

/* Corrects the checksums of chunks, as far as their lengths are valid. */
static void mend(size_t n, unsigned char p[n])
{
	for (size_t at = 8; at + 12 <= n;) {
		const size_t length = (size_t)p[at] << 24 | p[at + 1] << 16 | p[at + 2] << 8 | p[at + 3];
		uint32_t c;

		if (length > n - at - 12)
			return;
		c = crc(length + 4, p + at + 4);
		at += length + 12;
		for (int k = 0; k < 4; k++)
			p[at - 4 + (size_t)k] = (unsigned char)(c >> (24 - 8 * k));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct run r = { data, n, malloc(n + 1) };

	if (!r.text)
		return 0;
	memcpy(r.text, data, n);
	r.text[n] = 0;
	attempt(n && *data == '{' ? processor : image, &r);
	if (n && *data == 0x89) {
		mend(n, (unsigned char *)r.text);
		r.data = (const unsigned char *)r.text;
		attempt(image, &r);
	}
	survive_forget();
	free(r.text);
	return 0;
}
