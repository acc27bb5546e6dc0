/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16.h -- products of bfloat16 matrices, their sums in float
 *
 * A product of two bf16 numbers is exact in float; only the sums round. The sums are computed by the
 * processor's dot product of pairs (AVX512_BF16), by AVX-512 on numbers widened to float, or by BLAS on
 * widened numbers. Tiles (AMX) are in num/tile.h. These ways differ in the order of a sum, and pairs and
 * tiles take numbers below 2^-126 for zero:
 *
 *	|y - x wᵀ| ≤ 2 (k + 2) 2^-24 Σ |x| |w| + 2 k 2^-126 (1 + max |x| + max |w|)
 *
 * The sizes of the blocks that threads compute are constants: results do not depend on the number
 * of threads. Matrices are row-major, of bf16 bits (num/half.h); no size is 0.
 *
 * Calling sequence: bf16_pack() once for each right side, then bf16_product() for many left sides.
 */
#ifndef NUM_BF16_H
#define NUM_BF16_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The packed right side w has the layout of a right side of num/tile.h: pairs of neighbours in k, 32 rows of
 * w side by side, padded with zeros to multiples of 32 rows and of 16 pairs.
 */
size_t bf16_packed(size_t n, size_t k);			/* number of pairs */
/* packed: [bf16_packed(n, k)]; faster if it is aligned to 64 bytes. */
void bf16_pack(size_t n, size_t k, uint32_t packed[], const uint16_t w[n][k]);

/*
 * y = x wᵀ + bias, with `add` y += x wᵀ + bias; bias NULL: no bias. Rows of y start every `stride` ≥ n
 * numbers. pairs: use dot products of pairs, which the processor must support; else widened numbers.
 */
void bf16_product(bool pairs, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const uint16_t x[m][k], const uint32_t packed[], const float *bias, bool add);

/*
 * Upper triangle of h += Σ_s x_sᵀ x_s over blocks of rows. The product of a block is computed in float. The
 * sum over blocks is computed in double, in their order. Tiles or pairs are used if they are faster
 * (base/cpu.h).
 */
size_t bf16_gram_workspace(size_t m, size_t n);		/* bytes, aligned to 64; 0: no workspace */
void bf16_gram(size_t blocks, size_t m, size_t n, double h[n][n], const uint16_t x[blocks][m][n],
	void *workspace);
#endif
