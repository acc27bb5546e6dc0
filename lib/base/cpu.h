/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cpu.h -- which kernels run: plain x86-64 (or any machine), AVX2, AVX-512, AMX
 *
 * The widest that the processor has, or what PTQ_CPU=plain|avx2|avx512|amx says. Tiles (AMX) come on top
 * of AVX-512: amx is avx512 with cpu_amx.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H
#include <stdbool.h>

/*
 * The attribute of functions in AVX-512; with more: CPU_AVX512_AND(",avx512vnni"). clang has no such
 * preference, and would ignore all of it.
 */
#ifdef __clang__
#define CPU_AVX512_AND(features) target("avx512f,avx512bw,avx512vl,avx512dq" features)
#else
#define CPU_AVX512_AND(features) \
	target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512" features)
#endif
#define CPU_AVX512_TARGET CPU_AVX512_AND("")

enum cpu { CPU_PLAIN, CPU_AVX2, CPU_AVX512 };
extern enum cpu cpu;			/* known before main() */
extern enum cpu cpu_widest;		/* that the processor has, whatever PTQ_CPU says */
extern bool cpu_amx;			/* tiles of bf16 and of bytes, under amx only */
extern bool cpu_bf16;			/* AVX512_BF16 at full rate (not Intel's), under avx512 or amx only */
extern bool cpu_half;			/* conversions of half precision */
extern bool cpu_dot;			/* dot products and permutations of bytes */

const char *cpu_name(void);		/* that PTQ_CPU has for what runs: plain, avx2, avx512 or amx */
/* Misuse if PTQ_CPU asks for what does not exist or the processor does not have. */
void cpu_check(void);
/* Dies: this call of OpenBLAS is wrong with these of its kernels. Names other kernels to try. */
_Noreturn void cpu_distrust(const char *call, const char *kernels);
#endif
