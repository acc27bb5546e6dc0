/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * amx.h -- tile instructions (AMX) in plain C, for tests: amx_on() lets them run on any processor
 *
 * A processor without AMX raises SIGILL. The handler decodes the instruction, applies it to tiles of the
 * thread, and continues after it.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters 2.3 (VEX) and 3 to
 * 5 of each instruction.
 */
#ifndef TESTS_AMX_H
#define TESTS_AMX_H
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include "base/cpu.h"

#define AMX_INLINE static inline __attribute__((always_inline))
enum { AMX_SIDE = 16, AMX_BYTES = 64 };
struct amx_tile { uint8_t row[AMX_SIDE][AMX_BYTES]; };

AMX_INLINE float amx_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* Subnormal numbers count as zero; the sign stays. */
AMX_INLINE float amx_normal(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/*
 * a b + c of normal numbers, rounded to 24 bits with unbounded exponent, then zero if the result is
 * subnormal. A result near the limit is computed with a factor of 2^100. Rounding is the same there, and no
 * number is subnormal.
 */
AMX_INLINE float amx_fused(float a, float b, float c)
{
	float y = fmaf(a, b, c);

	if (fabsf(y) < 0x1p-100f && y != 0) {
		const float large = fabsf(a) > fabsf(b) ? a : b, small = fabsf(a) > fabsf(b) ? b : a;

		y = fmaf(large, small * 0x1p100f, c * 0x1p100f);
		y = fabsf(y) < 0x1p-26f ? copysignf(0, y) : y * 0x1p-100f;
	} else if (y == 0 && a != 0 && b != 0 && c == 0)
		y = copysignf(0, (a < 0) != (b < 0) ? -1.0f : 1.0f);	/* far below the smallest number */
	return y;
}

/* One number of y += a b in bf16, over pairs of the left tile's row and the right tile's column. */
AMX_INLINE float amx_dot_bf16(float y, size_t pairs, const uint32_t *a, const uint32_t *b)
{
	float even = 0, odd = 0;

	for (size_t p = 0; p < pairs; p++) {
		const uint32_t x = a[p], w = b[p];

		even = amx_fused(amx_normal(amx_float(x << 16)), amx_normal(amx_float(w << 16)), even);
		odd = amx_fused(amx_normal(amx_float(x & 0xffff0000)), amx_normal(amx_float(w & 0xffff0000)),
			odd);
	}
	return amx_fused(1, amx_fused(1, even, odd), amx_normal(y));
}

/* One number of y += a b of bytes; b is unsigned, or signed like a. */
AMX_INLINE int32_t amx_dot_bytes(int32_t y, size_t n, const int8_t *a, const uint8_t *b, bool is_unsigned)
{
	uint32_t sum = (uint32_t)y;

	for (size_t i = 0; i < n; i++)
		sum += (uint32_t)(a[i] * (is_unsigned ? b[i] : (int8_t)b[i]));
	return (int32_t)sum;
}

#ifdef __x86_64__
static _Thread_local struct { struct amx_tile tile[8]; uint8_t shape[64]; bool on; } amx;

static inline size_t amx_bytes(unsigned t)
{
	return amx.shape[16 + 2 * t] + 256u * amx.shape[17 + 2 * t];
}

static inline size_t amx_rows(unsigned t)
{
	return amx.shape[48 + t];
}

/* Whether a processor accepts these 64 bytes as shapes of tiles. */
static inline bool amx_shapes(const uint8_t *x)
{
	bool good = x[0] == 1 && x[1] == 0;

	for (size_t i = 2; i < 64; i++)
		if (i < 16 || (i >= 32 && i < 48) || i >= 56)
			good &= x[i] == 0;
	for (size_t t = 0; t < 8; t++)
		good &= x[16 + 2 * t] <= AMX_BYTES && x[16 + 2 * t] % 4 == 0 && x[17 + 2 * t] == 0 &&
			x[48 + t] <= AMX_SIDE;
	return good;
}

/* Whether a processor multiplies tiles of these shapes. */
static inline bool amx_agree(unsigned to, unsigned a, unsigned b)
{
	return b < 8 && to != a && to != b && a != b && amx_rows(to) == amx_rows(a) && amx_rows(to) &&
		amx_bytes(a) == 4 * amx_rows(b) && amx_bytes(a) && amx_bytes(to) == amx_bytes(b);
}

/* Products of tiles of bf16 or of bytes: to[m][n], a[m][k], b[k / 4][n]. Cloned, so that fused products stay
 * in a register. */
__attribute__((target_clones("default", "fma"), unused))
static void amx_multiply(unsigned to, unsigned a, unsigned b, bool bf16, bool is_unsigned)
{
	const size_t k = amx_bytes(a), n = amx_bytes(to) / 4;
	uint32_t w[AMX_SIDE][AMX_SIDE];		/* one row per column of b */

	for (size_t j = 0; j < n; j++)
		for (size_t p = 0; p < k / 4; p++)
			memcpy(&w[j][p], &amx.tile[b].row[p][4 * j], 4);
	for (size_t i = 0; i < amx_rows(to); i++)
		for (size_t j = 0; j < n; j++) {
			uint8_t *y = &amx.tile[to].row[i][4 * j];
			union { uint32_t u; int32_t i; float f; } sum;
			uint32_t x[AMX_SIDE];

			memcpy(x, amx.tile[a].row[i], sizeof x);
			memcpy(&sum, y, 4);
			if (bf16)
				sum.f = amx_dot_bf16(sum.f, k / 4, x, w[j]);
			else
				sum.i = amx_dot_bytes(sum.i, k, (const int8_t *)x, (const uint8_t *)w[j],
					is_unsigned);
			memcpy(y, &sum, 4);
		}
}

static inline uint64_t amx_register(const ucontext_t *u, unsigned r)
{
	static const int at[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	return (uint64_t)u->uc_mcontext.gregs[at[r]];
}

/* The address from ModRM and the bytes after it, without the index, which is the stride of a tile's rows. */
static inline char *amx_address(const ucontext_t *u, const uint8_t *p, bool index_high, bool base_high,
	const uint8_t **end, uint64_t *stride)
{
	const unsigned mod = p[0] >> 6, low = p[0] & 7;
	uint64_t address = 0;
	int32_t shift = 0;
	bool relative = false;

	*stride = 0;
	p++;
	if (low == 4) {
		const unsigned index = (p[0] >> 3 & 7) + 8 * index_high, base = p[0] & 7;

		*stride = index == 4 ? 0 : amx_register(u, index) << (p[0] >> 6);
		if (base == 5 && !mod)
			relative = true;
		else
			address = amx_register(u, base + 8 * base_high);
		p++;
		if (relative) {
			memcpy(&shift, p, 4);
			*end = p + 4;
			return (char *)(uintptr_t)(uint64_t)shift;
		}
	} else if (low == 5 && !mod)
		relative = true;
	else
		address = amx_register(u, low + 8 * base_high);
	if (mod == 1)
		shift = (int8_t)*p++;
	if (mod == 2 || relative)
		memcpy(&shift, p, 4), p += 4;
	*end = p;
	return (char *)(uintptr_t)(address + (uint64_t)shift + (relative ? (uint64_t)(uintptr_t)p : 0));
}

/* Executes the instruction at p. Returns the address after it, or NULL if it is not one of these
 * instructions. */
static inline const uint8_t *amx_step(const ucontext_t *u, const uint8_t *p)
{
	enum { NONE, X66, XF3, XF2 };
	const unsigned prefix = p[2] & 3, v = ~(p[2] >> 3) & 15, t = p[4] >> 3 & 7;
	const bool memory = p[4] >> 6 != 3;
	const uint8_t *end = p + 5;
	uint64_t stride;
	char *at;

	if (p[0] != 0xc4 || (p[1] & 31) != 2 || p[2] & 0x84 || !(p[1] & 0x80))
		return NULL;
	if ((p[3] == 0x5c || p[3] == 0x5e) && (memory || !amx_agree(t, p[4] & 7, v)))
		return NULL;
	if (p[3] != 0x5c && p[3] != 0x5e && v)
		return NULL;
	if (p[3] == 0x5c && prefix == XF3 && !memory)
		amx_multiply(t, p[4] & 7, v, true, false);
	else if (p[3] == 0x5e && (prefix == XF2 || prefix == XF3) && !memory)
		amx_multiply(t, p[4] & 7, v, false, prefix == XF3);
	else if (p[3] == 0x49 && prefix == XF2 && !memory)
		memset(&amx.tile[t], 0, sizeof amx.tile[t]);
	else if (p[3] == 0x49 && prefix == NONE && p[4] == 0xc0)
		amx.on = false;
	else if (p[3] == 0x49 && prefix == NONE && memory) {
		at = amx_address(u, p + 4, !(p[1] & 64), !(p[1] & 32), &end, &stride);
		if (!amx_shapes((const uint8_t *)at + stride))
			return NULL;
		memcpy(amx.shape, at + stride, sizeof amx.shape);	/* an ordinary index here */
		memset(amx.tile, 0, sizeof amx.tile);
		amx.on = true;
		return end;
	} else if (p[3] == 0x4b && (prefix == XF2 || prefix == XF3) && memory && (p[4] & 7) == 4) {
		at = amx_address(u, p + 4, !(p[1] & 64), !(p[1] & 32), &end, &stride);
		if (prefix == XF2)
			memset(&amx.tile[t], 0, sizeof amx.tile[t]);
		for (size_t i = 0; i < amx_rows(t); i++) {
			char *row = at + i * stride;

			if (prefix == XF2)
				memcpy(amx.tile[t].row[i], row, amx_bytes(t));
			else
				memcpy(row, amx.tile[t].row[i], amx_bytes(t));
		}
		return amx.on ? end : NULL;
	} else
		return NULL;
	return amx.on || (p[3] == 0x49 && prefix == NONE) ? end : NULL;
}

static inline void amx_handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	const uint8_t *next = amx_step(u, (const uint8_t *)u->uc_mcontext.gregs[REG_RIP]);

	(void)info;
	if (next)
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)next;
	else
		signal(number, SIG_DFL);	/* the signal comes again and ends the program */
}

/* Whether tiles exist: of the processor, or from now on the emulated ones. */
static inline bool amx_on(void)
{
	struct sigaction act = { .sa_sigaction = amx_handler, .sa_flags = SA_SIGINFO };
	static int native = -1;

	if (native < 0 && !(native = cpu_amx))
		printf("# tiles of this processor, or PTQ_CPU: none; done by SIGILL and plain C\n");
	if (!native)
		sigaction(SIGILL, &act, NULL);
	return cpu_amx = true;
}
#else
static inline bool amx_on(void)
{
	printf("# SKIP tiles: not an x86-64 processor\n");
	return false;
}
#endif
#endif
