/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bf16x2.c -- see bf16x2.h */
#include "num/bf16x2.h"
#include <string.h>
#include "base/size.h"
#include "num/half.h"
#include "num/tile.h"
#include "num/clones.h"

enum { PANEL = TILE_PANEL };

/* In each side, all high parts h precede all low parts l. */

size_t bf16x2_left_size(size_t k, size_t m)
{
	return 2 * tile_left_size(m, k * sizeof(uint16_t));
}

size_t bf16x2_right_size(size_t k, size_t n)
{
	return 2 * ceil_div(n, PANEL) * PANEL * tile_columns(k * sizeof(uint16_t));
}

static void halves_of(size_t n, uint16_t high[n], uint16_t low[n], const float x[n])
{
	float wide[PANEL], rest[PANEL];

	half_narrow(n, high, x, HALF_BF16);
	half_widen(n, wide, high, HALF_BF16);
	for (size_t i = 0; i < n; i++)
		rest[i] = x[i] - wide[i];
	half_narrow(n, low, rest, HALF_BF16);
}

CLONES(static, void, transpose, (uint16_t y[restrict PANEL][PANEL], const uint16_t x[restrict PANEL][PANEL]),
	(y, x))
{
	for (size_t c = 0; c < PANEL; c++)
		for (size_t r = 0; r < PANEL; r++)
			y[c][r] = x[r][c];
}

void bf16x2_left(size_t k, size_t m, void *left, size_t stride, const float x[k][stride])
{
	const size_t steps = ceil_div(k, PANEL), panels = ceil_div(m, PANEL);
	uint16_t (*y)[PANEL][PANEL] = left;

	for (size_t s = 0; s < steps; s++)
		for (size_t c = 0; c < panels; c++) {
			uint16_t high[PANEL][PANEL] = { { 0 } }, low[PANEL][PANEL] = { { 0 } };

			for (size_t r = 0; r < min(PANEL, k - s * PANEL); r++)
				halves_of(min(PANEL, m - c * PANEL), high[r], low[r],
					&x[s * PANEL + r][c * PANEL]);
			transpose(y[c * steps + s], (const uint16_t (*)[PANEL])high);
			transpose(y[(panels + c) * steps + s], (const uint16_t (*)[PANEL])low);
		}
}

/* Stores 32 numbers as row r of a panel of the right side. */
CLONES(static, void, place_pairs, (size_t r, uint16_t panel[restrict][PANEL][2],
	const uint16_t x[restrict PANEL]),
	(r, panel, x))
{
	for (size_t j = 0; j < PANEL; j++)
		panel[r / 2][j][r % 2] = x[j];
}

void bf16x2_right(size_t all, size_t first, size_t last, size_t n, void *right, size_t stride,
	const float y[all][stride])
{
	const size_t pairs = tile_columns(all * sizeof(uint16_t)) / 4, panels = ceil_div(n, PANEL);
	uint16_t (*to)[PANEL][2] = right;

	for (size_t r = first; r < ceil_div(last, PANEL) * PANEL; r++)
		for (size_t p = 0; p < panels; p++) {
			uint16_t high[PANEL] = { 0 }, low[PANEL] = { 0 };

			if (r < last)
				halves_of(min(PANEL, n - p * PANEL), high, low, &y[r][p * PANEL]);
			place_pairs(r, to + p * pairs, high);
			place_pairs(r, to + (panels + p) * pairs, low);
		}
}

void bf16x2_product(size_t k, size_t m, size_t n, size_t stride, float z[m][stride], const void *left,
	size_t all, const void *right)
{
	const size_t columns = tile_columns(k * sizeof(uint16_t));
	const char *a = left, *b = right;
	struct tile_product p = { .kind = TILE_BF16, .columns = columns, .left = a, .right = b,
		.right_step = tile_columns(all * sizeof(uint16_t)) * PANEL };

	tile_product(&p, m, n, stride, z, NULL, false);
	p.right = b + bf16x2_right_size(all, n) / 2;
	tile_product(&p, m, n, stride, z, NULL, true);
	p.left = a + bf16x2_left_size(k, m) / 2, p.right = b;
	tile_product(&p, m, n, stride, z, NULL, true);
}
