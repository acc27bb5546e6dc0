/* SPDX-License-Identifier: GPL-3.0-or-later */
/* weight.c -- products with effective weights; see weight.h */
#include "forward/weight.h"
#include "base/error.h"
#include "base/thread.h"
#include "num/bf16.h"
#include "num/half.h"
#include "num/linalg.h"
#include "quant/product.h"
#include <stdint.h>
#include <stdlib.h>

enum { ROWS = WEIGHT_ROWS, FEW = 1 << 16 };	/* numbers, below which one thread is quicker */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t weight_size(enum compute_type type, size_t n, size_t in)
{
	return type == COMPUTE_BF16 ? bf16_packed(n, in) * sizeof(uint32_t) : n * in * sizeof(float);
}

size_t input_size(enum compute_type type, size_t m, size_t in)
{
	return m * in * (type == COMPUTE_BF16 ? sizeof(uint16_t) : sizeof(float));
}

/* At most ROWS rows, rounded by way of `wide` and `narrow`, unless they are bf16 in the file. */
static void pack_rows(const struct linear *l, size_t first, size_t n, uint32_t *packed, float *wide, uint16_t *narrow)
{
	const uint16_t *w = narrow;

	if (l->weight && l->weight_type == HALF_BF16)
		w = (const uint16_t *)l->weight + first * l->in;
	else {
		linear_weight(l, first, n, (float (*)[l->in])wide);
		half_narrow(n * l->in, narrow, wide, HALF_BF16);
	}
	bf16_pack(n, l->in, packed, (const uint16_t (*)[l->in])w);
}

void weight_make(enum compute_type type, const struct linear *l, size_t first, size_t n, void *w)
{
	#pragma omp parallel num_threads(threads) if (n * l->in > FEW)
	{
		float *wide = type == COMPUTE_BF16 ? xalloc(ROWS * l->in, sizeof *wide) : NULL;
		uint16_t *narrow = type == COMPUTE_BF16 ? xalloc(ROWS * l->in, sizeof *narrow) : NULL;

		#pragma omp for schedule(static)
		for (size_t i = 0; i < n; i += ROWS)
			if (type == COMPUTE_BF16)
				pack_rows(l, first + i, least(ROWS, n - i), (uint32_t *)w + bf16_packed(i, l->in), wide, narrow);
			else
				linear_weight(l, first + i, least(ROWS, n - i), (float (*)[l->in])((float *)w + i * l->in));
		free(wide);
		free(narrow);
	}
}

bool input_same(enum compute_type type, const struct linear *l)
{
	return type == COMPUTE_F32 && l->input.mode == INPUT_AS_IS;
}

static void narrow_rows(const struct linear *l, size_t m, uint16_t y[m][l->in], const float x[m][l->in])
{
	float *rounded = l->input.mode == INPUT_AS_IS ? NULL : xalloc(m, l->in * sizeof *rounded);

	if (rounded)
		linear_input(l, m, (float (*)[l->in])rounded, x, NULL);
	half_narrow(m * l->in, y[0], rounded ? rounded : x[0], HALF_BF16);
	free(rounded);
}

static void float_rows(enum compute_type type, const struct linear *l, size_t m, float y[m][l->in], const float x[m][l->in])
{
	linear_input(l, m, y, x, NULL);
	for (size_t t = 0; type == COMPUTE_INT16 && t < m; t++)
		product_narrow(l->in, y[t], y[t]);
}

void input_make(enum compute_type type, const struct linear *l, size_t m, void *y, const float x[m][l->in])
{
	#pragma omp parallel for num_threads(threads) if (m * l->in > FEW) schedule(static)
	for (size_t i = 0; i < m; i += ROWS)
		if (type == COMPUTE_BF16)
			narrow_rows(l, least(ROWS, m - i), (uint16_t (*)[l->in])((uint16_t *)y + i * l->in), &x[i]);
		else
			float_rows(type, l, least(ROWS, m - i), (float (*)[l->in])((float *)y + i * l->in), &x[i]);
}

void weight_product(enum compute_type type, size_t m, size_t n, size_t k, size_t stride, float y[m][stride],
	const void *x, const void *w, const float *bias, bool add)
{
	switch (type) {
	case COMPUTE_F32:
	case COMPUTE_INT16: linalg_product(m, n, k, stride, y, x, w, bias, add); break;
	case COMPUTE_BF16: bf16_product(m, n, k, stride, y, x, w, bias, add); break;
	}
}
