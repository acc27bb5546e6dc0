/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.c -- see online.h */
#include "forward/online.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/thread.h"
#include "device/device_open.h"

enum { FEW_NUMBERS = 1 << 16 };	/* up to which one thread is faster */

void online_set(struct online *o, size_t in, size_t order)
{
	if (order && o->h.n == in && o->h.block == order)
		return;
	online_free(o);
	if (!order)
		return;
	if (!hadamard_choose(&o->h, in, order))
		die("no Hadamard matrix of order %zu is known that divides %zu", order, in);
	o->memory = xalloc(hadamard_bytes(&o->h), 1);
	hadamard_build(&o->h, o->memory);
}

void online_rotation(struct online *o, size_t n, const struct linear_rotation *r)
{
	online_set(o, n, r->hadamard);
	o->signs = r->signs;
}

bool online_rotates(const struct online *o)
{
	return o->h.n || o->signs;
}

static void multiply_signs(const struct online *o, size_t n, size_t m, float x[m][n])
{
	if (!o->signs)
		return;
	#pragma omp parallel for num_threads(threads) if (m * n > FEW_NUMBERS) schedule(static)
	for (size_t t = 0; t < m; t++)
		for (size_t i = 0; i < n; i++)
			x[t][i] *= o->signs[i];
}

void online_apply(const struct online *o, size_t n, size_t m, float x[m][n])
{
	multiply_signs(o, n, m, x);
	if (o->h.n)
		hadamard_product(&o->h, false, m, n, x);
}

void online_undo(const struct online *o, size_t n, size_t m, float x[m][n])
{
	if (o->h.n)
		hadamard_product(&o->h, true, m, n, x);
	multiply_signs(o, n, m, x);
}

/* A block of the matrix, or of its inverse, on a device; NULL: Sylvester's. */
static float *upload_matrix(const struct online *o, const struct device *d, bool undo)
{
	const size_t order = o->h.block;
	struct hadamard h = o->h;
	float (*unit)[order], *y;

	if (h.small == 1 && order <= DEVICE_SYLVESTER)
		return NULL;
	unit = xalloc(order, sizeof *unit);
	for (size_t i = 0; i < order; i++)
		unit[i][i] = 1;
	h.n = order;
	hadamard_product(&h, undo, order, order, unit);
	y = device_copy(d, unit, order * sizeof *unit);
	free(unit);
	return y;
}

void online_upload(const struct online *o, const struct device *d, size_t n, bool undo,
	struct device_rotation *r)
{
	const size_t order = o->h.n ? o->h.block : 0;

	device_free(d, r->signs);
	r->signs = device_copy(d, o->signs, n);
	if (order == r->order)
		return;
	device_free(d, r->matrix);
	r->matrix = order ? upload_matrix(o, d, undo) : NULL;
	r->order = order;
}

void online_release(struct device_rotation *r, const struct device *d)
{
	device_free(d, r->matrix);
	device_free(d, r->signs);
	*r = (struct device_rotation){ 0 };
}

void online_free(struct online *o)
{
	free(o->memory);
	*o = (struct online){ 0 };
}
