/* SPDX-License-Identifier: GPL-3.0-or-later */
/* half -- every f16 and bf16 pattern, every midpoint and its neighbours, against the compiler's _Float16 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "case.h"
#include "num/half.h"

enum { ALL = 65536 };
static uint16_t half[ALL], back[ALL];
static float wide[ALL];

static uint32_t bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static float from_bits(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static void all_f16(void **unused)
{
	(void)unused;
	for (int i = 0; i < ALL; i++)
		half[i] = (uint16_t)i;
	half_widen(ALL, wide, half, HALF_F16);
	half_narrow(ALL, back, wide, HALF_F16);
	for (int i = 0; i < ALL; i++) {
		CASE("half %#x", i);
		_Float16 h;

		memcpy(&h, &half[i], sizeof h);
		if ((i & 0x7fff) > 0x7c00) {
			assert_true(isnan(wide[i]));
			assert_int_equal(back[i], i | 0x200);
			continue;
		}
		assert_int_equal(bits(wide[i]), bits((float)h));
		assert_int_equal(back[i], i);
	}
}

/* The middle between a half and the next one, and the floats next to it. */
static void narrow_f16(void **unused)
{
	(void)unused;
	for (int side = -1; side <= 1; side++)
		for (int sign = 0; sign < 2; sign++) {
			CASE("sign %d", sign);
			for (int i = 0; i < ALL; i++) {
				int k = i & 0x7fff;
				_Float16 a, b;
				uint16_t u = (uint16_t)k, v = (uint16_t)(k + 1);
				double middle;

				if (k >= 0x7c00)
					k = u = v = 0;
				memcpy(&a, &u, sizeof a);
				memcpy(&b, &v, sizeof b);
				middle = k == 0x7bff ? 65520 : ((double)a + (double)b) / 2;
				wide[i] = from_bits(bits((float)middle) + (uint32_t)(middle > 0 ? side : 0));
				wide[i] = sign ? -wide[i] : wide[i];
			}
			half_narrow(ALL, back, wide, HALF_F16);
			for (int i = 0; i < ALL; i++) {
				_Float16 h = (_Float16)wide[i];
				uint16_t u;

				memcpy(&u, &h, sizeof u);
				assert_int_equal(back[i], u);
			}
		}
}

static void any_float(void **unused)
{
	(void)unused;
	for (uint32_t start = 0; start < 64; start++) {
		CASE("start %u", start);
		for (uint32_t i = 0; i < ALL; i++) {
			uint32_t u = (start * ALL + i) * 2654435761u;

			wide[i] = from_bits(u);
		}
		half_narrow(ALL, back, wide, HALF_F16);
		for (int i = 0; i < ALL; i++) {
			_Float16 h = (_Float16)wide[i];
			uint16_t u;

			memcpy(&u, &h, sizeof u);
			if (isnan(wide[i]))
				assert_true((back[i] & 0x7fff) > 0x7c00);
			else
				assert_int_equal(back[i], u);
		}
		half_narrow(ALL, back, wide, HALF_BF16);
		for (int i = 0; i < ALL; i++) {
			uint32_t u = bits(wide[i]), low = u & 0xffff, high = u >> 16;

			if (isnan(wide[i])) {
				assert_int_equal(back[i], high | 0x40);
				continue;
			}
			high += low > 0x8000 || (low == 0x8000 && high & 1);
			assert_int_equal(back[i], high);
		}
	}
}

static void all_bf16(void **unused)
{
	(void)unused;
	for (int i = 0; i < ALL; i++)
		half[i] = (uint16_t)i;
	half_widen(ALL, wide, half, HALF_BF16);
	for (int i = 0; i < ALL; i++)
		assert_int_equal(bits(wide[i]), (uint32_t)i << 16);
	half_narrow(ALL, back, wide, HALF_BF16);
	for (int i = 0; i < ALL; i++)
		assert_int_equal(back[i], (i & 0x7fff) > 0x7f80 ? i | 0x40 : i);
}

/* The middle of two neighbours, and doubles next to it that round to it as floats. */
static void doubles(void **unused)
{
	static double x[ALL];

	(void)unused;
	for (int type = HALF_F16; type <= HALF_BF16; type++)
		for (int side = -1; side <= 1; side++) {
			CASE("type %d, side %d", type, side);
			for (int i = 0; i < ALL; i++)
				half[i] = (uint16_t)i;
			half_widen(ALL, wide, half, (enum half_type)type);
			for (int i = 0; i < ALL - 1; i++) {
				const double middle = ((double)wide[i] + (double)wide[i + 1]) / 2;

				x[i] = isfinite(wide[i]) && isfinite(wide[i + 1]) && (i & 0x7fff) != 0x7fff ?
					middle * (1 + side * 0x1p-40) : 0;
			}
			x[ALL - 1] = 0;
			half_narrow_double(ALL, back, x, (enum half_type)type);
			for (int i = 0; i < ALL - 1; i++)
				if (x[i] < 0 || x[i] > 0)
					assert_int_equal(back[i], i + (side > 0 || (!side && i % 2)));
		}
	half_narrow_double(1, wide, (const double []){ 1 + 0x1p-25 }, HALF_NONE);
	assert_true(bits(wide[0]) == bits(1));
}

/* Ties go to even, too large numbers become infinite, f32 is unchanged. */
static void rules(void **unused)
{
	const float x[] = { 65504, 65519.996f, 65520, 1e9f, -INFINITY, 0x1p-25f, 0x1.000002p-25f, 0x1.8p-24f,
		-0.f };
	const uint16_t f16[] = { 0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00, 0, 1, 2, 0x8000 };
	const float z[] = { 0x1.01p0f, 0x1.03p0f, 3.4028235e38f };
	const uint16_t bf16[] = { 0x3f80, 0x3f82, 0x7f80 };
	uint16_t y[9];
	float copy[9];

	(void)unused;
	half_narrow(9, y, x, HALF_F16);
	for (int i = 0; i < 9; i++)
		assert_int_equal(y[i], f16[i]);
	half_narrow(3, y, z, HALF_BF16);
	for (int i = 0; i < 3; i++)
		assert_int_equal(y[i], bf16[i]);
	half_widen(9, copy, x, HALF_NONE);
	assert_memory_equal(copy, x, sizeof x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_f16), cmocka_unit_test(narrow_f16), cmocka_unit_test(any_float),
		cmocka_unit_test(all_bf16), cmocka_unit_test(doubles), cmocka_unit_test(rules),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
