/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * clones.h -- elementwise loops in several vector widths, chosen when the program starts
 *
 * CLONES before a function compiles it for AVX-512, AVX2 and plain x86-64. Such
 * loops have no contraction (-std=c17): every copy gives the same bits. Include
 * it after all other headers: its pragma holds for what follows.
 *
 * Source: GCC manual, function attribute target_clones.
 */
#ifndef NUM_CLONES_H
#define NUM_CLONES_H
/* No floating-point exception is looked at, so branches may become selects, and loops vectors. */
#pragma GCC optimize ("no-trapping-math")

#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
