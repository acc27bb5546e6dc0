/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ggml -- blocks of every type, bit for bit, against each number computed by itself in double */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "import/ggml.h"

enum { BLOCKS = 4096, BYTES = 210 };

static double half(const uint8_t *b)
{
	_Float16 h;

	memcpy(&h, b, sizeof h);
	return (double)h;
}

static int bits(const uint8_t *b, int at, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++)
		v |= (b[(at + i) / 8] >> (at + i) % 8 & 1) << i;
	return v;
}

/* Number j of 32 nibbles: the first 16 are the low ones. */
static int nibble(const uint8_t *b, int j)
{
	return bits(b, j % 16 * 8 + j / 16 * 4, 4);
}

/* Scale (offset 0) or offset (offset 4) of a group: 12 bytes are three rows of four. */
static int six(const uint8_t *b, int group, int offset)
{
	int i = group % 4;

	if (group < 4)
		return bits(b + offset + i, 0, 6);
	return bits(b + 8 + i, offset, 4) | bits(b + offset + i, 6, 2) << 4;
}

static double value(const char *type, const uint8_t *b, int k)
{
	static const double e2m1[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
	static const double levels[16] = {
		-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
	};
	const int group = k / 32, j = k % 32;
	float f;
	uint32_t u;

	if (!strcmp(type, "F32"))
		return memcpy(&f, b, sizeof f), (double)f;
	if (!strcmp(type, "F16"))
		return half(b);
	if (!strcmp(type, "BF16")) {
		u = (uint32_t)(b[0] | b[1] << 8) << 16;
		return memcpy(&f, &u, sizeof f), (double)f;
	}
	if (!strcmp(type, "Q4_0"))
		return half(b) * (nibble(b + 2, k) - 8);
	if (!strcmp(type, "Q4_1"))
		return half(b) * nibble(b + 4, k) + half(b + 2);
	if (!strcmp(type, "Q5_0"))
		return half(b) * (nibble(b + 6, k) + 16 * bits(b + 2, k, 1) - 16);
	if (!strcmp(type, "Q5_1"))
		return half(b) * (nibble(b + 8, k) + 16 * bits(b + 4, k, 1)) + half(b + 2);
	if (!strcmp(type, "Q8_0"))
		return half(b) * (int8_t)b[2 + k];
	if (!strcmp(type, "Q4_K"))
		return half(b) * six(b + 4, group, 0) * bits(b + 16 + group / 2 * 32 + j, group % 2 * 4, 4) -
			half(b + 2) * six(b + 4, group, 4);
	if (!strcmp(type, "Q5_K"))
		return half(b) * six(b + 4, group, 0) * (bits(b + 48 + group / 2 * 32 + j, group % 2 * 4, 4) +
			16 * bits(b + 16 + j, group, 1)) - half(b + 2) * six(b + 4, group, 4);
	if (!strcmp(type, "Q6_K"))
		return half(b + 208) * (int8_t)b[192 + k / 16] *
			(bits(b + k / 128 * 64 + k % 64, k / 64 % 2 * 4, 4) +
			 16 * bits(b + 128 + k / 128 * 32 + j, group % 4 * 2, 2) - 32);
	if (!strcmp(type, "IQ4_NL"))
		return half(b) * levels[nibble(b + 2, k)];
	if (!strcmp(type, "MXFP4"))	/* there is no negative zero */
		return ldexp(e2m1[nibble(b + 1, k) % 8] * (nibble(b + 1, k) < 8 ? 1 : -1), b[0] - 127) + 0.0;
	fail_msg("%s has no reference", type);
	return 0;
}

static uint64_t state = 1;

static uint8_t draw(void)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (uint8_t)(state >> 32);
}

/* Products and sums of half-precision numbers are exact in double, so only one rounding to float32
 * remains. */
static void all_types(void **unused)
{
	static uint8_t x[BLOCKS * BYTES];
	static float y[BLOCKS * GGML_LENGTH];
	int types = 0;

	(void)unused;
	for (const struct ggml_type *t = ggml_types; t->name; t++) {
		CASE("%s", t->name);
		size_t nan = 0;

		assert_ptr_equal(ggml_find(t->id), t);
		assert_int_equal(!t->decode, !t->length);
		if (!t->decode)
			continue;
		assert_true(t->bytes <= BYTES && t->length <= GGML_LENGTH);
		for (size_t i = 0; i < BLOCKS * t->bytes; i++)
			x[i] = draw();
		memset(y, 0x55, sizeof y);
		t->decode(BLOCKS, y, x);
		for (size_t i = 0; i < BLOCKS * t->length; i++) {
			double v = value(t->name, x + i / t->length * t->bytes, (int)(i % t->length));
			float want = (float)v;

			if (isnan(want) && isnan(y[i]))
				nan++;
			else if (memcmp(&want, y + i, sizeof want))
				fail_msg("%s: number %zu is %a, expected %a", t->name, i, (double)y[i], v);
		}
		assert_true(nan < BLOCKS * t->length / 5);
		if (t->length * BLOCKS < sizeof y / sizeof *y)
			assert_int_equal(((uint8_t *)(y + BLOCKS * t->length))[0], 0x55);
		types++;
	}
	assert_int_equal(types, 13);
	assert_null(ggml_find(4));
}

/* Numbers that random blocks have rarely: every exponent of MXFP4, every half-precision scale. */
static void all_scales(void **unused)
{
	uint8_t x[34];
	float y[32];

	(void)unused;
	for (int i = 0; i < 256; i++) {
		CASE("MXFP4, scale %d", i);
		memset(x, 0, sizeof x);
		x[0] = (uint8_t)i;
		for (int j = 0; j < 16; j++)
			x[1 + j] = (uint8_t)(j | (15 - j) << 4);
		ggml_find(39)->decode(1, y, x);
		for (int j = 0; j < 32; j++)
			assert_true(y[j] == (float)value("MXFP4", x, j));
	}
	for (int i = 0; i < 65536; i++) {
		CASE("Q8_0, scale %#x", i);
		if ((i & 0x7c00) == 0x7c00)
			continue;
		x[0] = (uint8_t)i, x[1] = (uint8_t)(i >> 8);
		for (int j = 0; j < 32; j++)
			x[2 + j] = (uint8_t)(i + 37 * j);
		ggml_find(8)->decode(1, y, x);
		for (int j = 0; j < 32; j++)
			assert_true(y[j] == (float)value("Q8_0", x, j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_types), cmocka_unit_test(all_scales) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
