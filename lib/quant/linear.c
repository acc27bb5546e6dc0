/* SPDX-License-Identifier: GPL-3.0-or-later */
/* linear.c -- see linear.h */
#include "quant/linear.h"
#include <math.h>
#include <string.h>
#include "quant/pack.h"

enum { COLUMNS_AT_ONCE = 256 };

size_t linear_group(const struct linear *l, size_t column)
{
	if (l->group_index)
		return (size_t)l->group_index[column];
	return l->group > 0 ? column / (size_t)l->group : 0;
}

size_t linear_groups(size_t in, long group)
{
	return group > 0 && in ? (in - 1) / (size_t)group + 1 : 1;
}

/* Codes of a row from column i on, i a multiple of COLUMNS_AT_ONCE; unpacked where they are packed. */
static const uint8_t *codes_of(const struct linear *l, size_t row, size_t i, size_t n,
	uint8_t unpacked[COLUMNS_AT_ONCE])
{
	const int bits = l->storage.bits;

	if (l->codes)
		return l->codes + row * l->in + i;
	pack_unrow(bits, n, unpacked, l->packed + row * pack_words(bits, l->in) + pack_words(bits, i));
	return unpacked;
}

static void weight_row(const struct linear *l, size_t row, float w[])
{
	const size_t first = l->group == -1 ? 0 : row * l->groups;
	const float scale8 = l->compute.kind ? l->scale8[l->scales8 > 1 ? row : 0] : 1;
	float scale[COLUMNS_AT_ONCE];
	uint8_t zero[COLUMNS_AT_ONCE], unpacked[COLUMNS_AT_ONCE];

	for (size_t i = 0; i < l->in; i += COLUMNS_AT_ONCE) {
		size_t n = l->in - i < COLUMNS_AT_ONCE ? l->in - i : COLUMNS_AT_ONCE;

		for (size_t j = 0; j < n; j++) {
			size_t g = first + linear_group(l, i + j);

			scale[j] = l->scale[g];
			zero[j] = l->zero ? l->zero[g] : 0;
		}
		format_decode(&l->storage, n, w + i, codes_of(l, row, i, n, unpacked), scale, zero);
		if (!l->compute.kind)
			continue;
		format_round(&l->compute, n, w + i, w + i, 1, l->saturate);
		for (size_t j = i; j < i + n; j++)
			w[j] *= scale8;
	}
}

void linear_weight(const struct linear *l, size_t first, size_t n, float w[n][l->in])
{
	const size_t size = l->weight_type == HALF_NONE ? sizeof(float) : sizeof(uint16_t);

	if (l->weight)
		half_widen(n * l->in, w[0], (const char *)l->weight + first * l->in * size, l->weight_type);
	else
		for (size_t i = 0; i < n; i++)
			weight_row(l, first + i, w[i]);
}

static float token_scale(const struct linear *l, const float x[l->in])
{
	float top = 0;

	for (size_t i = 0; i < l->in; i++)
		top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
	top /= l->input.format.top;
	return top > 0 ? top : 1;
}

void linear_input(const struct linear *l, size_t tokens, float y[tokens][l->in], const float x[tokens][l->in],
	const uint8_t *modality)
{
	if (l->input.mode == INPUT_AS_IS) {
		memmove(y, x, tokens * sizeof *y);
		return;
	}
	for (size_t t = 0; t < tokens; t++) {
		float scale;

		switch (l->input.mode) {
		case INPUT_DYNAMIC_TOKEN: scale = token_scale(l, x[t]); break;
		case INPUT_STATIC_MODALITY: scale = l->input.scale[modality ? modality[t] : 0]; break;
		default: scale = l->input.scale[0];
		}
		format_round(&l->input.format, l->in, y[t], x[t], scale, 0);
	}
}
