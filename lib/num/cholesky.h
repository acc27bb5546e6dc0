/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cholesky.h -- Cholesky factor of a matrix in double, and solutions with it
 *
 *	A = L Lᵀ,	X A = B
 *
 * Work is divided into tiles of fixed sizes, which threads take; BLAS must use one thread (linalg_init()). So
 * results do not depend on `threads`.
 *
 * Calling sequence: cholesky_factor(), then cholesky_solve() with its result, also with its leading part.
 */
#ifndef NUM_CHOLESKY_H
#define NUM_CHOLESKY_H
#include <stddef.h>

/* Replaces the lower triangle of a, of a symmetric positive definite matrix, by L. The upper triangle is not
 * read or changed. Returns the failed pivot, counted from 1, else 0. */
size_t cholesky_factor(size_t n, double a[n][n]);
/* Replaces the m rows of b by those of X = B A⁻¹, with the first n rows and columns of A. Rows of l, the
 * factor, start every `stride` numbers, those of b every `b_stride`. */
void cholesky_solve(size_t n, size_t stride, const double l[n][stride], size_t m, size_t b_stride,
	double b[m][b_stride]);
#endif
