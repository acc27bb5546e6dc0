/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * avx512 -- the intrinsics in plain C (tests/avx512.h): the rule of vdpbf16ps by hand, and each intrinsic bit
 * for bit against the instruction, if the processor has it
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "avx512.h"
#include "base/cpu.h"
#include "base/random.h"
#include "case.h"

#ifdef __x86_64__
enum { ROUNDS = 20000 };

static struct random_stream noise;
static uint64_t drawn;

static uint32_t bits(void)
{
	return (uint32_t)random_bits(&noise, drawn++);
}

/* ---- each against the instruction ---- */

/* For shifts by fewer than 64 bits. */
static const union avx512 few = { .u32 = { 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63 } };

#define SIXTEEN(x) x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], \
	x[14], x[15]
/* A case: its intrinsic, its arguments, and the part of y that it sets. */
#define FOUNDATION(X) \
	X(add_epi32, add_epi32, i, (x[0].i, x[1].i)) \
	X(sub_epi32, sub_epi32, i, (x[0].i, x[1].i)) \
	X(sub_epi8, sub_epi8, i, (x[0].i, x[1].i)) \
	X(mullo_epi32, mullo_epi32, i, (x[0].i, x[1].i)) \
	X(sllv_epi32, sllv_epi32, i, (x[0].i, x[1].i)) \
	X(sllv_epi32_few, sllv_epi32, i, (x[0].i, x[1].i & few.i)) \
	X(srlv_epi32, srlv_epi32, i, (x[0].i, x[1].i)) \
	X(srlv_epi32_few, srlv_epi32, i, (x[0].i, x[1].i & few.i)) \
	X(rolv_epi32, rolv_epi32, i, (x[0].i, x[1].i)) \
	X(shuffle_epi8, shuffle_epi8, i, (x[0].i, x[1].i)) \
	X(unpacklo_epi8, unpacklo_epi8, i, (x[0].i, x[1].i)) \
	X(unpackhi_epi8, unpackhi_epi8, i, (x[0].i, x[1].i)) \
	X(permutexvar_epi32, permutexvar_epi32, i, (x[0].i, x[1].i)) \
	X(permutex2var_epi32, permutex2var_epi32, i, (x[0].i, x[1].i, x[2].i)) \
	X(ternary_a, ternarylogic_epi32, i, (x[0].i, x[1].i, x[2].i, 0xe4)) \
	X(ternary_b, ternarylogic_epi32, i, (x[0].i, x[1].i, x[2].i, 0x1b)) \
	X(ternary_c, ternarylogic_epi32, i, (x[0].i, x[1].i, x[2].i, 0x96)) \
	X(slli_0, slli_epi32, i, (x[0].i, 0)) X(slli_4, slli_epi32, i, (x[0].i, 4)) \
	X(slli_31, slli_epi32, i, (x[0].i, 31)) X(slli_32, slli_epi32, i, (x[0].i, 32)) \
	X(srli_0, srli_epi32, i, (x[0].i, 0)) X(srli_4, srli_epi32, i, (x[0].i, 4)) \
	X(srli_31, srli_epi32, i, (x[0].i, 31)) X(srli_32, srli_epi32, i, (x[0].i, 32)) \
	X(srli16_0, srli_epi16, i, (x[0].i, 0)) X(srli16_4, srli_epi16, i, (x[0].i, 4)) \
	X(srli16_15, srli_epi16, i, (x[0].i, 15)) X(srli16_16, srli_epi16, i, (x[0].i, 16)) \
	X(add_ps, add_ps, f, (x[0].f, x[1].f)) \
	X(mul_ps, mul_ps, f, (x[0].f, x[1].f)) \
	X(fmadd_ps, fmadd_ps, f, (x[0].f, x[1].f, x[2].f)) \
	X(cvtepi32_ps, cvtepi32_ps, f, (x[0].i)) \
	X(cvtph_ps, cvtph_ps, f, (x[0].half[0])) \
	X(reduce_add_ps, reduce_add_ps, f32[0], (x[0].f)) \
	X(permutexvar_ps, permutexvar_ps, f, (x[0].i, x[1].f)) \
	X(permutex2var_ps, permutex2var_ps, f, (x[0].f, x[1].i, x[2].f)) \
	X(loadu_si512, loadu_si512, i, (x[0].u8 + 5)) \
	X(load_si512, load_si512, i, (x)) \
	X(loadu_ps, loadu_ps, f, (x[0].u8 + 5)) \
	X(load_ps, load_ps, f, (x)) \
	X(maskz_loadu_epi32, maskz_loadu_epi32, i, ((__mmask16)x[2].u32[0], x[0].u8 + 5)) \
	X(maskz_loadu_ps, maskz_loadu_ps, f, ((__mmask16)x[2].u32[0], x[0].u8 + 5)) \
	X(setr_epi32, setr_epi32, i, (SIXTEEN(x[0].i32))) \
	X(set1_epi32, set1_epi32, i, (x[0].i32[0])) \
	X(set1_epi8, set1_epi8, i, ((char)x[0].i8[0])) \
	X(set1_ps, set1_ps, f, (x[0].f32[0])) \
	X(setzero_si512, setzero_si512, i, ()) \
	X(setzero_ps, setzero_ps, f, ()) \
	X(broadcast_i32x4, broadcast_i32x4, i, (_mm_loadu_si128((const __m128i *)&x[0]))) \
	X(broadcast_i64x2, broadcast_i64x2, i, (_mm_loadu_si128((const __m128i *)&x[0]))) \
	X(castsi512_ps, castsi512_ps, f, (x[0].i)) \
	X(castsi512_si256, castsi512_si256, half[0], (x[0].i)) \
	X(extract_0, extracti64x4_epi64, half[0], (x[0].i, 0)) \
	X(extract_1, extracti64x4_epi64, half[0], (x[0].i, 1))
#define STORES(X) \
	X(storeu_si512, storeu_si512, , (y->u8, x[0].i)) \
	X(storeu_ps, storeu_ps, , (y->u8, x[0].f)) \
	X(store_ps, store_ps, , (y->f32, x[0].f)) \
	X(mask_storeu_ps, mask_storeu_ps, , (y->u8, (__mmask16)x[2].u32[0], x[0].f))
#define BYTES(X) \
	X(permutexvar_epi8, permutexvar_epi8, i, (x[0].i, x[1].i)) \
	X(permutex2var_epi8, permutex2var_epi8, i, (x[0].i, x[1].i, x[2].i)) \
	X(multishift_epi64_epi8, multishift_epi64_epi8, i, (x[0].i, x[1].i)) \
	X(dpbusd_epi32, dpbusd_epi32, i, (x[0].i, x[1].i, x[2].i))
#define PAIRS(X) X(dpbf16_ps, dpbf16_ps, f, (x[0].f, (__m512bh)x[1].i, (__m512bh)x[2].i))

#define BOTH(target, id, to, name, arguments) \
static void c_##id(union avx512 *y, const union avx512 x[3]) { (void)x; to mm512_##name arguments; } \
__attribute__((target)) \
static void real_##id(union avx512 *y, const union avx512 x[3]) { (void)x; to _mm512_##name arguments; }
#define OF_FOUNDATION(id, name, result, arguments) \
	BOTH(CPU_AVX512_TARGET, id, y->result =, name, arguments)
#define OF_STORES(id, name, none, arguments) BOTH(CPU_AVX512_TARGET, id, , name, arguments)
#define OF_BYTES(id, name, result, arguments) \
	BOTH(CPU_AVX512_AND(",avx512vnni,avx512vbmi"), id, y->result =, name, arguments)
#define OF_PAIRS(id, name, result, arguments) \
	BOTH(CPU_AVX512_AND(",avx512bf16"), id, y->result =, name, arguments)
FOUNDATION(OF_FOUNDATION)
STORES(OF_STORES)
BYTES(OF_BYTES)
PAIRS(OF_PAIRS)

struct row {
	const char *name;
	void (*c)(union avx512 *y, const union avx512 x[3]);
	void (*real)(union avx512 *y, const union avx512 x[3]);
	bool floats;
};
#define ROW(id, name, result, arguments) { #id, c_##id, real_##id, #result[0] == 'f' },
static const struct row foundation[] = { FOUNDATION(ROW) STORES(ROW) }, bytes[] = { BYTES(ROW) },
	pairs[] = { PAIRS(ROW) };

enum numbers { ANY, ORDINARY, SMALL, CANCELLING, KINDS };

/* A number of n bits, 16 for bf16, with an exponent in the range of the kind. */
static uint32_t number(enum numbers kind, int n)
{
	const uint32_t u = bits(), low = kind == SMALL ? 48 : 117, range = kind == SMALL ? 24 : 20;
	const uint32_t exponent = bits() % 32 ? low + bits() % range : bits() % 3;

	return (kind == ANY ? u : (u & 0x807fffff) | exponent << 23) & (n == 16 ? 0xffff0000 : UINT32_MAX);
}

/* x[0] + x[1] x[2] is near zero if they cancel: in the odd numbers of bf16, or in all bits. */
static void fill(union avx512 x[3], enum numbers kind, bool bf16, bool sum_first)
{
	for (size_t n = 0; n < 16; n++) {
		const size_t sum = sum_first ? 0 : 2, a = sum_first ? 1 : 0, b = sum_first ? 2 : 1;

		x[sum].u32[n] = kind == SMALL && bits() % 2 ? bits() & 0x81ffffff : number(kind, 32);
		x[a].u32[n] = bf16 ? number(kind, 16) | number(kind, 16) >> 16 : number(kind, 32);
		x[b].u32[n] = bf16 ? number(kind, 16) | number(kind, 16) >> 16 : number(kind, 32);
		if (kind == CANCELLING) {
			const uint32_t mask = bf16 ? 0xffff0000 : UINT32_MAX;

			x[sum].f32[n] = -amx_float(x[a].u32[n] & mask) * amx_float(x[b].u32[n] & mask);
			x[sum].u32[n] += bits() % 3 - 1;
		}
	}
}

static bool same(bool floats, const union avx512 *y, const union avx512 *z)
{
	for (size_t n = 0; n < 16; n++)
		if (y->u32[n] != z->u32[n] && !(floats && isnan(y->f32[n]) && isnan(z->f32[n])))
			return false;
	return true;
}

static void compare(size_t rows, const struct row table[rows], bool bf16, unsigned rounding)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t n = 0; n < ROUNDS; n++) {
			const unsigned before = _mm_getcsr();
			union avx512 x[3], y, z;

			fill(x, (enum numbers)(n % KINDS), bf16, bf16);
			memset(&y, 0x5a, sizeof y), memset(&z, 0x5a, sizeof z);
			table[r].c(&y, x);
			_mm_setcsr(before ^ rounding);
			table[r].real(&z, x);
			_mm_setcsr(before);
			if (!same(table[r].floats, &y, &z))
				fail_msg("%s, numbers of kind %zu: it differs from the instruction",
					table[r].name, n % KINDS);
		}
}

#define TABLE(x) sizeof (x) / sizeof *(x), x
static void instructions(void **unused)
{
	/* MXCSR: subnormal inputs are zero; subnormal results are zero; rounding downward, upward */
	static const unsigned settings[] = { 0, 0x8040, 0x2000, 0x4000, 0xe040 };

	(void)unused;
	if (cpu < CPU_AVX512) {
		printf("# SKIP: this processor, or PTQ_CPU, has no AVX-512\n");
		return;
	}
	compare(TABLE(foundation), false, 0);
	if (cpu_dot)
		compare(TABLE(bytes), false, 0);
	else
		printf("# SKIP instructions of bytes: this processor has no AVX512_VNNI and AVX512_VBMI\n");
	if (!__builtin_cpu_supports("avx512bf16")) {
		printf("# SKIP vdpbf16ps: this processor has no AVX512_BF16\n");
		return;
	}
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		CASE("settings[%zu]", i);
		compare(TABLE(pairs), true, settings[i]);
	}
}

/* Every number of half precision. */
static void halves(void **unused)
{
	(void)unused;
	for (uint32_t h = 0; h < 1 << 16; h++) {
		CASE("half %#x", h);
		const int exponent = (int)(h >> 10 & 31);
		const float rest = (float)(h & 1023), sign = h >> 15 ? -1 : 1;
		union avx512 x = { .u16 = { (uint16_t)h } }, y = { .f = mm512_cvtph_ps(x.half[0]) };

		if (exponent == 31)
			assert_true(rest > 0 ? isnan(*y.f32) : *y.f32 == sign * INFINITY);
		else
			assert_true(*y.f32 == sign * (exponent ? ldexpf(1024 + rest, exponent - 25) :
				ldexpf(rest, -24)));
		assert_true(signbit(*y.f32) == signbit(sign));
	}
}

/* ---- the rule of vdpbf16ps ---- */

/* sum + odd·1 + even·1 of bf16 numbers; `by` replaces 1 if given. */
static float dot(float sum, float odd, float even, float by)
{
	const float a[2] = { odd, even };
	uint32_t u[2], w;
	union avx512 x, v;
	float y[16];

	memcpy(u, a, sizeof u), memcpy(&w, &by, sizeof w);
	x.i = mm512_set1_epi32((int)(u[0] | u[1] >> 16)), v.i = mm512_set1_epi32((int)(w | w >> 16));
	memcpy(y, &(union avx512){ .f = mm512_dpbf16_ps(mm512_set1_ps(sum), (__m512bh)x.i, (__m512bh)v.i) },
		sizeof y);
	return y[7];
}

static void rule(void **unused)
{
	(void)unused;
	assert_true(dot(1, 0x1p-24f, -1, 1) == 0);			/* odd first: its half unit is lost */
	assert_true(dot(1, -1, 0x1p-24f, 1) == 0x1p-24f);
	assert_true(dot(1, 0x1.8p-24f, -1, 1) == 0x1p-23f);
	assert_true(dot(0x1p-130f, 0, 0, 1) == 0);			/* a subnormal sum */
	assert_true(dot(0, 0x1p-130f, 0, 0x1p100f) == 0);		/* a subnormal input */
	assert_true(dot(0, 0x1p-70f, 0, 0x1p-60f) == 0);		/* a subnormal result */
	assert_true(dot(0, 0x1p-66f, 0, 0x1p-60f) == 0x1p-126f);
	assert_true(dot(0, 0x1p-67f, 0x1p-67f, 0x1p-60f) == 0);	/* both steps flush to zero */
	assert_true(dot(-0x1p-126f, 0x1.8p-66f, 0x1p-60f, 0x1p-60f) == 0x1p-120f);
	assert_true(signbit(dot(0, -0x1p-70f, -0.0f, 0x1p-60f)));
	assert_true(isnan(dot(INFINITY, -INFINITY, 0, 1)) && dot(0, 0x1p127f, 0, 2) == INFINITY);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(rule), cmocka_unit_test(halves), cmocka_unit_test(instructions),
#endif
	};

#ifdef __x86_64__
	noise = random_open(1, "avx512");
#else
	printf("1..0 # SKIP intrinsics of x86-64\n");
	return 0;
#endif
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
