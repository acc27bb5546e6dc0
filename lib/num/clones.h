/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * clones.h -- functions compiled for several vector widths, selected by base/cpu.h
 *
 *	CLONES(static, float, total, (size_t n, const float x[n]), (n, x))
 *	{ ... }
 *
 * compiles the body for AVX-512, AVX2 and plain x86-64 (or any other machine), and defines total(), which
 * calls the copy for `cpu`. Since -std=c17 contracts no operations, every copy gives the same bits. Include
 * this header after all others: its pragma holds for all code that follows.
 */
#ifndef NUM_CLONES_H
#define NUM_CLONES_H
#include "base/cpu.h"
/* Floating-point exceptions are not used. So branches may become selects, and loops vector code. */
#pragma GCC optimize ("no-trapping-math")

#ifdef __x86_64__
#define CLONES(linkage, type, name, parameters, arguments) \
	static inline __attribute__((always_inline)) type name##_body parameters; \
	__attribute__((CPU_AVX512_TARGET)) \
	static type name##_avx512 parameters { return name##_body arguments; } \
	__attribute__((target("avx2,fma"))) \
	static type name##_avx2 parameters { return name##_body arguments; } \
	__attribute__((noinline)) static type name##_plain parameters { return name##_body arguments; } \
	linkage type name parameters \
	{ \
		switch (cpu) { \
		case CPU_AVX512: return name##_avx512 arguments; \
		case CPU_AVX2: return name##_avx2 arguments; \
		default: return name##_plain arguments; \
		} \
	} \
	static inline __attribute__((always_inline)) type name##_body parameters
#else
#define CLONES(linkage, type, name, parameters, arguments) linkage type name parameters
#endif
#endif
