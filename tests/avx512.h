/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * avx512.h -- intrinsics of AVX-512 in plain C, for tests: mm512_NAME() does the same as _mm512_NAME()
 *
 * It has the intrinsics that lib uses. tests/avx512.c compares each with the instruction. Rounding is to
 * nearest even. vdpbf16ps adds the odd product of a pair first, then the even one, each fused with the sum.
 * Numbers below 2^-126 are zero, in inputs and in each sum, for any MXCSR. Tiles (tests/amx.h) add in another
 * order.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
 */
#ifndef TESTS_AVX512_H
#define TESTS_AVX512_H
#ifdef __x86_64__
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "amx.h"

#pragma GCC diagnostic ignored "-Wpsabi"	/* vectors are passed between inline functions only */

#define AVX512 static __attribute__((noinline, unused))
/* Cloned, so that fused products stay in a register. */
#define AVX512_CLONED __attribute__((target_clones("default", "fma"), unused)) static void

union avx512 {
	__m512i i;
	__m512 f;
	__m256i half[2];
	uint8_t u8[64];
	int8_t i8[64];
	uint16_t u16[32];
	uint32_t u32[16];
	int32_t i32[16];
	uint64_t u64[8];
	float f32[16];
};

/* Number n of the result. x, w, v: the arguments. */
#define AVX512_EACH(name, of, number) \
AVX512 __m512i mm512_##name(__m512i a, __m512i b) \
{ \
	const union avx512 x = { .i = a }, w = { .i = b }; \
	union avx512 y; \
\
	for (size_t n = 0; n < sizeof y.of / sizeof *y.of; n++) \
		y.of[n] = number; \
	return y.i; \
}
AVX512_EACH(add_epi32, u32, x.u32[n] + w.u32[n])
AVX512_EACH(sub_epi32, u32, x.u32[n] - w.u32[n])
AVX512_EACH(sub_epi8, u8, (uint8_t)(x.u8[n] - w.u8[n]))
AVX512_EACH(mullo_epi32, u32, x.u32[n] * w.u32[n])
AVX512_EACH(sllv_epi32, u32, w.u32[n] < 32 ? x.u32[n] << w.u32[n] : 0)
AVX512_EACH(srlv_epi32, u32, w.u32[n] < 32 ? x.u32[n] >> w.u32[n] : 0)
AVX512_EACH(rolv_epi32, u32, x.u32[n] << w.u32[n] % 32 | x.u32[n] >> -w.u32[n] % 32)
AVX512_EACH(shuffle_epi8, u8, w.u8[n] >> 7 ? 0 : x.u8[n / 16 * 16 + w.u8[n] % 16])
AVX512_EACH(unpacklo_epi8, u8, (n % 2 ? w : x).u8[n / 16 * 16 + n % 16 / 2])
AVX512_EACH(unpackhi_epi8, u8, (n % 2 ? w : x).u8[n / 16 * 16 + n % 16 / 2 + 8])
AVX512_EACH(permutexvar_epi8, u8, w.u8[x.u8[n] % 64])
AVX512_EACH(permutexvar_epi32, u32, w.u32[x.u32[n] % 16])
AVX512_EACH(multishift_epi64_epi8, u8, (uint8_t)(w.u64[n / 8] >> x.u8[n] % 64 |
	w.u64[n / 8] << (64 - x.u8[n] % 64) % 64))

#define AVX512_OF_THREE(name, of, number) \
AVX512 __m512i mm512_##name(__m512i a, __m512i b, __m512i c) \
{ \
	const union avx512 x = { .i = a }, w = { .i = b }, v = { .i = c }; \
	union avx512 y; \
\
	for (size_t n = 0; n < sizeof y.of / sizeof *y.of; n++) \
		y.of[n] = number; \
	return y.i; \
}
AVX512_OF_THREE(permutex2var_epi8, u8, (w.u8[n] & 64 ? v : x).u8[w.u8[n] % 64])
AVX512_OF_THREE(permutex2var_epi32, u32, (w.u32[n] & 16 ? v : x).u32[w.u32[n] % 16])
AVX512_OF_THREE(dpbusd_epi32, u32, x.u32[n] + (uint32_t)(w.u8[4 * n] * v.i8[4 * n] +
	w.u8[4 * n + 1] * v.i8[4 * n + 1] + w.u8[4 * n + 2] * v.i8[4 * n + 2] +
	w.u8[4 * n + 3] * v.i8[4 * n + 3]))

/* Bit 4a + 2b + c of the table is the result of bits a, b, c. */
AVX512 __m512i mm512_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, int table)
{
	__m512i y = a ^ a;

	for (int k = 0; k < 8; k++)
		if (table >> k & 1)
			y |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
	return y;
}

AVX512 __m512i mm512_slli_epi32(__m512i a, unsigned by)
{
	union avx512 y = { .i = a };

	for (size_t n = 0; n < 16; n++)
		y.u32[n] = by < 32 ? y.u32[n] << by : 0;
	return y.i;
}

AVX512 __m512i mm512_srli_epi32(__m512i a, unsigned by)
{
	union avx512 y = { .i = a };

	for (size_t n = 0; n < 16; n++)
		y.u32[n] = by < 32 ? y.u32[n] >> by : 0;
	return y.i;
}

AVX512 __m512i mm512_srli_epi16(__m512i a, unsigned by)
{
	union avx512 y = { .i = a };

	for (size_t n = 0; n < 32; n++)
		y.u16[n] = by < 16 ? (uint16_t)(y.u16[n] >> by) : 0;
	return y.i;
}

/* ---- floats ---- */

AVX512 __m512 mm512_add_ps(__m512 a, __m512 b)
{
	return a + b;
}

AVX512 __m512 mm512_mul_ps(__m512 a, __m512 b)
{
	return a * b;
}

AVX512_CLONED avx512_fused(float y[16], const float a[16], const float b[16], const float c[16])
{
	for (size_t n = 0; n < 16; n++)
		y[n] = fmaf(a[n], b[n], c[n]);
}

AVX512 __m512 mm512_fmadd_ps(__m512 a, __m512 b, __m512 c)
{
	const union avx512 x = { .f = a }, w = { .f = b }, v = { .f = c };
	union avx512 y;

	avx512_fused(y.f32, x.f32, w.f32, v.f32);
	return y.f;
}

/* y += the products of the numbers in the upper halves. If any number is small, sums are computed one by
 * one. */
AVX512_CLONED avx512_upper(float y[16], const uint32_t a[16], const uint32_t b[16])
{
	float x[16], w[16], sum[16];
	int small = 0;

	for (size_t n = 0; n < 16; n++) {
		x[n] = amx_normal(amx_float(a[n] & 0xffff0000));
		w[n] = amx_normal(amx_float(b[n] & 0xffff0000));
		y[n] = amx_normal(y[n]);
		sum[n] = fmaf(x[n], w[n], y[n]);
		small |= (fabsf(sum[n]) < 0x1p-100f) & (x[n] != 0) & (w[n] != 0);
	}
	for (size_t n = 0; n < 16; n++)
		y[n] = small ? amx_fused(x[n], w[n], y[n]) : sum[n];
}

AVX512 __m512 mm512_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b)
{
	union avx512 x, w, y = { .f = sum };

	memcpy(&x, &a, sizeof x), memcpy(&w, &b, sizeof w);
	avx512_upper(y.f32, x.u32, w.u32);
	x.i = mm512_slli_epi32(x.i, 16), w.i = mm512_slli_epi32(w.i, 16);
	avx512_upper(y.f32, x.u32, w.u32);
	return y.f;
}

AVX512 __m512 mm512_cvtepi32_ps(__m512i a)
{
	const union avx512 x = { .i = a };
	union avx512 y;

	for (size_t n = 0; n < 16; n++)
		y.f32[n] = (float)x.i32[n];
	return y.f;
}

/* From half precision; a signalling NaN becomes quiet. */
AVX512 __m512 mm512_cvtph_ps(__m256i a)
{
	const union avx512 x = { .half = { a } };
	union avx512 y;

	for (size_t n = 0; n < 16; n++) {
		const uint32_t h = x.u16[n], exponent = h >> 10 & 31, rest = h & 1023;

		if (exponent == 31)
			y.u32[n] = 0x7f800000 | rest << 13 | (rest ? 0x400000 : 0);
		else if (exponent)
			y.u32[n] = (exponent + 112) << 23 | rest << 13;
		else
			y.f32[n] = (float)rest * 0x1p-24f;
		y.u32[n] |= h >> 15 << 31;
	}
	return y.f;
}

/* Halves are added until one number remains. */
AVX512 float mm512_reduce_add_ps(__m512 a)
{
	union avx512 y = { .f = a };

	for (size_t half = 8; half; half /= 2)
		for (size_t n = 0; n < half; n++)
			y.f32[n] += y.f32[n + half];
	return *y.f32;
}

AVX512 __m512 mm512_permutexvar_ps(__m512i at, __m512 a)
{
	return (__m512)mm512_permutexvar_epi32(at, (__m512i)a);
}

AVX512 __m512 mm512_permutex2var_ps(__m512 a, __m512i at, __m512 b)
{
	return (__m512)mm512_permutex2var_epi32((__m512i)a, at, (__m512i)b);
}

/* ---- loads, stores and other shapes ---- */

AVX512 __m512i mm512_loadu_si512(const void *from)
{
	union avx512 y;

	memcpy(&y, from, sizeof y);
	return y.i;
}

AVX512 __m512 mm512_loadu_ps(const void *from)
{
	return (__m512)mm512_loadu_si512(from);
}

AVX512 void mm512_storeu_si512(void *to, __m512i a)
{
	memcpy(to, &a, sizeof a);
}

AVX512 void mm512_storeu_ps(void *to, __m512 a)
{
	memcpy(to, &a, sizeof a);
}

/* The address must be a multiple of 64, else the instruction faults. */
AVX512 __m512i mm512_load_si512(const void *from)
{
	return *(const __m512i *)from;
}

AVX512 __m512 mm512_load_ps(const void *from)
{
	return *(const __m512 *)from;
}

AVX512 void mm512_store_ps(void *to, __m512 a)
{
	*(__m512 *)to = a;
}

/* Memory is not accessed where the mask is 0. */
AVX512 __m512i mm512_maskz_loadu_epi32(__mmask16 mask, const void *from)
{
	union avx512 y = { .u32 = { 0 } };

	for (size_t n = 0; n < 16; n++)
		if (mask >> n & 1)
			memcpy(&y.u32[n], (const char *)from + 4 * n, 4);
	return y.i;
}

AVX512 __m512 mm512_maskz_loadu_ps(__mmask16 mask, const void *from)
{
	return (__m512)mm512_maskz_loadu_epi32(mask, from);
}

AVX512 void mm512_mask_storeu_ps(void *to, __mmask16 mask, __m512 a)
{
	const union avx512 x = { .f = a };

	for (size_t n = 0; n < 16; n++)
		if (mask >> n & 1)
			memcpy((char *)to + 4 * n, &x.u32[n], 4);
}

#define mm512_setr_epi32(...) ((union avx512){ .i32 = { __VA_ARGS__ } }).i

AVX512 __m512i mm512_set1_epi32(int a)
{
	union avx512 y;

	for (size_t n = 0; n < 16; n++)
		y.i32[n] = a;
	return y.i;
}

AVX512 __m512i mm512_set1_epi8(char a)
{
	union avx512 y;

	memset(&y, a, sizeof y);
	return y.i;
}

AVX512 __m512 mm512_set1_ps(float a)
{
	union avx512 y;

	for (size_t n = 0; n < 16; n++)
		y.f32[n] = a;
	return y.f;
}

AVX512 __m512i mm512_setzero_si512(void)
{
	return mm512_set1_epi32(0);
}

AVX512 __m512 mm512_setzero_ps(void)
{
	return mm512_set1_ps(0);
}

AVX512 __m512i mm512_broadcast_i32x4(__m128i a)
{
	union avx512 y;

	for (size_t n = 0; n < 4; n++)
		memcpy(y.u8 + 16 * n, &a, 16);
	return y.i;
}

AVX512 __m512i mm512_broadcast_i64x2(__m128i a)
{
	return mm512_broadcast_i32x4(a);
}

AVX512 __m512 mm512_castsi512_ps(__m512i a)
{
	return (__m512)a;
}

AVX512 __m256i mm512_extracti64x4_epi64(__m512i a, int upper)
{
	const union avx512 x = { .i = a };

	return x.half[upper];
}

AVX512 __m256i mm512_castsi512_si256(__m512i a)
{
	return mm512_extracti64x4_epi64(a, 0);
}
#endif
#endif
