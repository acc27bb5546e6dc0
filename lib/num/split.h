/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * split.h -- products of floats by tiles of bf16: each number as the sum of two
 *
 *	x = h + l + r,  h = bf16(x),  l = bf16(x - h),  |r| ≤ 2⁻¹⁸ |x|
 *	xᵀ y ≈ hᵀ h + hᵀ l + lᵀ h
 *
 * For numbers above 2⁻¹¹⁰, of k rows, what is left out and the roundings of sums come to
 *
 *	|error| ≤ (2⁻¹⁵ + 2 (3k + 2)·2⁻²⁴) Σ |x| |y|
 *
 * Both sides are laid out once: xᵀ whole, as a left side of num/tile.h; y as rows of it come to be.
 * The processor has tiles (cpu_tiles in base/cpu.h).
 */
#ifndef NUM_SPLIT_H
#define NUM_SPLIT_H
#include <stdbool.h>
#include <stddef.h>

/* Bytes of xᵀ, x of k rows and m columns; of y with at most k rows of n columns. */
size_t split_left_size(size_t k, size_t m);
size_t split_right_size(size_t k, size_t n);

/* left: of all of x[k][m], whose rows start every `stride` numbers. */
void split_left(size_t k, size_t m, void *left, size_t stride, const float x[k][stride]);
/*
 * right: rows [first, last) of y. Before a product of them, those before have been set too; those behind, to
 * a multiple of 32, become 0. all: rows there will be at most.
 */
void split_right(size_t all, size_t first, size_t last, size_t n, void *right, size_t stride,
	const float y[all][stride]);

/* z[m][stride] = xᵀ y of k rows, by one thread. */
void split_product(size_t k, size_t m, size_t n, size_t stride, float z[m][stride], const void *left,
	size_t all, const void *right);
#endif
