/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_rotation.c -- see layer_rotation.h */
#include "transform/layer_rotation.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/online.h"
#include "num/hadamard.h"

enum { TILE = 32, FEW_NUMBERS = 1 << 16 };

static struct linear_rotation rotation_of(size_t n, int8_t *signs, uint64_t seed, const char *side)
{
	const struct random_stream stream = random_open(seed, side);

	for (size_t i = 0; i < n; i++)
		signs[i] = random_bits(&stream, i) & 1 ? -1 : 1;
	return (struct linear_rotation){ signs, hadamard_block(n) };
}

void layer_rotation_make(struct layer_rotation *r, size_t out, size_t in, uint64_t seed)
{
	*r = (struct layer_rotation){ { xalloc(in, 1), xalloc(out, 1) }, .weight = NULL };
	r->in = rotation_of(in, r->signs[0], seed, "signs of inputs");
	r->out = rotation_of(out, r->signs[1], seed, "signs of outputs");
}

/* Copies the signs, so that they outlive the layer. */
static struct linear_rotation copy_of(size_t n, const struct linear_rotation *from, int8_t **signs)
{
	if (from->signs)
		*signs = memcpy(xalloc(n, 1), from->signs, n);
	return (struct linear_rotation){ *signs, from->hadamard };
}

void layer_rotation_copy(struct layer_rotation *r, const struct linear *l)
{
	*r = (struct layer_rotation){ .weight = NULL };
	r->in = copy_of(l->in, &l->rotation_in, &r->signs[0]);
	r->out = copy_of(l->out, &l->rotation_out, &r->signs[1]);
}

/* y = xᵀ */
static void transpose(size_t m, size_t n, float y[n][m], const float x[m][n])
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW_NUMBERS) schedule(static)
	for (size_t i = 0; i < m; i += TILE)
		for (size_t j = 0; j < n; j += TILE)
			for (size_t k = i; k < min(i + TILE, m); k++)
				for (size_t l = j; l < min(j + TILE, n); l++)
					y[l][k] = x[k][l];
}

/* x R of m rows. */
static void rotate(const struct linear_rotation *r, size_t m, size_t n, float x[m][n])
{
	struct online o = { .signs = NULL };

	online_rotation(&o, n, r);
	online_apply(&o, n, m, x);
	online_free(&o);
}

void layer_rotation_weight(struct layer_rotation *r, const struct linear *l)
{
	const size_t m = l->out, n = l->in;
	float (*turned)[m] = xalloc(n, sizeof *turned), (*w)[n] = xalloc(m, sizeof *w);

	linear_weight(l, 0, m, w);
	rotate(&r->in, m, n, w);
	transpose(m, n, turned, (const float (*)[n])w);
	rotate(&r->out, n, m, turned);
	transpose(n, m, w, (const float (*)[m])turned);
	free(turned);
	r->weight = w[0];
	r->linear = (struct linear){ .out = m, .in = n, .weight = r->weight };
}

/* R_inᵀ X R_in; free() it. */
static float *rotate_both(const struct layer_rotation *r, size_t n, const float *x)
{
	float (*a)[n] = xalloc(n, sizeof *a), (*b)[n] = xalloc(n, sizeof *b);

	transpose(n, n, a, (const float (*)[n])x);
	rotate(&r->in, n, n, a);
	transpose(n, n, b, (const float (*)[n])a);
	rotate(&r->in, n, n, b);
	free(a);
	return b[0];
}

float *layer_rotation_hessian(const struct layer_rotation *r, size_t n, const float *h)
{
	float *y = rotate_both(r, n, h);

	for (size_t i = 0; i < n; i++)		/* symmetric in every bit */
		for (size_t j = 0; j < i; j++)
			y[i * n + j] = y[j * n + i];
	return y;
}

float *layer_rotation_cross(const struct layer_rotation *r, size_t n, const float *g, const float *h,
	const float *rotated)
{
	float *c = xalloc(n * n, sizeof *c), *y;

	for (size_t i = 0; i < n * n; i++)
		c[i] = g[i] - h[i];
	y = rotate_both(r, n, c);
	for (size_t i = 0; i < n * n; i++)
		y[i] += rotated[i];
	free(c);
	return y;
}

void layer_rotation_free(struct layer_rotation *r)
{
	free(r->signs[0]), free(r->signs[1]), free(r->weight);
	*r = (struct layer_rotation){ .weight = NULL };
}
