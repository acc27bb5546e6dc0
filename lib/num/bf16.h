/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16.h -- products of bfloat16 matrices, their sums in float
 *
 * A product of two bf16 numbers is exact in float; only the sums round. They are made by the processor's
 * dot product of pairs (AVX512_BF16), by AVX-512 on widened numbers, or by BLAS on them; tiles (AMX) have a
 * file of their own (num/tile.h). These differ in the order of a sum, and pairs and tiles take what is below
 * 2^-126 for zero:
 *
 *	|y - x wᵀ| ≤ 2 (k + 2) 2^-24 Σ |x| |w| + 2 k 2^-126 (1 + max |x| + max |w|)
 *
 * Tiles are constants, threads take tiles: results do not depend on the number
 * of threads. Matrices are row-major, of bf16 bits (num/half.h); no size is 0.
 */
#ifndef NUM_BF16_H
#define NUM_BF16_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The right side of a product is packed once and then used for many rows of x:
 * pairs of neighbours in k, 32 rows of w side by side, zeros at the ends and to multiples of 16 pairs: a
 * right side of num/tile.h.
 */
size_t bf16_packed(size_t n, size_t k);			/* pairs */
/* packed: [bf16_packed(n, k)], quicker where it is aligned to 64 bytes. */
void bf16_pack(size_t n, size_t k, uint32_t packed[], const uint16_t w[n][k]);

/*
 * y = x wᵀ + bias, or y += with `add`; bias NULL: none. A row of y starts every `stride` ≥ n numbers.
 * pairs: by dot products of pairs, which the processor must have; else on widened numbers.
 */
void bf16_product(bool pairs, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], const float *bias, bool add);

/*
 * Upper triangle of h += Σ_s x_sᵀ x_s over blocks of rows: the product of a block in float, the sum over
 * blocks in double and in their order. By tiles or pairs where they are the quicker (base/cpu.h).
 */
size_t bf16_gram_workspace(size_t m, size_t n);		/* bytes, aligned to 64; 0: none */
void bf16_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n],
	void *workspace);
#endif
