/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * svd.h -- the best approximation of low rank, in the Frobenius norm or under second moments
 *
 *	B A = argmin tr((E - B A) H (E - B A)ᵀ),	B [m][r], A [r][n]
 *
 * With U the r leading eigenvectors of M = E H Eᵀ, the left singular vectors of E H^½, B A = U Uᵀ E: no root
 * of H is needed, nor an inverse. For H = I this is the truncated singular value decomposition. Where H is
 * singular the least is not unique, and U Uᵀ E is one that has it. A column of B and its row of A get the
 * same norm: for H = I each the root of the singular value.
 *
 * U is found in a space of r + p dimensions, in double: by 8 power iterations on M from a Gaussian sketch, an
 * orthonormal basis taken after each, then Rayleigh and Ritz (Halko, Martinsson, Tropp 2011, algorithms 4.4
 * and 5.3); on noise, whose spectrum is flat, the square that is left is 0.3% above the least. Where the
 * smaller extent is at most 1024, or not many times the rank, the space is that of all columns of E, and
 * nothing is left above the least.
 *
 * M's eigenvalues are squares: singular values below 3e-8 of the largest are lost in double; what they add to
 * the squared error is below the rounding of A and B as floats.
 */
#ifndef NUM_SVD_H
#define NUM_SVD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct svd {
	size_t m, n, r;			/* r from 1 to the smaller extent */
	const float *e;			/* [m][n] */
	const float *h;			/* [n][n], symmetric; NULL: I */
	double ridge;			/* added to the diagonal of h */
	uint64_t seed;
	const char *name;		/* of the random stream */
	float *a, *b;
};

/* Bytes, for the present number of `threads`. */
size_t svd_workspace(const struct svd *s);
/* False if the eigenvalue problem does not converge, or is not of finite numbers. BLAS must be on one thread;
 * no result depends on `threads`. */
bool svd_run(const struct svd *s, void *workspace);
#endif
