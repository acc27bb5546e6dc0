/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16x2.h -- products of floats by tiles of bf16 (AMX), each float as the sum of two bf16 numbers
 *
 *	x = h_x + l_x + r_x,  h = bf16(x),  l = bf16(x - h)
 *	xᵀ y ≈ h_xᵀ h_y + h_xᵀ l_y + l_xᵀ h_y
 *
 * Rounding gives |l| ≤ 2⁻⁸ |x| and |r| ≤ 2⁻¹⁷ |x|: r is half a place of x - h, which is half a place of x.
 * The omitted terms l_x l_y + r_x y + x r_y are at most 2⁻¹⁵ |x| |y|. With k rows, a term passes through
 * fewer than 3k + 2 roundings of sums, and twice as many including the sums of pairs:
 *
 *	|error| ≤ (2⁻¹⁵ + 2 (3k + 2)·2⁻²⁴) Σ |x| |y| + 6k·2⁻¹²⁶ (1 + max |x| + max |y|)
 *
 * The last term is there because tiles take subnormal numbers and sums for zero. If bf16 rounds to infinity,
 * the result is NaN.
 *
 * Calling sequence: bf16x2_left() once for all of x; bf16x2_right() for the rows of y in ascending order,
 * when they are known; bf16x2_product(). The processor must have tiles (cpu_amx).
 *
 * Source: Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
 * higher-precision computations" (ARITH 2019).
 */
#ifndef NUM_BF16X2_H
#define NUM_BF16X2_H
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the left side xᵀ, for x of k rows and m columns, and of the right side y, of at most k rows and n
 * columns. */
size_t bf16x2_left_size(size_t k, size_t m);
size_t bf16x2_right_size(size_t k, size_t n);

/* Sets the left side from x [k][m]; rows of x start every `stride` numbers. */
void bf16x2_left(size_t k, size_t m, void *left, size_t stride, const float x[k][stride]);
/*
 * Sets rows [first, last) of the right side from y. The rows after them, up to a multiple of 32, become 0.
 * Before a product, all its rows must be set. all: the maximum number of rows.
 */
void bf16x2_right(size_t all, size_t first, size_t last, size_t n, void *right, size_t stride,
	const float y[all][stride]);

/* z = xᵀ y over the first k rows; z [m][n], whose rows start every `stride` numbers. */
void bf16x2_product(size_t k, size_t m, size_t n, size_t stride, float z[m][stride], const void *left,
	size_t all, const void *right);
#endif
