/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bf16x2.h -- products of floats by tiles of bf16 (AMX), each number as the sum of two
 *
 *	x = h_x + l_x + r_x,  h = bf16(x),  l = bf16(x - h)
 *	xᵀ y ≈ h_xᵀ h_y + h_xᵀ l_y + l_xᵀ h_y
 *
 * |l| ≤ 2⁻⁸ |x| and |r| ≤ 2⁻¹⁷ |x| (half a place of x - h, itself half a place of x), so that what is left
 * out, l_x l_y + r_x y + x r_y, is at most 2⁻¹⁵ |x| |y|. Of k rows a term passes through fewer than 3k + 2
 * roundings of sums, twice as many with those of pairs:
 *
 *	|error| ≤ (2⁻¹⁵ + 2 (3k + 2)·2⁻²⁴) Σ |x| |y| + 6k·2⁻¹²⁶ (1 + max |x| + max |y|)
 *
 * the last term because tiles take subnormal numbers and sums for zero; where bf16 rounds to infinity, what
 * comes out is NaN. Both sides are laid out once: xᵀ whole, as a left side of num/tile.h; y as rows of it
 * come to be. The processor has tiles (cpu_amx).
 *
 * Source: Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
 * higher-precision computations" (ARITH 2019).
 */
#ifndef NUM_BF16X2_H
#define NUM_BF16X2_H
#include <stdbool.h>
#include <stddef.h>

/* Bytes of xᵀ, x of k rows and m columns; of y with at most k rows of n columns. */
size_t bf16x2_left_size(size_t k, size_t m);
size_t bf16x2_right_size(size_t k, size_t n);

/* left: of all of x[k][m], whose rows start every `stride` numbers. */
void bf16x2_left(size_t k, size_t m, void *left, size_t stride, const float x[k][stride]);
/*
 * right: rows [first, last) of y. Before a product of them, those before have been set too; those behind, to
 * a multiple of 32, become 0. all: rows there will be at most.
 */
void bf16x2_right(size_t all, size_t first, size_t last, size_t n, void *right, size_t stride,
	const float y[all][stride]);

/* z[m][stride] = xᵀ y of k rows. */
void bf16x2_product(size_t k, size_t m, size_t n, size_t stride, float z[m][stride], const void *left,
	size_t all, const void *right);
#endif
