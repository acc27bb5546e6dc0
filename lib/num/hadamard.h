/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard.h -- Hadamard matrices of any order for which a construction is at hand, and their fast products
 *
 * A matrix of ±1 with H Hᵀ = b I, of order b, is built as
 *
 *	H = K₁ ⊗ … ⊗ S		S = Sylvester's of order 2^power, [1 1; 1 -1] ⊗ [1 1; 1 -1] ⊗ …
 *
 * where each K comes from one construction: Paley's first of order q + 1, q ≡ 3 (mod 4), or second of order
 * 2 (q + 1), q ≡ 1 (mod 4), for q a power of a prime; or Williamson's of order 4 m, from four symmetric
 * circulants. The power of two is the largest that leaves an order with a K; only where no single K does,
 * there are two. Constructions are tried in the order above. docs/hadamard.md has a table.
 *
 * An order n without such a matrix takes diag(H, …, H), n / b blocks of the largest b that divides n and has
 * one: 4 for 188, 2 for 90, 1 for an odd n. Not every H is symmetric, so x H and x Hᵀ differ.
 *
 * Sources: J. J. Sylvester, Phil. Mag. 34 (1867); R. E. A. C. Paley, J. Math. Phys. 12 (1933); J. Williamson,
 * Duke Math. J. 11 (1944).
 */
#ifndef NUM_HADAMARD_H
#define NUM_HADAMARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger matrices K are not built: one takes 1.5 order² bytes, and order / 4 additions a number. */
enum { HADAMARD_MAX = 4096, HADAMARD_FACTORS = 2 };
enum { HADAMARD_COLUMNS = 16 };	/* that patterns count in: of a table of sums (hadamard_product.c) */

struct hadamard {
	size_t n, block;		/* n / block blocks */
	size_t small, power;		/* block = small · 2^power; small: the factors' orders, multiplied */
	size_t factors;
	struct hadamard_factor {
		const struct construction *by;
		size_t order, q;	/* q: Paley's, or the order of a circulant */
		const int8_t *k;	/* [order][order], ±1 */
		const uint8_t *pattern[2];	/* [order][order / 4], see hadamard_product.c: of Kᵀ, of K */
	} factor[HADAMARD_FACTORS];
};

/* The largest order that divides n and has a matrix; n > 0. */
size_t hadamard_block(size_t n);
/*
 * Which matrix of order n: blocks of order `block`; 0: of hadamard_block(n). False if there is none: n is 0,
 * the block does not divide it, or no construction fits. Nothing is built yet.
 */
bool hadamard_choose(struct hadamard *h, size_t n, size_t block);
/* "Paley II (q = 73) ⊗ Sylvester (128)", of one block. */
void hadamard_text(const struct hadamard *h, size_t size, char text[size]);

/* Bytes that the matrices K take, 0 without any, and building them there; the memory stays in use. */
size_t hadamard_bytes(const struct hadamard *h);
void hadamard_build(struct hadamard *h, void *memory);

/*
 * Each row x of n numbers becomes x H/√block, or x Hᵀ/√block, its inverse; rows start every `stride` ≥ n
 * numbers. Numbers are scaled first, so that nothing overflows on the way that does not in the end. Sums have
 * one order, so that results have the same bits on every processor and for any number of threads. With
 * d = power, and order / 4 + 2 more for each factor, in the norm of a row
 *
 *	‖y - x H/√block‖₂ ≤ (d + 3) 2^-24 ‖x‖₂ + block 2^-150
 *
 * since the partial sums of each step are the product of x and a part of a matrix with orthogonal columns.
 * In double, with 2^-53 and `order` for each factor, plainly: for weights and for tests. An infinite number
 * or NaN leaves none finite in its block.
 */
void hadamard_product(const struct hadamard *h, bool transposed, size_t m, size_t stride, float x[m][stride]);
void hadamard_product_double(const struct hadamard *h, bool transposed, size_t m, size_t stride,
	double x[m][stride]);
#endif
