/* SPDX-License-Identifier: GPL-3.0-or-later */
/* jacobi.h -- one-sided Jacobi in double, for tests: singular values and left singular vectors of a matrix */
#ifndef JACOBI_H
#define JACOBI_H
#include <math.h>
#include <stddef.h>
#include <string.h>

/*
 * Makes the rows of x [m][n] orthogonal; u [m][m] is the product of the rotations: x_before = uᵀ x. So row k
 * of u is a left singular vector. The norm of row k of x is the singular value, square[k] its square, in
 * descending order.
 */
static inline void jacobi(size_t m, size_t n, double *x, double *u, double *square)
{
	memset(u, 0, m * m * sizeof *u);
	for (size_t i = 0; i < m; i++)
		u[i * m + i] = 1;
	for (int sweep = 0; sweep < 60; sweep++)
		for (size_t p = 0; p < m; p++)
			for (size_t q = p + 1; q < m; q++) {
				double a = 0, b = 0, c = 0;

				for (size_t j = 0; j < n; j++) {
					a += x[p * n + j] * x[p * n + j];
					b += x[q * n + j] * x[q * n + j];
					c += x[p * n + j] * x[q * n + j];
				}
				if (a < b || fabs(c) > 1e-16 * sqrt(a * b)) {
					/* π/2 also swaps rows in the wrong order */
					const double angle = atan2(2 * c, a - b) / 2;
					const double s = sin(angle), k = cos(angle);

					for (size_t j = 0; j < n; j++) {
						const double v = x[p * n + j], w = x[q * n + j];

						x[p * n + j] = k * v + s * w, x[q * n + j] = k * w - s * v;
					}
					for (size_t j = 0; j < m; j++) {
						const double v = u[p * m + j], w = u[q * m + j];

						u[p * m + j] = k * v + s * w, u[q * m + j] = k * w - s * v;
					}
				}
			}
	for (size_t i = 0; i < m; i++) {
		square[i] = 0;
		for (size_t j = 0; j < n; j++)
			square[i] += x[i * n + j] * x[i * n + j];
	}
}
#endif
