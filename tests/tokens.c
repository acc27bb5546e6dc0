/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokens.c -- tokens files with images: positions of their tokens, --skip and --limit; tests/images-import.t
 * has bad files */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/history.h"
#include "base/option.h"
#include "case.h"
#include "model/tokens.h"

/* Two sequences of 6 and 6 tokens; images at 1..3, 4..5, and 8..10. */
enum { N = 12, IMAGES = 3 };
static const int64_t spans[IMAGES][2] = { { 1, 3 }, { 4, 2 }, { 8, 3 } };
static char path[] = "/tmp/ptq-tokens.XXXXXX";

static void make(void)
{
	static const struct tool tool = { .name = "tokens", .brief = "", .operands = "", .max_operands = 0 };
	static const struct option_row rows[] = { { .type = OPTION_END } };
	static int32_t id[N], grid[IMAGES][3] = { { 1, 1, 3 }, { 1, 2, 2 }, { 1, 3, 1 } };
	static uint8_t modality[N], rgb[2 * 3 * 3];
	static int64_t sequence[] = { 0, 6, N };
	struct output *out;

	history_begin(&tool, rows, (const char *const []){ NULL });
	out = output_open(path, "tokens");
	for (size_t i = 0; i < IMAGES; i++)
		memset(modality + spans[i][0], 1, (size_t)spans[i][1]);
	output_start(out, 0, 1);
	output_write(out, "/tokens", tensor_1d(TENSOR_I32, id, N));
	output_integer(out, "/tokens", "add_bos", 0);
	output_write(out, "/sequence", tensor_1d(TENSOR_I64, sequence, 3));
	output_write(out, "/modality", tensor_1d(TENSOR_U8, modality, N));
	output_write(out, "/image_span", tensor_2d(TENSOR_I64, (void *)(uintptr_t)spans, IMAGES, 2));
	output_write(out, "/image_grid", tensor_2d(TENSOR_I32, grid, IMAGES, 3));
	for (size_t i = 0; i < IMAGES; i++) {
		char *to = xformat("/images/%zu", i);

		rgb[0] = (uint8_t)(7 + i);
		output_write(out, to, tensor_of(TENSOR_U8, rgb, 3, (const size_t[]){ 2, 3, 3 }));
		free(to);
	}
	output_end(out);
	output_close(out);
}

static void test_places(void **state)
{
	struct part *part = part_open(path, "tokens");
	struct tokens t = tokens_read(part, NULL, 0, false, 0, 0);
	static const int64_t feature[N] = { -1, 0, 1, 2, 3, 4, -1, -1, 5, 6, 7, -1 };

	(void)state;
	assert_int_equal(t.images, IMAGES);
	assert_memory_equal(t.feature, feature, sizeof feature);
	for (size_t i = 0; i < IMAGES; i++) {
		CASE("image %zu", i);
		assert_int_equal(t.image[i].first, spans[i][0]);
		assert_int_equal(t.image[i].n, spans[i][1]);
		assert_int_equal(t.image[i].h, 2);
		assert_int_equal(t.image[i].w, 3);
		assert_int_equal(t.image[i].rgb[0], 7 + i);
	}
	assert_int_equal(t.image[1].frames, 1);
	assert_int_equal(t.image[1].rows, 2);
	assert_int_equal(t.image[2].columns, 1);
	part_close(part);
}

static size_t images_before(size_t token)
{
	size_t n = 0;

	while (n < IMAGES && (size_t)spans[n][0] < token)
		n++;
	return n;
}

/* All tokens of an image or none. */
static void test_limit(void **state)
{
	static const struct { size_t skip, limit, first, n, images, sequences; } rows[] = {
		{ 0, 1, 0, 1, 0, 1 }, { 0, 2, 0, 1, 0, 1 }, { 0, 3, 0, 1, 0, 1 }, { 0, 4, 0, 4, 1, 1 },
		{ 0, 5, 0, 4, 1, 1 }, { 0, 6, 0, 6, 2, 1 }, { 0, 7, 0, 7, 2, 2 }, { 0, 9, 0, 8, 2, 2 },
		{ 0, 10, 0, 8, 2, 2 }, { 0, 11, 0, 11, 3, 2 }, { 0, 12, 0, 12, 3, 2 }, { 0, 99, 0, 12, 3, 2 },
		{ 1, 0, 1, 11, 3, 2 }, { 2, 0, 4, 8, 2, 2 }, { 4, 0, 4, 8, 2, 2 }, { 5, 0, 6, 6, 1, 1 },
		{ 6, 0, 6, 6, 1, 1 }, { 7, 0, 7, 5, 1, 1 }, { 9, 0, 11, 1, 0, 1 }, { 11, 5, 11, 1, 0, 1 },
		{ 2, 5, 4, 3, 1, 2 }, { 6, 3, 6, 2, 0, 1 }, { 7, 3, 7, 1, 0, 1 },
		{ 1, SIZE_MAX, 1, 11, 3, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CASE("rows[%zu]", i);
		struct part *part = part_open(path, "tokens");
		struct tokens t = tokens_read(part, NULL, 0, false, rows[i].skip, rows[i].limit);
		size_t visual = 0;

		assert_int_equal(t.first, rows[i].first);
		assert_int_equal(t.n, rows[i].n);
		assert_int_equal(t.images, rows[i].images);
		assert_int_equal(t.sequences, rows[i].sequences);
		assert_int_equal(t.sequence[0], 0);
		if (t.sequences > 1)
			assert_int_equal(t.sequence[1], 6 - t.first);
		for (size_t k = 0; k < t.images; k++) {
			const struct token_image *image = &t.image[k];

			assert_int_equal(image->number, images_before(t.first) + k);
			assert_int_equal(image->first + t.first, spans[image->number][0]);
			for (size_t j = 0; j < image->n; j++)
				assert_int_equal(t.feature[image->first + j], visual++);
		}
		for (size_t k = 0; k < t.n; k++)
			assert_int_equal(t.feature[k] >= 0, t.modality[k]);
		part_close(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_places), cmocka_unit_test(test_limit) };
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	make();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
