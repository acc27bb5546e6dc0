/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * again.h -- included before files of lib that are compiled again for tests, with AVX-512 in plain C
 *
 * The compiled code runs on any x86-64 as on a processor with AVX-512, VNNI, VBMI and BF16, but without AVX2
 * and tiles. Kernels with AVX2 and tiles are tested in the normal build. The rest of lib detects the real
 * processor. An intrinsic that tests/avx512.h lacks does not compile.
 */
#ifndef TESTS_AGAIN_H
#define TESTS_AGAIN_H
#ifdef __x86_64__
#define cpu again_cpu
#define cpu_widest again_widest
#define cpu_bf16 again_bf16
#define cpu_half again_half
#define cpu_dot again_dot
#define cpu_amx again_amx
#include "avx512.h"
#include "base/cpu.h"

__attribute__((weak)) enum cpu cpu = CPU_AVX512, cpu_widest = CPU_PLAIN;	/* the latter: the real one */
__attribute__((weak)) bool cpu_bf16 = true, cpu_half = true, cpu_dot = true, cpu_amx = false;

static inline bool again_no_tiles(void)
{
	printf("# SKIP tiles: where AVX-512 is in plain C; they run in the test of that name\n");
	return false;
}

#define amx_on again_no_tiles
#define __builtin_cpu_supports(feature) true

#undef CPU_AVX512_AND
#define CPU_AVX512_AND(features) unused
#define NUM_CLONES_H
#define CLONES(linkage, type, name, parameters, arguments) linkage type name parameters

/* These may be macros. */
#undef _mm512_extracti64x4_epi64
#undef _mm512_setr_epi32
#undef _mm512_slli_epi32
#undef _mm512_srli_epi16
#undef _mm512_srli_epi32
#undef _mm512_ternarylogic_epi32
#define _mm512_add_epi32 mm512_add_epi32
#define _mm512_add_ps mm512_add_ps
#define _mm512_broadcast_i32x4 mm512_broadcast_i32x4
#define _mm512_broadcast_i64x2 mm512_broadcast_i64x2
#define _mm512_castsi512_ps mm512_castsi512_ps
#define _mm512_castsi512_si256 mm512_castsi512_si256
#define _mm512_cvtepi32_ps mm512_cvtepi32_ps
#define _mm512_cvtph_ps mm512_cvtph_ps
#define _mm512_dpbf16_ps mm512_dpbf16_ps
#define _mm512_dpbusd_epi32 mm512_dpbusd_epi32
#define _mm512_extracti64x4_epi64 mm512_extracti64x4_epi64
#define _mm512_fmadd_ps mm512_fmadd_ps
#define _mm512_load_ps mm512_load_ps
#define _mm512_load_si512 mm512_load_si512
#define _mm512_loadu_ps mm512_loadu_ps
#define _mm512_loadu_si512 mm512_loadu_si512
#define _mm512_mask_storeu_ps mm512_mask_storeu_ps
#define _mm512_maskz_loadu_epi32 mm512_maskz_loadu_epi32
#define _mm512_maskz_loadu_ps mm512_maskz_loadu_ps
#define _mm512_mul_ps mm512_mul_ps
#define _mm512_mullo_epi32 mm512_mullo_epi32
#define _mm512_multishift_epi64_epi8 mm512_multishift_epi64_epi8
#define _mm512_permutex2var_epi32 mm512_permutex2var_epi32
#define _mm512_permutex2var_epi8 mm512_permutex2var_epi8
#define _mm512_permutex2var_ps mm512_permutex2var_ps
#define _mm512_permutexvar_epi32 mm512_permutexvar_epi32
#define _mm512_permutexvar_epi8 mm512_permutexvar_epi8
#define _mm512_permutexvar_ps mm512_permutexvar_ps
#define _mm512_reduce_add_ps mm512_reduce_add_ps
#define _mm512_rolv_epi32 mm512_rolv_epi32
#define _mm512_set1_epi32 mm512_set1_epi32
#define _mm512_set1_epi8 mm512_set1_epi8
#define _mm512_set1_ps mm512_set1_ps
#define _mm512_setr_epi32 mm512_setr_epi32
#define _mm512_setzero_ps mm512_setzero_ps
#define _mm512_setzero_si512 mm512_setzero_si512
#define _mm512_shuffle_epi8 mm512_shuffle_epi8
#define _mm512_slli_epi32 mm512_slli_epi32
#define _mm512_sllv_epi32 mm512_sllv_epi32
#define _mm512_srli_epi16 mm512_srli_epi16
#define _mm512_srli_epi32 mm512_srli_epi32
#define _mm512_srlv_epi32 mm512_srlv_epi32
#define _mm512_store_ps mm512_store_ps
#define _mm512_storeu_ps mm512_storeu_ps
#define _mm512_storeu_si512 mm512_storeu_si512
#define _mm512_sub_epi32 mm512_sub_epi32
#define _mm512_sub_epi8 mm512_sub_epi8
#define _mm512_ternarylogic_epi32 mm512_ternarylogic_epi32
#define _mm512_unpackhi_epi8 mm512_unpackhi_epi8
#define _mm512_unpacklo_epi8 mm512_unpacklo_epi8
#endif
#endif
