/* SPDX-License-Identifier: GPL-3.0-or-later */
/* processor.c -- images through processors against the classes of transformers, and the number of their
 * tokens */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "case.h"
#include "images.h"
#include "vision/processor.h"
#include "vision/vision.h"

/* Steps of 255, before normalization: in integers, so that they equal those of Pillow exactly. */
static long step(const struct processor *p, size_t c, float x)
{
	const double v = p->normalize ? x * p->std[c] + p->mean[c] : x, y = p->rescale ? v / p->factor : v;

	assert_true(fabs(y - nearbyint(y)) < 1e-3);
	return lrint(y);
}

static void check_one(const struct reference *r, const json_t *one)
{
	char *config = json_dumps(json_object_get(one, "config"), 0);
	const struct processor p = processor_parse("reference", config);
	const json_t *corner = json_object_get(one, "corner");
	size_t h, w, rows, columns, height, width;
	const uint8_t *in = reference_image(r, one, &h, &w);
	const uint8_t *want = reference_bytes(r, one, &rows, &columns);
	float (*out)[rows][columns] = xalloc(3, sizeof *out);

	processor_size(&p, h, w, &height, &width);
	if (height != rows || width != columns)
		fail_msg("%s: %zu x %zu, expected %zu x %zu", config, height, width, rows, columns);
	processor_run(&p, rows, columns, out, h, w, (const void *)in);
	for (size_t c = 0; c < 3; c++) {
		const double x = json_number_value(json_array_get(corner, c));
		const float *flat = (const float *)out + c * rows * columns;

		if (fabs(out[c][0][0] - x) > 1e-6 * fmax(1, fabs(x)))
			fail_msg("%s: %.9g, expected %.9g", config, (double)out[c][0][0], x);
		for (size_t i = 0; i < rows * columns; i++)
			if (step(&p, c, flat[i]) != want[3 * i + c])
				fail_msg("%s: channel %zu, pixel %zu: %ld, expected %d", config, c, i,
					step(&p, c, flat[i]), want[3 * i + c]);
	}
	free(config), free(out);
}

static void test_reference(void **state)
{
	struct reference r = reference_open();
	const json_t *one;
	size_t i, seen = 0;

	(void)state;
	json_array_foreach(json_object_get(r.index, "processed"), i, one) {
		check_one(&r, one);
		seen++;
	}
	assert_true(seen >= 35);
	reference_close(&r);
}

/* Formulas for sizes, at sizes of real models. */
static void test_sizes(void **state)
{
#define PADDED ", \"do_pad\": true, \"do_resize\": false, \"do_center_crop\": false}"
#define OF(type) "{\"image_processor_type\": \"" type "ImageProcessor\""
	static const struct { const char *config; size_t h, w, height, width; } rows[] = {
		{ OF("CLIP") ", \"do_center_crop\": false}", 480, 640, 224, 298 },
		{ OF("CLIP") ", \"do_center_crop\": false}", 641, 480, 299, 224 },
		{ "{\"feature_extractor_type\": \"CLIPFeatureExtractor\", \"size\": 336, "
			"\"crop_size\": 336}", 5, 9, 336, 336 },
		{ OF("Siglip") ", \"size\": {\"height\": 384, \"width\": 380}}", 7, 9, 384, 380 },
		{ OF("Llava") PADDED, 480, 640, 640, 640 },
		{ OF("Llava") PADDED, 640, 480, 640, 640 },
		{ OF("Qwen2VL") "}", 1372, 2044, 812, 1204 },
		{ OF("Qwen2VL") "}", 70, 98, 56, 112 },		/* ties to even */
		{ OF("Qwen2VL") "}", 10, 10, 56, 56 },
		{ OF("Qwen2VL") ", \"min_pixels\": 784, \"size\": null}", 10, 1000, 28, 280 },
		{ OF("Qwen2VL") ", \"size\": {\"min_pixels\": 784, \"max_pixels\": 1568}}", 300, 300, 28,
			28 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CASE("rows[%zu] %s", i, rows[i].config);
		const struct processor p = processor_parse("x", rows[i].config);
		size_t height, width;

		processor_size(&p, rows[i].h, rows[i].w, &height, &width);
		if (height != rows[i].height || width != rows[i].width)
			fail_msg("%s: %zu x %zu, expected %zu x %zu", rows[i].config, height, width,
				rows[i].height, rows[i].width);
	}
}

static void test_tokens(void **state)
{
#define LLAVA "{\"model_type\": \"llava\", \"text_config\": {\"vocab_size\": 32064}"
#define TOWER(type) ", \"vision_config\": {\"model_type\": \"" type "_vision_model\"}"
#define FULL ", \"vision_feature_select_strategy\": \"full\""
	static const struct {
		const char *config;
		size_t rows, columns, tokens;
		int32_t placeholder;
	} rows[] = {
		/* CLIP: 576 patches and a class row, which `default` drops */
		{ LLAVA TOWER("clip") "}", 24, 24, 576, 32000 },
		{ LLAVA FULL TOWER("clip") ", \"image_token_index\": 7}", 24, 24, 577, 7 },
		{ LLAVA TOWER("siglip") "}", 24, 24, 575, 32000 },
		{ LLAVA FULL TOWER("siglip") ", \"image_token_id\": 9}", 3, 5, 15, 9 },
		{ LLAVA TOWER("siglip") "}", 1, 1, 0, 32000 },
		/* squares of patches of images of one size; older files have another class here */
		{ "{\"model_type\": \"idefics3\", \"text_config\": {\"vocab_size\": 128259}, "
			"\"vision_config\": {\"image_size\": 364, \"patch_size\": 14}}", 26, 26, 169,
			128257 },
		{ "{\"model_type\": \"smolvlm\", \"text_config\": {}, \"image_token_id\": 9, "
			"\"scale_factor\": 4, \"vision_config\": {\"model_type\": \"idefics3\", "
			"\"image_size\": 512, \"patch_size\": 16}}", 32, 32, 64, 9 },
		{ "{\"model_type\": \"qwen2_vl\", \"vision_config\": {}}", 24, 36, 216, 151655 },
		{ "{\"model_type\": \"qwen2_vl\", \"vision_config\": {\"spatial_merge_size\": 3}}", 9, 6, 6,
			151655 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CASE("rows[%zu] %s", i, rows[i].config);
		struct config c = config_parse("x", rows[i].config);

		assert_int_equal(vision_tokens(&c, rows[i].rows, rows[i].columns), rows[i].tokens);
		assert_int_equal(c.vision.placeholder, rows[i].placeholder);
		config_free(&c);
	}
}

/* Patches in the order of windows, of squares, and of patches within a square: by its definition. */
struct placed { size_t key[6], row, column; };

static int by_window(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	for (size_t i = 0; i < 6; i++)
		if (x->key[i] != y->key[i])
			return x->key[i] < y->key[i] ? -1 : 1;
	return 0;
}

/* The patches that are in one window with patch i. */
static size_t together(size_t n, const struct placed p[n], size_t i)
{
	size_t count = 0;

	for (size_t k = 0; k < n; k++)
		count += p[k].key[0] == p[i].key[0] && p[k].key[1] == p[i].key[1];
	return count;
}

static void check_places(const struct config *c, size_t rows, size_t columns)
{
	const size_t m = c->vision.merge, n = rows * columns, side = c->vision.window ? c->vision.window : n;
	const struct token_image image = { .rows = rows, .columns = columns };
	struct placed *p = xalloc(n, sizeof *p);

	for (size_t i = 0, y, x; i < n; i++) {
		y = i / columns, x = i % columns;
		p[i] = (struct placed){ { y / m / side, x / m / side, y / m, x / m, y % m, x % m }, y, x };
	}
	qsort(p, n, sizeof *p, by_window);
	for (size_t i = 0, end = 0, row, column; i < n; i++) {
		vision_place(c, &image, i, &row, &column);
		assert_true(row == p[i].row && column == p[i].column);
		if (i == end) {		/* the first patch of a window */
			assert_int_equal(vision_window(c, &image, i), together(n, p, i));
			end += together(n, p, i);
		}
	}
	free(p);
}

/* Grids up to 5 x 5 windows; the widths by window_size, as transformers divides it. */
static void test_windows(void **state)
{
	static const struct { const char *config; size_t merge, window; } rows[] = {
		{ "{\"model_type\": \"qwen2_5_vl\", \"vision_config\": {}}", 2, 4 },	/* 112 / 2 / 14 */
		{ "{\"model_type\": \"qwen2_5_vl\", \"vision_config\": {\"window_size\": 83, "
			"\"model_type\": \"qwen2_5_vl\"}}", 2, 2 },
		{ "{\"model_type\": \"qwen2_5_vl\", \"vision_config\": {\"spatial_merge_size\": 3, "
			"\"patch_size\": 5, \"window_size\": 15}}", 3, 1 },
		{ "{\"model_type\": \"qwen2_vl\", \"vision_config\": {}}", 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CASE("rows[%zu] %s", i, rows[i].config);
		struct config c = config_parse("x", rows[i].config);
		const struct stack *encoder = config_encoder(&c);

		assert_int_equal(c.vision.merge, rows[i].merge);
		assert_int_equal(c.vision.window, rows[i].window);
		for (size_t y = 1; y <= 10; y++)
			for (size_t x = 1; x <= 10; x++)
				check_places(&c, y * rows[i].merge, x * rows[i].merge);
		for (size_t b = 0; b < encoder->blocks; b++)	/* blocks 7, 15, 23 and 31 have none */
			assert_int_equal(encoder->slides && encoder->slides[b],
				rows[i].window && b % 8 != 7);
		assert_int_equal(stack_window(encoder, 0), 0);
		config_free(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reference), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_tokens), cmocka_unit_test(test_windows) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
