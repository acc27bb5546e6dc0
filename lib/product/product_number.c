/* SPDX-License-Identifier: GPL-3.0-or-later */
/* product_number.c -- see product_number_private.h */
#include "product/product_number_private.h"
#include <math.h>
#include <string.h>
#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#include "num/bf16.h"
#include "num/bits.h"
#include "num/few.h"
#include "num/linalg.h"
#include "num/tile.h"
#include "num/clones.h"

/* Rows that a thread takes at once; numbers below which one thread is faster. */
enum { ROWS = PRODUCT_ROWS, FEW_NUMBERS = 1 << 16 };
enum { INT16_LIMIT = 127 * 256 + 127 };	/* maximum of two signed bytes, as in product_packed.c */

size_t number_float_size(const struct linear *l, size_t n)
{
	return n * l->in * sizeof(float);
}

void number_float_weight(const struct product *p, size_t n, void *w)
{
	const size_t in = p->l->in;

	#pragma omp parallel for num_threads(threads) if (n * in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += ROWS)
		linear_weight(p->l, p->first + o, min(ROWS, n - o), (float (*)[in])((float *)w + o * in));
}

void number_float_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const size_t in = p->l->in;
	const float (*w)[in] = p->weight;

	const bool few = p->row->variant == NUMBER_FEW && m <= PRODUCT_FEW;

	(few ? few_product : linalg_product)(m, n, in, stride, y, input, w + (first - p->first), bias, add);
}

CLONES(, float, number_int16_integers, (size_t n, int32_t q[n], const float x[n]), (n, q, x))
{
	const float max = bits_max(n, x), scale = max > 0 ? max / INT16_LIMIT : max * 0;
	const bool zero = !(scale > 0) || isinf(scale);

	for (size_t i = 0; i < n; i++) {
		float v = zero ? 0 : x[i] / scale;

		v = v < -INT16_LIMIT ? -INT16_LIMIT : v > INT16_LIMIT ? INT16_LIMIT : v;
		q[i] = (int32_t)(v + 0x1.8p23f - 0x1.8p23f);
	}
	return scale;
}

void product_narrow(size_t n, float y[n], const float x[n])
{
	for (size_t i = 0; i < n; i += PRODUCT_COLUMNS) {
		size_t few = min(n - i, PRODUCT_COLUMNS);
		int32_t q[PRODUCT_COLUMNS];
		float scale = number_int16_integers(few, q, x + i);

		for (size_t j = 0; j < few; j++)
			y[i + j] = (float)q[j] * scale;
	}
}

void number_int16_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	(void)modality;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < m; t++)
		product_narrow(in, (float *)y + t * in, x[t]);
}

bool number_amx_fits(const struct product_row *row, const struct linear *l)
{
	(void)row, (void)l;
	return cpu_amx;
}

bool number_pairs_fits(const struct product_row *row, const struct linear *l)
{
	(void)row, (void)l;
	return cpu_bf16;
}

size_t number_bf16_size(const struct linear *l, size_t n)
{
	return bf16_packed(n, l->in) * sizeof(uint32_t);
}

/* Packs at most ROWS rows of the layer, rounded unless they are stored as bf16. */
static void bf16_panel(const struct linear *l, size_t first, size_t n, uint32_t *panel)
{
	if (l->weight && l->weight_type == HALF_BF16) {
		bf16_pack(n, l->in, panel, (const uint16_t (*)[l->in])l->weight + first);
		return;
	}
	for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS) {
		const size_t columns = min(LINEAR_COLUMNS, l->in - i);
		float wide[LINEAR_COLUMNS];
		uint16_t narrow[ROWS][columns];

		for (size_t o = 0; o < n; o++) {
			linear_columns(l, first + o, i, columns, wide);
			half_narrow(columns, narrow[o], wide, HALF_BF16);
		}
		bf16_pack(n, columns, panel + bf16_packed(ROWS, i), (const uint16_t (*)[columns])narrow);
	}
}

void number_bf16_weight(const struct product *p, size_t n, void *w)
{
	const size_t in = p->l->in;

	#pragma omp parallel for num_threads(threads) if (n * in > FEW_NUMBERS) schedule(static)
	for (size_t o = 0; o < n; o += ROWS)
		bf16_panel(p->l, p->first + o, min(ROWS, n - o), (uint32_t *)w + bf16_packed(o, in));
}

size_t number_bf16_input_size(const struct linear *l, size_t m)
{
	return m * l->in * sizeof(uint16_t);
}

void number_bf16_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	(void)modality;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < m; t++)
		half_narrow(in, (uint16_t *)y + t * in, x[t], HALF_BF16);
}

void number_bf16_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const uint32_t *w = (const uint32_t *)p->weight + bf16_packed(first - p->first, p->l->in);

	bf16_product(p->row->variant == NUMBER_PAIRS, m, n, p->l->in, stride, y, input, w, bias, add);
}

/* Prepared inputs are x rounded to bf16, as a left side of num/tile.h. */
size_t number_amx_input_size(const struct linear *l, size_t m)
{
	return tile_left_size(m, l->in * sizeof(uint16_t));
}

void number_amx_input(const struct product *p, size_t m, void *y, const float x[m][p->l->in],
	const uint8_t *modality)
{
	const size_t in = p->l->in;

	(void)modality;
	#pragma omp parallel for num_threads(threads) if (m * in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < ceil_div(m, TILE_PANEL) * TILE_PANEL; t++)
		for (size_t i = 0; i < in; i += LINEAR_COLUMNS) {
			const size_t n = min(LINEAR_COLUMNS, in - i);
			uint16_t narrow[LINEAR_COLUMNS] = { 0 };

			if (t < m)
				half_narrow(n, narrow, x[t] + i, HALF_BF16);
			tile_store_row(in * sizeof *narrow, y, t, i * sizeof *narrow, n * sizeof *narrow,
				narrow);
		}
}

void number_amx_run(const struct product *p, size_t first, size_t n, size_t m, size_t stride,
	float y[m][stride], const void *input, const float *bias, bool add)
{
	const uint32_t *w = (const uint32_t *)p->weight + bf16_packed(first - p->first, p->l->in);
	const struct tile_product t = { .kind = TILE_BF16, .left = input, .right = w,
		.columns = tile_columns(p->l->in * sizeof(uint16_t)) };

	tile_product(&t, m, n, stride, y, bias, add);
}
