/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pack -- packing and unpacking are inverses for every code, and positions of bits are those of FPE2M2
 * section 4.3 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "num/format.h"
#include "num/half.h"
#include "quant/pack.h"

static void inverse(void **unused)
{
	(void)unused;
	for (int bits = 1; bits <= 8; bits++)
		for (size_t n = 1; n < 100; n++)
			for (int first = 0; first < 1 << bits; first += n == 32 ? 1 : 37) {
				CASE("%d bits, %zu codes from %d", bits, n, first);
				uint8_t code[100], back[101];
				uint32_t word[40];

				for (size_t i = 0; i < n; i++)
					code[i] = (uint8_t)((first + (int)i * 7) % (1 << bits));
				memset(word, 0xff, sizeof word);
				memset(back, 0xee, sizeof back);
				pack_row(bits, n, word, code);
				assert_int_equal(word[pack_words(bits, n)], 0xffffffff);
				pack_unrow(bits, n, back, word);
				assert_memory_equal(code, back, n);
				assert_int_equal(back[n], 0xee);
			}
	assert_int_equal(pack_words(5, 33), 10);
	assert_int_equal(pack_words(4, 4096), 512);
}

/* Codes n mod 16, with a sign for n >= 16. */
static void five_bits(void **unused)
{
	static const uint32_t want[5] = { 0x75316420, 0xfdb9eca8, 0x75316420, 0xfdb9eca8, 0x00ff00ff };
	uint8_t code[32];
	uint32_t word[5];

	(void)unused;
	for (int n = 0; n < 32; n++)
		code[n] = (uint8_t)n;
	pack_row(5, 32, word, code);
	assert_memory_equal(word, want, sizeof word);
}

/*
 * Word i, shifted and masked, is two halves. Times 2¹⁵ they are the values (FPE2M2 section 4.2), for all
 * e<x>m<y> with x + y = 4.
 */
static void halves(void **unused)
{
	static const char *const names[] = { "e1m3", "e2m2", "e3m1", "e4m0" };

	(void)unused;
	for (int f = 0; f < 4; f++) {
		CASE("%s", names[f]);
		struct format format;
		uint8_t code[32];
		uint32_t word[5];

		assert_true(format_parse(&format, names[f]));
		for (int n = 0; n < 32; n++)
			code[n] = (uint8_t)((n * 11 + 3) % 32);
		pack_row(5, 32, word, code);
		for (int n = 0; n < 32; n++) {
			int p = n / 2, k = p % 4, up = 10 - format.y - 4 * k;
			uint32_t w = up >= 0 ? word[p / 4] << up : word[p / 4] >> -up;
			uint16_t half;
			float h;

			w = (w & 0x000f000fu << (10 - format.y)) | (word[4] << p & 0x80008000);
			half = (uint16_t)(w >> n % 2 * 16);
			half_widen(1, &h, &half, HALF_F16);
			assert_true(h * 0x1p15f == format.grid[code[n]]);
		}
	}
}

static void four_bits(void **unused)
{
	uint8_t code[32];
	uint32_t word[4];

	(void)unused;
	for (int n = 0; n < 32; n++)
		code[n] = (uint8_t)(n % 16);
	pack_row(4, 32, word, code);
	assert_int_equal(word[0], 0x76543210);
	assert_int_equal(word[1], 0xfedcba98);
	assert_int_equal(word[3], 0xfedcba98);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inverse), cmocka_unit_test(five_bits), cmocka_unit_test(halves),
		cmocka_unit_test(four_bits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
