/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cpu.h -- choice of the kernels: plain x86-64 (or any machine), AVX2, AVX-512, AMX
 *
 * The variables below are set before main(). The kernels are the widest that the processor supports, or those
 * that PTQ_CPU=plain|avx2|avx512|amx names. AMX extends AVX-512: under amx, cpu is CPU_AVX512 and cpu_amx is
 * true. option_parse() calls cpu_check().
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H
#include <stdbool.h>

/*
 * The attribute of functions in AVX-512; with further features: CPU_AVX512_AND(",avx512vnni"). clang does not
 * support prefer-vector-width, and would ignore the whole attribute.
 */
#ifdef __clang__
#define CPU_AVX512_AND(features) target("avx512f,avx512bw,avx512vl,avx512dq" features)
#else
#define CPU_AVX512_AND(features) \
	target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512" features)
#endif
#define CPU_AVX512_TARGET CPU_AVX512_AND("")

enum cpu { CPU_PLAIN, CPU_AVX2, CPU_AVX512 };
extern enum cpu cpu;			/* the kernels that run */
extern enum cpu cpu_widest;		/* the widest of the processor, for any PTQ_CPU */
extern bool cpu_amx;			/* tiles of bf16 and of bytes, under amx only */
extern bool cpu_bf16;			/* AVX512_BF16 at full rate (not Intel's), under avx512 or amx only */
extern bool cpu_half;			/* conversions of half precision (F16C) */
extern bool cpu_dot;			/* dot products and permutations of bytes (AVX512_VNNI and _VBMI) */

const char *cpu_name(void);		/* the kernels that run: plain, avx2, avx512 or amx */
/* Misuse if PTQ_CPU is an unknown name, or names kernels that the processor does not support. */
void cpu_check(void);
/* Fatal error: this call of OpenBLAS gives wrong numbers with these kernels. Names other kernels to try. */
_Noreturn void cpu_refuse_kernels(const char *call, const char *kernels);
#endif
