/* SPDX-License-Identifier: GPL-3.0-or-later */
/* resample.c -- images in another size: against sums in double by the definition, and bit for bit against
 * Pillow */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "images.h"
#include "vision/resample.h"

static uint8_t *resized(enum resample kind, size_t height, size_t width, size_t h, size_t w,
	const uint8_t *in)
{
	uint8_t *out = xalloc(height * width, 3);
	const size_t n = resample_workspace(kind, h, w, height, width);
	unsigned char *workspace = xalloc(n + 8, 1);

	memset(workspace, 0xa5, n + 8);
	resample(kind, height, width, (void *)out, h, w, (const void *)in, workspace);
	for (size_t i = n; i < n + 8; i++)
		assert_int_equal(workspace[i], 0xa5);
	free(workspace);
	return out;
}

static uint8_t *drawn(size_t h, size_t w, uint64_t seed, bool extremes)
{
	struct random_stream s = random_open(seed, "pictures");
	uint8_t *y = xalloc(h * w, 3);

	for (size_t i = 0; i < 3 * h * w; i++) {
		const uint8_t v = (uint8_t)random_bits(&s, i);

		y[i] = extremes ? (uint8_t)(v & 1 ? 255 : 0) : v;
	}
	return y;
}

/* borders: the borders of a box that count, a bit each. Comparison with Pillow allows any of them. */
static double shape(enum resample kind, double x, unsigned borders)
{
	const bool low = borders & 1, high = borders & 2;

	if (kind == RESAMPLE_BOX)
		return x > (low ? -0.5 - 1e-9 : -0.5 + 1e-9) && x < (high ? 0.5 + 1e-9 : 0.5 - 1e-9);
	x = fabs(x);
	switch (kind) {
	case RESAMPLE_BILINEAR:
		return x < 1 ? 1 - x : 0;
	case RESAMPLE_HAMMING:
		return x == 0 ? 1 : x < 1 ? sin(M_PI * x) / (M_PI * x) * (0.54 + 0.46 * cos(M_PI * x)) : 0;
	case RESAMPLE_BICUBIC:
		return x < 1 ? 1.5 * x * x * x - 2.5 * x * x + 1 :
			x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
	default:
		return x == 0 ? 1 : x < 3 ? sin(M_PI * x) * sin(M_PI * x / 3) * 3 / (M_PI * M_PI * x * x) : 0;
	}
}

/* Position x of a line of m made from n samples: the definition, over all samples. */
static double line(enum resample kind, size_t n, size_t m, size_t x, const uint8_t *in, size_t step,
	unsigned borders)
{
	const double c = ((double)x + 0.5) * (double)n / (double)m, s = n > m ? (double)n / (double)m : 1;
	const double reach = s * (kind == RESAMPLE_LANCZOS ? 3 : kind == RESAMPLE_BICUBIC ? 2 : 1);
	double sum = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		const double d = (double)i + 0.5 - c, f = fabs(d) <= reach ? shape(kind, d / s, borders) : 0;

		all += f;
		sum += f * in[i * step];
	}
	return fmin(fmax(sum / all, 0), 255);
}

/* The sample at the position; either one if it is the border of two. */
static bool is_nearest(size_t n, size_t m, size_t x, const uint8_t *in, size_t step, uint8_t got)
{
	const double c = ((double)x + 0.5) * (double)n / (double)m;

	return got == in[(size_t)(c * (1 - 1e-12)) * step] ||
		(c * (1 + 1e-12) < (double)n && got == in[(size_t)(c * (1 + 1e-12)) * step]);
}

/* Rounding, and weights with errors of 2^-23. */
static void check_line(enum resample kind, size_t n, size_t m, bool down, bool extremes)
{
	uint8_t *in = drawn(n, 1, 7 * n + m, extremes);
	uint8_t *out = down ? resized(kind, m, 1, n, 1, in) : resized(kind, 1, m, 1, n, in);
	const double max = 0.5 + (double)(6 * n / m + 8) * 255 * 0x1p-23;

	for (size_t x = 0; x < m; x++)
		for (size_t c = 0; c < 3; c++) {
			const uint8_t got = out[3 * x + c];
			double want = in[c];
			bool near = false;

			for (unsigned borders = 0; kind && borders < 4 && !near; borders++) {
				want = line(kind, n, m, x, in + c, 3, borders);
				near = fabs(got - want) <= max;
			}
			if (kind ? !near : !is_nearest(n, m, x, in + c, 3, got))
				fail_msg("kind %d, %zu to %zu%s, position %zu: %d, expected %g", kind, n, m,
					down ? " down" : "", x, got, want);
		}
	free(in), free(out);
}

static void test_lines(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 8, 13, 21, 50, 333 };
	const size_t count = sizeof sizes / sizeof *sizes;

	(void)state;
	for (int kind = 0; kind < RESAMPLES; kind++)
		for (size_t i = 0; i < count * count * 4; i++)
			check_line((enum resample)kind, sizes[i / 4 / count], sizes[i / 4 % count], i & 1,
				i & 2);
}

/* Horizontally, rounded, then vertically; a single colour and an image of the same size are unchanged. */
static void test_passes(void **state)
{
	(void)state;
	for (int kind = 0; kind < RESAMPLES; kind++) {
		CASE("kind %d", kind);
		uint8_t *in = drawn(23, 31, 5, true), *flat = xalloc(23 * 31, 3);
		uint8_t *same = resized((enum resample)kind, 23, 31, 23, 31, in);
		uint8_t *across = resized((enum resample)kind, 23, 12, 23, 31, in);
		uint8_t *down = resized((enum resample)kind, 40, 12, 23, 12, across);
		uint8_t *both = resized((enum resample)kind, 40, 12, 23, 31, in), *one;

		assert_memory_equal(same, in, 23 * 31 * 3);
		assert_memory_equal(both, down, 40 * 12 * 3);
		memset(flat, 201, 23 * 31 * 3);
		one = resized((enum resample)kind, 40, 12, 23, 31, flat);
		for (size_t i = 0; i < 40 * 12 * 3; i++)
			assert_int_equal(one[i], 201);
		free(in), free(flat), free(same), free(across), free(down), free(both), free(one);
	}
}

static void test_pillow(void **state)
{
	struct reference r = reference_open();
	const json_t *one;
	size_t i, h, w, seen = 0;

	(void)state;
	json_array_foreach(json_object_get(r.index, "resized"), i, one) {
		const uint8_t *in = reference_image(&r, one, &h, &w);
		const size_t kind = reference_size(one, "kind"), height = reference_size(one, "h");
		const size_t width = reference_size(one, "w");
		uint8_t *out = resized((enum resample)kind, height, width, h, w, in);
		char *digest = digest_of(3 * height * width, (const char *)out);

		if (strcmp(digest, json_string_value(json_object_get(one, "sha256"))))
			fail_msg("kind %zu, %zu x %zu to %zu x %zu: not Pillow's", kind, h, w, height, width);
		seen++;
		free(out), free(digest);
	}
	assert_true(seen >= 150);
	reference_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_passes),
		cmocka_unit_test(test_pillow) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
