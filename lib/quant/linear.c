/* SPDX-License-Identifier: GPL-3.0-or-later */
/* linear.c -- see linear.h */
#include "quant/linear.h"
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/code_form.h"
#include "quant/level.h"
#include "quant/pack.h"
#include "num/clones.h"

/* Columns that are decoded at once, codes of a packed unit, rows that a thread rounds at once; numbers below
 * which one thread is faster. */
enum { COLUMNS = LINEAR_COLUMNS, PACKED = 32, ROWS = 32, FEW_NUMBERS = 1 << 16, LANES = 32 };

size_t linear_group(const struct linear *l, size_t column)
{
	if (l->group_index)
		return (size_t)l->group_index[column];
	return l->group > 0 ? column / (size_t)l->group : 0;
}

size_t linear_groups(size_t in, long group)
{
	return group > 0 && in ? ceil_div(in, (size_t)group) : 1;
}

const uint8_t *linear_codes(const struct linear *l, size_t row, size_t i, size_t n, uint8_t unpacked[n])
{
	const struct format *f = &l->storage;

	if (l->codes)
		return l->codes + row * code_columns(f, l->in) + i;
	pack_unrow(f->bits, n, unpacked, l->packed + row * pack_words(f->bits, code_columns(f, l->in)) +
		pack_words(f->bits, i));
	return unpacked;
}

bool linear_has_grid(const struct linear *l)
{
	return !l->weight && code_is_single(&l->storage);
}

/* (value of the code - zero), with `scaled` times the scales that apply before the compute format. */
static void decode(const struct linear *l, size_t row, size_t i, size_t n, float w[n], bool scaled)
{
	const struct format *f = &l->storage;
	const struct code_form *form = code_form(f);
	const size_t bytes = code_bytes(f), first = i / form->columns * bytes;
	const size_t from = first / PACKED * PACKED, end = ceil_div(i + n, form->columns) * bytes;
	uint8_t zero[COLUMNS], unpacked[COLUMNS + PACKED];
	const uint8_t *code = linear_codes(l, row / form->rows, from, end - from, unpacked);
	float scale[COLUMNS];

	level_columns(l, false, scaled, row, i, n, scale, zero);
	form->decode(f, row % form->rows, i % form->columns, n, w, code + (first - from), scale, zero);
}

void linear_units(const struct linear *l, size_t row, size_t i, size_t n, float w[n])
{
	decode(l, row, i, n, w, l->compute.kind);
	if (l->compute.kind)
		format_round(&l->compute, n, w, w, 1, l->saturate);
}

float linear_unit_scale(const struct linear *l, size_t row, size_t group)
{
	if (l->compute.kind)
		return l->scale8[l->scales8 > 1 ? row : 0];
	group = linear_scale_at(l, row, group);
	return l->scale_tensor ? l->scale[group] / *l->scale_tensor : l->scale[group];
}

void linear_columns(const struct linear *l, size_t row, size_t i, size_t n, float w[n])
{
	if (l->weight) {
		const char *columns = (const char *)l->weight + (row * l->in + i) * half_size(l->weight_type);

		half_widen(n, w, columns, l->weight_type);
	} else if (l->compute.kind) {
		float scale[COLUMNS];
		uint8_t none[COLUMNS];

		linear_units(l, row, i, n, w);
		level_columns(l, true, true, row, i, n, scale, none);
		for (size_t j = 0; j < n; j++)
			w[j] *= scale[j];
	} else
		decode(l, row, i, n, w, true);
}

float linear_split(const struct linear *l, size_t row, size_t k)
{
	return l->split_weight[row * l->splits + k] * (l->split_scale ? l->split_scale[k] : 1);
}

void linear_weight(const struct linear *l, size_t first, size_t n, float w[n][l->in])
{
	if (l->weight) {
		const char *rows = (const char *)l->weight + first * l->in * half_size(l->weight_type);

		half_widen(n * l->in, w[0], rows, l->weight_type);
		return;
	}
	for (size_t o = 0; o < n; o++)
		for (size_t i = 0; i < l->in; i += COLUMNS)
			linear_columns(l, first + o, i, min(l->in - i, COLUMNS), w[o] + i);
}

/* Adds rows [first, first + n) of B A, n ≤ ROWS. */
static void add_branch(const struct linear *l, size_t first, size_t n, float w[n][l->in])
{
	for (size_t k0 = 0; k0 < l->rank; k0 += COLUMNS) {
		const size_t ranks = min(l->rank - k0, COLUMNS);
		float b[ROWS][COLUMNS], a[COLUMNS];

		for (size_t o = 0; o < n; o++)
			linear_columns(l->branch_b, first + o, k0, ranks, b[o]);
		for (size_t i = 0; i < l->in; i += COLUMNS) {
			const size_t columns = min(l->in - i, COLUMNS);

			for (size_t k = 0; k < ranks; k++) {
				linear_columns(l->branch_a, k0 + k, i, columns, a);
				for (size_t o = 0; o < n; o++)
					for (size_t j = 0; j < columns; j++)
						w[o][i + j] += b[o][k] * a[j];
			}
		}
	}
}

void linear_whole(const struct linear *l, size_t first, size_t n, float w[n][l->in])
{
	linear_weight(l, first, n, w);
	for (size_t o = 0; o < n; o++)
		for (size_t k = 0; k < l->splits; k++)
			w[o][l->split_index[k]] += linear_split(l, first + o, k);
	for (size_t o = 0; l->branch_a && o < n; o += ROWS)
		add_branch(l, first + o, min(n - o, ROWS), w + o);
}

bool linear_rotations_agree(size_t n, const struct linear_rotation *a, const struct linear_rotation *b)
{
	return a->hadamard == b->hadamard && !a->signs == !b->signs &&
		(!a->signs || !memcmp(a->signs, b->signs, n));
}

bool linear_same_rotations(const struct linear *a, const struct linear *b)
{
	return linear_rotations_agree(a->in, &a->rotation_in, &b->rotation_in) &&
		linear_rotations_agree(a->out, &a->rotation_out, &b->rotation_out);
}

bool linear_splits_agree(const struct linear *a, const struct linear *b)
{
	return a->splits == b->splits && (!a->splits ||
		!memcmp(a->split_index, b->split_index, a->splits * sizeof *a->split_index));
}

const char *linear_two_sided(const struct linear *l)
{
	return l->rotation_in.signs ? "input_signs" : l->rotation_out.signs ? "output_signs" :
		l->rotation_out.hadamard ? "output_hadamard" : NULL;
}

bool linear_rounds(const struct linear *l)
{
	return l->input.mode != INPUT_AS_IS;
}

bool linear_inputs_agree(const struct linear *a, const struct linear *b)
{
	const struct input_scale *p = &a->input, *q = &b->input;
	const bool is_static = p->mode == INPUT_STATIC_TENSOR || p->mode == INPUT_STATIC_MODALITY;

	if (p->mode != q->mode || !linear_rounds(a))
		return p->mode == q->mode;
	if (strcmp(p->format.name, q->format.name) || p->format.away != q->format.away)
		return false;
	if (!is_static)
		return p->clip == q->clip && linear_splits_agree(a, b);
	return (p->modalities == q->modalities &&
		!memcmp(p->scale, q->scale, p->modalities * sizeof *p->scale));
}

/* max|x|, in which NaN is ignored. */
CLONES(static, float, largest_of_row, (size_t n, const float x[n]), (n, x))
{
	float lane[LANES] = { 0 }, max = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			lane[j] = fabsf(x[i + j]) > lane[j] ? fabsf(x[i + j]) : lane[j];
	for (size_t j = 0; i < n; i++, j++)
		lane[j] = fabsf(x[i]) > lane[j] ? fabsf(x[i]) : lane[j];
	for (size_t j = 0; j < LANES; j++)
		max = lane[j] > max ? lane[j] : max;
	return max;
}

float linear_scale_of(float largest, float max)
{
	return largest / max > 0 ? largest / max : 1;
}

static float token_scale(const struct linear *l, const float x[l->in])
{
	float max = 0;

	for (size_t k = 0, first = 0; k <= l->splits; k++) {	/* between split columns */
		const size_t end = k < l->splits ? (size_t)l->split_index[k] : l->in;

		max = fmaxf(max, largest_of_row(end - first, x + first));
		first = end + 1;
	}
	return linear_scale_of(l->input.clip > 0 ? l->input.clip * max : max, l->input.format.max);
}

float linear_input_scale(const struct linear *l, const float x[l->in], uint8_t modality)
{
	if (l->input.mode == INPUT_DYNAMIC_TOKEN)
		return token_scale(l, x);
	return l->input.scale[l->input.mode == INPUT_STATIC_MODALITY ? modality : 0];
}

void linear_input(const struct linear *l, size_t tokens, float y[tokens][l->in], const float x[tokens][l->in],
	const uint8_t *modality)
{
	if (!linear_rounds(l)) {
		memmove(y, x, tokens * sizeof *y);
		return;
	}
	#pragma omp parallel for num_threads(threads) if (tokens * l->in > FEW_NUMBERS) schedule(static, ROWS)
	for (size_t t = 0; t < tokens; t++)
		format_round(&l->input.format, l->in, y[t], x[t],
			linear_input_scale(l, x[t], modality ? modality[t] : 0), 0);
}
