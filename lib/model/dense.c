/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dense.c -- see dense.h */
#include "model/dense.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/hadamard.h"

enum { ROWS = 32 };		/* rows or columns per step of a thread */

/* The inverse of a rotation of n numbers, for rows of n numbers. */
struct inverse {
	struct hadamard h;		/* n 0: none */
	void *memory;
	const int8_t *signs;
};

static struct inverse inverse_of(size_t n, const struct linear_rotation *r)
{
	struct inverse y = { .signs = r->signs };

	if (!r->hadamard)
		return y;
	hadamard_choose(&y.h, n, r->hadamard);	/* succeeds: readers refuse orders without a matrix */
	y.memory = xalloc(hadamard_bytes(&y.h), 1);
	hadamard_build(&y.h, y.memory);
	return y;
}

static void rotate_back(const struct inverse *r, size_t m, size_t n, double x[m][n])
{
	if (r->h.n)
		hadamard_product_double(&r->h, true, m, n, x);
	for (size_t i = 0; r->signs && i < m; i++)
		for (size_t j = 0; j < n; j++)
			x[i][j] *= r->signs[j];
}

/* Rotates rows x of W back: x·R_in(input) is the product of the result with the input. */
static void rotate_rows(const struct linear *l, const struct inverse *r, float w[l->out][l->in])
{
	const size_t n = l->in;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t first = 0; first < l->out; first += ROWS) {
		const size_t m = min(l->out - first, ROWS);
		double (*x)[n] = xalloc(m * n, sizeof **x);

		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < n; j++)
				x[i][j] = (double)w[first + i][j];
		rotate_back(r, m, n, x);
		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < n; j++)
				w[first + i][j] = (float)x[i][j];
		free(x);
	}
}

static void rotate_columns(const struct linear *l, const struct inverse *r, float w[l->out][l->in])
{
	const size_t n = l->out;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t first = 0; first < l->in; first += ROWS) {
		const size_t m = min(l->in - first, ROWS);
		double (*x)[n] = xalloc(m * n, sizeof **x);

		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < m; j++)
				x[j][i] = (double)w[i][first + j];
		rotate_back(r, m, n, x);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < m; j++)
				w[i][first + j] = (float)x[j][i];
		free(x);
	}
}

void linear_dense(const struct linear *l, float w[l->out][l->in])
{
	struct inverse in = inverse_of(l->in, &l->rotation_in), out = inverse_of(l->out, &l->rotation_out);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < l->out; i += ROWS)
		linear_whole(l, i, min(l->out - i, ROWS), w + i);
	if (in.h.n || in.signs)
		rotate_rows(l, &in, w);
	if (out.h.n || out.signs)
		rotate_columns(l, &out, w);
	free(in.memory);
	free(out.memory);
}

struct linear linear_dense_layer(const struct linear *l, float **memory)
{
	*memory = xalloc(l->out * l->in, sizeof **memory);
	linear_dense(l, (float (*)[l->in])*memory);
	return (struct linear){ .out = l->out, .in = l->in, .bias = l->bias, .weight = *memory };
}

struct linear linear_of_hessian(const struct linear *l, float **memory)
{
	return linear_own_rotation(&l->rotation_in) ? linear_dense_layer(l, memory) : *l;
}

bool linear_is_dense(const struct linear *l)
{
	return l->weight && !l->splits && !l->branch_a && !l->rotation_in.hadamard && !l->rotation_in.signs &&
		!l->rotation_out.hadamard && !l->rotation_out.signs;
}
