/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hadamard.h -- Hadamard matrices and their fast products
 *
 * A Hadamard matrix of order b is a matrix of ±1 with H Hᵀ = b I. It is built as
 *
 *	H = K₁ ⊗ … ⊗ S		S = Sylvester's of order 2^power, [1 1; 1 -1] ⊗ [1 1; 1 -1] ⊗ …
 *
 * Each K is built by one of these constructions, which are tried in this order:
 *	Paley I		order q + 1, q ≡ 3 (mod 4) a power of a prime
 *	Paley II	order 2 (q + 1), q ≡ 1 (mod 4) a power of a prime
 *	Williamson	order 4 m, from four symmetric circulants
 * The order of S is the largest power of two for which the rest is the order of a K. Only if no single K
 * fits, two are used. docs/hadamard.md has a table.
 *
 * If no such matrix of order n exists, the matrix is diag(H, …, H): n / b blocks, where b is the largest
 * divisor of n with a matrix. It is 4 for 188, 2 for 90, 1 for an odd n. Not every H is symmetric, so x H
 * and x Hᵀ differ.
 *
 * Calling sequence: hadamard_choose(), hadamard_build() in memory of hadamard_bytes(), then products.
 *
 * Sources: J. J. Sylvester, Phil. Mag. 34 (1867); R. E. A. C. Paley, J. Math. Phys. 12 (1933); J. Williamson,
 * Duke Math. J. 11 (1944).
 */
#ifndef NUM_HADAMARD_H
#define NUM_HADAMARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest order of a K. A K takes 1.5 order² bytes, and its product order / 4 additions per number. */
enum { HADAMARD_MAX = 4096, HADAMARD_FACTORS = 2 };
enum { HADAMARD_COLUMNS = 16 };	/* unit of patterns: columns of a table of sums (hadamard_product.c) */

struct hadamard {
	size_t n, block;		/* n / block blocks */
	size_t small, power;		/* block = small · 2^power; small: product of the orders of the K */
	size_t factors;
	struct hadamard_factor {
		const struct construction *by;
		size_t order, q;	/* q: Paley's, or the order of a circulant */
		const int8_t *k;	/* [order][order], ±1 */
		const uint8_t *pattern[2];	/* [order][order / 4], of Kᵀ, of K; see hadamard_product.c */
	} factor[HADAMARD_FACTORS];
};

/* The largest order of a matrix that divides n; n > 0. */
size_t hadamard_block(size_t n);
/*
 * Chooses the matrix of order n with blocks of order `block`; 0: of order hadamard_block(n). False if n is 0,
 * the block does not divide n, or no construction fits. Nothing is built yet.
 */
bool hadamard_choose(struct hadamard *h, size_t n, size_t block);
/* Description of one block, "Paley II (q = 73) ⊗ Sylvester (128)". */
void hadamard_text(const struct hadamard *h, size_t size, char text[size]);

/* Bytes of the matrices K (0: h has none), and building them in `memory`, which h uses from then on. */
size_t hadamard_bytes(const struct hadamard *h);
void hadamard_build(struct hadamard *h, void *memory);

/*
 * Each row x of n numbers becomes x H/√block or, transposed, x Hᵀ/√block, the inverse. Rows start every
 * `stride` ≥ n numbers. Numbers are scaled before they are added, so that no partial sum overflows unless
 * the result does. Sums have one order: results have the same bits on every processor and for any number of
 * threads. With d = power + Σ over factors of (order / 4 + 2), the error of a row is
 *
 *	‖y - x H/√block‖₂ ≤ (d + 3) 2^-24 ‖x‖₂ + block 2^-150
 *
 * since the partial sums of each step are the product of x and a part of a matrix with orthogonal columns.
 * hadamard_product_double(), for weights and tests, uses no tables: 2^-53 replaces 2^-24, and `order`
 * replaces order / 4 + 2. If a number of a block is infinite or NaN, no result of the block is finite.
 */
void hadamard_product(const struct hadamard *h, bool transposed, size_t m, size_t stride, float x[m][stride]);
void hadamard_product_double(const struct hadamard *h, bool transposed, size_t m, size_t stride,
	double x[m][stride]);
#endif
