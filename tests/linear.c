/* SPDX-License-Identifier: GPL-3.0-or-later */
/* linear -- effective weights and rounded inputs of a layer, element by element against their formulas */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "num/code_form.h"
#include "quant/linear.h"
#include "quant/pack.h"

enum { OUT = 5, IN = 300, TOKENS = 4 };

static uint8_t codes[OUT][IN], zero[OUT * IN];
static float scale[OUT * IN], scale8[OUT], w[OUT][IN];
static int32_t group_index[IN];

static struct linear layer(const char *storage, const char *compute, long group)
{
	struct linear l = { .out = OUT, .in = IN, .codes = codes[0], .scale = scale, .group = group,
		.groups = linear_groups(IN, group), .scale8 = scale8, .scales8 = 1 };

	assert_true(format_parse(&l.storage, storage));
	if (compute)
		assert_true(format_parse(&l.compute, compute));
	if (l.storage.asymmetric)
		l.zero = zero;
	for (int i = 0; i < OUT * IN; i++) {
		codes[i / IN][i % IN] = (uint8_t)(i * 7 % (1 << l.storage.bits));
		zero[i] = (uint8_t)(i * 5 % (1 << l.storage.bits));
		scale[i] = (float)(1 + i % 11) * 3.7f;
	}
	for (int i = 0; i < OUT; i++)
		scale8[i] = (float)(i + 1) / 3;
	return l;
}

static void check(const struct linear *l)
{
	memset(w, 0, sizeof w);
	linear_weight(l, 1, OUT - 1, w);
	for (size_t o = 1; o < OUT; o++)
		for (size_t i = 0; i < IN; i++) {
			size_t of_row = l->group_index ? (size_t)group_index[i] :
				l->group > 0 ? i / (size_t)l->group : 0;
			size_t g = l->group == -1 ? 0 : o * l->groups + of_row;
			float z = l->zero ? zero[g] : 0, one = 1;
			float v = (l->storage.grid[codes[o][i]] - z) *
				(l->scale_tensor ? scale[g] / *l->scale_tensor : scale[g]);

			if (l->compute.kind) {
				uint8_t c;

				format_encode(&l->compute, 1, &c, &v, &one, NULL);
				v = l->compute.grid[c];
				if (l->saturate > 0)
					v = fmaxf(-l->saturate, fminf(l->saturate, v));
				v *= scale8[l->scales8 > 1 ? o : 0];
			}
			assert_true(w[o - 1][i] == v);
		}
}

static void weights(void **unused)
{
	static const char *const storages[] = { "uint4", "int4", "uint8", "uint1", "e4m3fn", "nvfp4" };
	static const float divisor = 3.3f;
	static const char *const computes[] = { NULL, "e4m3fn", "e4m3ieee" };
	static const long groups[] = { 32, 128, 1000, 0, -1 };

	(void)unused;
	for (int s = 0; s < 6; s++)
		for (int c = 0; c < 3; c++)
			for (int g = 0; g < 5; g++) {
				CASE("%s, computes[%d], group %ld", storages[s], c, (long)groups[g]);
				struct linear l = layer(storages[s], computes[c], groups[g]);

				check(&l);
				l.scales8 = OUT;
				check(&l);
				l.saturate = 224;
				check(&l);
				l.scale_tensor = &divisor;
				check(&l);
				for (int i = 0; i < IN; i++)
					group_index[i] = (int32_t)((size_t)(i * 17) % l.groups);
				l.group_index = group_index;
				if (groups[g] > 0)
					check(&l);
			}
}

/* Tiles of 2 x 4 weights; a value consists of the code and the position in the tile. */
enum { TALL = 2, WIDE = 4 };

static void decode_places(const struct format *f, size_t row, size_t i, size_t n, float x[n],
	const uint8_t code[], const float s[n], const uint8_t z[n])
{
	const size_t bytes = code_bytes(f);

	for (size_t j = i; j < i + n; j++) {
		const uint8_t *c = code + j / WIDE * bytes;
		const size_t value = c[0] + (bytes > 1 ? 256u * c[1] : 0);

		x[j - i] = (float)(value * 8 + row * WIDE + j % WIDE - z[j - i]) * s[j - i];
	}
}

/* Codes of one and two bytes, in rows of tiles, and packed; the last tiles reach beyond the layer. */
static void tiles(void **unused)
{
	static const struct code_form places = { TALL, WIDE, decode_places, NULL, false };
	enum { ROWS = (OUT + TALL - 1) / TALL, TILES = (IN + WIDE - 1) / WIDE };
	uint8_t tile[ROWS * 2 * TILES];
	uint32_t words[ROWS * 8 * TILES];

	(void)unused;
	for (int bits = 5; bits <= 16; bits += bits < 8 ? 1 : 8)
		for (int packed = 0; packed <= (bits <= 8); packed++) {
			CASE("%d bits, packed %d", bits, packed);
			struct linear l = layer("uint4", NULL, 50);
			const size_t bytes = (size_t)(bits + 7) / 8, row = TILES * bytes;

			l.storage.form = &places, l.storage.bits = bits;
			assert_false(linear_has_grid(&l));
			assert_int_equal(code_packs(&l.storage), bits <= 8);
			assert_int_equal(code_rows(&l.storage, OUT), ROWS);
			assert_int_equal(code_columns(&l.storage, IN), row);
			assert_true(code_bits(&l.storage, OUT, IN) == bits * ROWS * TILES);
			for (size_t k = 0; k < ROWS * row; k++)
				tile[k] = (uint8_t)(k * 7 % (1u << (bits < 8 ? bits : 8)));
			for (size_t r = 0; packed && r < ROWS; r++)
				pack_row(bits, row, words + r * pack_words(bits, row), tile + r * row);
			l.codes = packed ? NULL : tile, l.packed = packed ? words : NULL;
			linear_weight(&l, 0, OUT, w);
			for (size_t o = 0; o < OUT; o++)
				for (size_t i = 0; i < IN; i++) {
					const uint8_t *c = tile + o / TALL * row + i / WIDE * bytes;
					const size_t value = c[0] + (bytes > 1 ? 256u * c[1] : 0);
					const size_t g = o * l.groups + i / 50;

					assert_true(w[o][i] == (float)(value * 8 + o % TALL * WIDE +
						i % WIDE - zero[g]) * scale[g]);
				}
			linear_columns(&l, 3, 32, 100, w[0]);
			linear_columns(&l, 3, 0, 256, w[1]);
			assert_memory_equal(w[0], w[1] + 32, 100 * sizeof(float));
		}
}

static void group_counts(void **unused)
{
	struct linear l = { .in = 10, .group = 4 };

	(void)unused;
	assert_int_equal(linear_groups(10, 4), 3);
	assert_int_equal(linear_groups(8, 4), 2);
	assert_int_equal(linear_groups(8, 100), 1);
	assert_int_equal(linear_groups(8, 0), 1);
	assert_int_equal(linear_groups(8, -1), 1);
	assert_int_equal(linear_group(&l, 3), 0);
	assert_int_equal(linear_group(&l, 9), 2);
	l.group = -1;
	assert_int_equal(linear_group(&l, 9), 0);
	l.group = 0;
	assert_int_equal(linear_group(&l, 9), 0);
}

static void plain(void **unused)
{
	static uint16_t half[OUT][IN];
	struct linear l = { .out = OUT, .in = IN, .weight = half, .weight_type = HALF_BF16 };
	static float f[OUT][IN];

	(void)unused;
	for (int i = 0; i < OUT * IN; i++)
		half[i / IN][i % IN] = (uint16_t)(0x3f80 + i % 128);
	linear_weight(&l, 2, 2, w);
	assert_true(w[0][0] == 1 + (2 * IN % 128) / 128.f && w[1][5] == 1 + ((3 * IN + 5) % 128) / 128.f);
	for (int i = 0; i < OUT * IN; i++)
		f[i / IN][i % IN] = (float)i;
	l.weight = f;
	l.weight_type = HALF_NONE;
	linear_weight(&l, 4, 1, w);
	assert_true(w[0][299] == 4 * IN + 299);
	linear_columns(&l, 3, 256, IN - 256, w[1]);
	assert_true(w[1][0] == 3 * IN + 256 && w[1][43] == 3 * IN + 299 && w[1][44] != 3 * IN + 300);
}

static void inputs(void **unused)
{
	static float x[TOKENS][IN], y[TOKENS][IN], expected[TOKENS][IN];
	const float act_scale[] = { 0.01f, 0.5f };
	const uint8_t modality[TOKENS] = { 1, 0, 1, 0 };
	struct linear l = { .out = OUT, .in = IN, .input.scale = act_scale, .input.modalities = 2 };

	(void)unused;
	assert_true(format_parse(&l.input.format, "e4m3ieee"));
	for (int t = 0; t < TOKENS - 1; t++)	/* the last token remains 0 */
		for (int i = 0; i < IN; i++)
			x[t][i] = (float)sin(i + 100 * t) * (float)(t + 1) * 3;
	linear_input(&l, TOKENS, y, (const float (*)[IN])x, NULL);
	assert_memory_equal(y, x, sizeof x);
	for (int mode = INPUT_STATIC_TENSOR; mode <= INPUT_STATIC_MODALITY; mode++) {
		CASE("mode %d", mode);
		l.input.mode = (enum input_mode)mode;
		for (int t = 0; t < TOKENS; t++) {
			float s = act_scale[mode == INPUT_STATIC_TENSOR ? 0 : modality[t]], max = 0;

			for (int i = 0; i < IN; i++)
				max = fmaxf(max, fabsf(x[t][i]));
			if (mode == INPUT_DYNAMIC_TOKEN)
				s = max > 0 ? max / 240 : 1;
			format_round(&l.input.format, IN, expected[t], x[t], s, 0);
			if (mode == INPUT_DYNAMIC_TOKEN)
				for (int i = 0; i < IN; i++)
					assert_true(fabsf(expected[t][i] - x[t][i]) <=
						fabsf(x[t][i]) / 15 + max * 1e-5f);
		}
		linear_input(&l, TOKENS, y, (const float (*)[IN])x, modality);
		assert_memory_equal(y, expected, sizeof y);
		memcpy(y, x, sizeof y);
		linear_input(&l, TOKENS, y, (const float (*)[IN])y, modality);
		assert_memory_equal(y, expected, sizeof y);
	}
}

/* Every type of activation format against the nearest of its values: y/s is as close to x/s as any value. */
static void input_formats(void **unused)
{
	static const char *const names[] = { "e2m1", "e2m2", "e2m3", "e3m4", "e4m0", "e4m3", "e5m2", "e0m5",
		"e4m3fn", "e4m3ieee", "e5m2ieee",
		"int2", "int4", "int8", "nf4", "nf8" };
	static float x[TOKENS][IN], y[TOKENS][IN];
	struct linear l = { .out = OUT, .in = IN, .input.modalities = 1 };
	float act_scale;

	(void)unused;
	l.input.scale = &act_scale;
	for (int t = 0; t < TOKENS; t++)
		for (int i = 0; i < IN; i++)
			x[t][i] = (float)(sin(i * 1.7 + 100 * t) * exp(sin(i * 0.3) * 4)) * (float)t;
	for (size_t f = 0; f < sizeof names / sizeof *names; f++)
		for (int dynamic = 0; dynamic < 2; dynamic++) {
			CASE("%s, dynamic %d", names[f], dynamic);
			assert_true(format_parse(&l.input.format, names[f]));
			l.input.mode = dynamic ? INPUT_DYNAMIC_TOKEN : INPUT_STATIC_TENSOR;
			act_scale = 40 / l.input.format.max;	/* some are beyond it */
			linear_input(&l, TOKENS, y, (const float (*)[IN])x, NULL);
			for (int t = 0; t < TOKENS; t++) {
				float max = 0, s;

				for (int i = 0; i < IN; i++)
					max = fmaxf(max, fabsf(x[t][i]));
				s = !dynamic ? act_scale : max > 0 ? max / l.input.format.max : 1;
				for (int i = 0; i < IN; i++) {
					double v = (double)x[t][i] / (double)s;
					double min = INFINITY, other = INFINITY;

					for (int c = 0; c < 256; c++) {
						float value = l.input.format.grid[c] * s;

						min = fmin(min, fabs((double)l.input.format.grid[c] - v));
						other = fmin(other, fabs((double)value - (double)y[t][i]));
					}
					assert_true(other == 0);	/* it is a value of the format */
					assert_true(fabs((double)y[t][i] / (double)s - v) <=
						min + fabs(v) * 2e-7);
				}
			}
		}
}

/* The scale of a token is from the columns that are in the weight, times clip. */
static void input_scales(void **unused)
{
	static const int32_t some[] = { 0, 3, 4, IN - 1 };
	float x[IN], max = 0;
	struct linear l = { .out = OUT, .in = IN, .input.mode = INPUT_DYNAMIC_TOKEN }, other;

	(void)unused;
	assert_true(format_parse(&l.input.format, "int8"));
	for (int i = 0; i < IN; i++)
		x[i] = (float)(i % 7 - 3) / 8;
	for (int k = 0; k < 4; k++)
		x[some[k]] = (float)(10 - k);
	other = l;
	assert_true(linear_input_scale(&l, x, 0) == 10 / 127.0f);
	for (size_t splits = 1; splits <= 4; splits++) {
		CASE("splits %zu", splits);
		l.splits = splits, l.split_index = some;
		max = splits < 4 ? (float)(10 - splits) : 3 / 8.0f;
		l.input.clip = 0;
		assert_true(linear_input_scale(&l, x, 0) == max / 127);
		l.input.clip = 0.75f;
		assert_true(linear_input_scale(&l, x, 0) == 0.75f * max / 127);
		l.input.clip = 0;
		assert_false(linear_inputs_agree(&l, &other));
		other.splits = splits, other.split_index = some;
		assert_true(linear_inputs_agree(&l, &other));
	}
	other.input.clip = 0.5f;
	assert_false(linear_inputs_agree(&l, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights), cmocka_unit_test(tiles), cmocka_unit_test(group_counts),
		cmocka_unit_test(plain),
		cmocka_unit_test(inputs), cmocka_unit_test(input_formats), cmocka_unit_test(input_scales),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
