/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * svd.h -- best low-rank approximation, in the Frobenius norm or under second moments
 *
 *	B A = argmin tr((E - B A) H (E - B A)ᵀ),	B [m][r], A [r][n]
 *
 * Let U be the r leading eigenvectors of M = E H Eᵀ, that is the left singular vectors of E H^½. Then B A =
 * U Uᵀ E; neither a root nor an inverse of H is needed. For H = I this is the truncated singular value
 * decomposition. If H is singular, the minimum is not unique, and U Uᵀ E is one of the minima. A column of B
 * and the corresponding row of A have the same norm; for H = I it is the root of the singular value.
 *
 * U is computed in double in a space of r + max(8, r/4) dimensions: 8 power iterations on M from a Gaussian
 * sketch, with an orthonormal basis after each, then the Rayleigh-Ritz method (Halko, Martinsson, Tropp
 * 2011, algorithms 4.4 and 5.3). On noise, whose spectrum is flat, the squared error is 0.3% above the
 * minimum. If the smaller extent is at most 1024, or 6 times these dimensions, the space is that of all
 * columns of E, and the result is the minimum.
 *
 * Eigenvalues of M are squares, so that singular values below 3e-8 of the largest are lost in double. Their
 * part of the squared error is below the rounding of A and B to floats.
 *
 * Calling sequence: svd_workspace(), svd_run() with so many bytes.
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

/* Bytes of the workspace, for the current number of `threads`. */
size_t svd_workspace(const struct svd *s);
/* Sets a and b. False if the eigenvalue problem does not converge or has numbers that are not finite. BLAS
 * must use one thread (linalg_init()). Results do not depend on `threads`. */
bool svd_run(const struct svd *s, void *workspace);
#endif
