/* SPDX-License-Identifier: GPL-3.0-or-later */
/* image.c -- files of every kind against the results of Pillow and transformers; tests/images-import.t has
 * bad files */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "images.h"
#include "vision/image.h"

static void test_decoded(void **state)
{
	struct reference r = reference_open();
	const json_t *one;
	size_t i, seen = 0;

	(void)state;
	json_array_foreach(json_object_get(r.index, "decoded"), i, one) {
		const char *file = json_string_value(json_object_get(one, "file"));
		char *path = xformat("tests/fuzz/seeds/image/%s", file);
		const struct image p = image_read(path), header = image_extents(path);
		size_t h, w;
		const uint8_t *wanted = reference_bytes(&r, one, &h, &w);

		assert_int_equal(p.h, h);
		assert_int_equal(p.w, w);
		assert_true(header.h == h && header.w == w && !header.rgb);
		if (memcmp(p.rgb, wanted, 3 * h * w))
			fail_msg("%s: other pixels than Pillow's", path);
		seen++;
		free(p.rgb), free(path);
	}
	assert_true(seen >= 28);
	reference_close(&r);
}

/* A PGM and a PPM of the same grays are the same image, for any blanks in the header. */
static void test_pnm(void **state)
{
	static const unsigned char gray[] = "P5\t3#c\n#d\n\r1 255 \0\200\377",
		rgb[] = "P6 3 1 255\n\0\0\0\200\200\200\377\377\377";
	struct image a = image_parse("a", sizeof gray - 1, gray, true);
	struct image b = image_parse("b", sizeof rgb - 1, rgb, true);

	(void)state;
	assert_int_equal(a.h, 1);
	assert_int_equal(a.w, 3);
	assert_memory_equal(a.rgb, b.rgb, 9);
	assert_int_equal(a.rgb[4], 128);
	free(a.rgb), free(b.rgb);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_decoded), cmocka_unit_test(test_pnm) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
