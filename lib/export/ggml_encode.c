/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ggml_encode.c -- see ggml_encode.h */
#include "export/ggml_encode.h"
#include <math.h>
#include <string.h>
#include "export/export_codes.h"
#include "num/code_form.h"
#include "num/half.h"

enum { BLOCK = 32 };

bool ggml_groups_fit(const struct linear *l)
{
	for (size_t i = 0; i < l->in; i++)
		if (linear_group(l, i) != linear_group(l, i / BLOCK * BLOCK))
			return false;
	return l->in % BLOCK == 0;
}

static bool is_e2m1(const struct format *f)
{
	return f->unit == 0.5f && f->max == 6 && f->bits == 4;
}

/* The feature of a quantized layer that no type of blocks supports; NULL: none. */
static const char *beyond_blocks(const struct linear *l)
{
	return l->compute.kind ? "a compute format" : l->splits ? "split columns" :
		l->branch_a ? "a low-rank branch" :
		linear_two_sided(l) || l->rotation_in.hadamard ? "a rotation" :
		l->in % BLOCK ? "rows that are not a multiple of 32 columns" :
		!ggml_groups_fit(l) ? "groups that are not a multiple of 32 columns" : NULL;
}

/* Whether the type represents every number of the layer's format, or every code - zero point. */
static bool holds(const struct ggml_type *t, const struct linear *l)
{
	const struct format *f = &l->storage;

	if (t->e2m1)
		return f->scales == SCALE_E8M0 && is_e2m1(f);
	if (!f->asymmetric)
		return !t->minimum && format_unit(f, t->max) > 0;
	return f->max <= t->max || (f->bits <= t->bits && (t->minimum || export_is_centred(l)));
}

/* The type whose blocks are the codes of the format, or NULL. */
static const struct ggml_type *of_storage(const struct format *f)
{
	for (const struct ggml_type *t = ggml_types; t->name; t++)
		if (t->storage && !strcmp(t->storage, f->name))
			return t;
	return NULL;
}

static const struct ggml_type *shortest(const struct linear *l, bool q8)
{
	const struct ggml_type *found = NULL;

	for (const struct ggml_type *t = ggml_types; t->name && linear_has_grid(l); t++)
		if (t->bits && (!q8 || t->id == GGML_Q8_0) && (!found || t->bytes < found->bytes) &&
		    holds(t, l))
			found = t;
	return found;
}

const struct ggml_type *ggml_for(const struct linear *l, bool q8, const char **why)
{
	const struct ggml_type *type;

	*why = NULL;
	if (l->weight)
		return NULL;
	*why = beyond_blocks(l);
	type = *why ? NULL : shortest(l, q8);
	if (!type && !*why && !q8)
		type = of_storage(&l->storage);
	if (type && l->in % type->length) {
		*why = "rows that are not a multiple of a block";
		type = NULL;
	}
	if (!type && !*why)
		*why = "a format without a type of blocks";
	return type;
}

/* Writes x as a half float to y; whether it is exact. */
static bool put_half(uint8_t y[2], float x, struct ggml_rounding *r)
{
	uint16_t h;
	float back;

	half_narrow(1, &h, &x, HALF_F16);
	half_widen(1, &back, &h, HALF_F16);
	memcpy(y, &h, sizeof h);
	r->overflows += !isfinite(back);
	return back == x;
}

/* Writes codes of 8 bits, or the fifth bits (optional) and the lower four. */
static void put_codes(uint8_t y[], int bits, const int q[BLOCK])
{
	uint32_t fifth = 0;

	for (int j = 0; j < BLOCK && bits == 5; j++)
		fifth |= (uint32_t)(q[j] >> 4 & 1) << j;
	if (bits == 5) {
		memcpy(y, &fifth, sizeof fifth);
		y += sizeof fifth;
	}
	for (int j = 0; j < BLOCK && bits == 8; j++)
		y[j] = (uint8_t)q[j];
	for (int j = 0; j < BLOCK / 2 && bits < 8; j++)
		y[j] = (uint8_t)((q[j] & 15) | (q[j + BLOCK / 2] & 15) << 4);
}

/* Writes the exponent and codes. A code is a sign and the index of twice the magnitude in 0, 1, 2, 3, 4, 6,
 * 8, 12. */
static bool put_mxfp4(uint8_t y[], const float unit[BLOCK], float scale)
{
	static const int8_t place[13] = { 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7 };
	int q[BLOCK], e;

	for (int j = 0; j < BLOCK; j++)
		q[j] = place[(int)(2 * fabsf(unit[j]))] | (unit[j] < 0 ? 8 : 0);
	put_codes(y + 1, 4, q);
	const bool power = frexpf(scale, &e) == 0.5f;

	y[0] = (uint8_t)(e - 1 + 127);
	return power && e >= -126 && e <= 128;
}

/* Writes a block of numbers without their scale; whether d and m are exact. */
static bool put_block(const struct linear *l, const struct ggml_type *type, uint8_t y[],
	const float unit[BLOCK], float scale, int zero, struct ggml_rounding *r)
{
	const float u = l->storage.asymmetric ? 1 : l->storage.unit, d = scale * u;
	int q[BLOCK];
	bool exact;

	if (type->e2m1)
		return put_mxfp4(y, unit, scale);
	exact = put_half(y, d, r);
	if (type->minimum)
		exact &= put_half(y + 2, -(float)zero * d, r);
	for (int j = 0; j < BLOCK; j++)
		q[j] = (int)(unit[j] / u) + (type->minimum ? zero : type->offset);
	put_codes(y + (type->minimum ? 4 : 2), type->bits, q);
	return exact;
}

static void add_cost(const struct linear *l, const struct ggml_type *type, size_t row, size_t column,
	const uint8_t *y, struct ggml_rounding *r)
{
	float is[BLOCK], was[BLOCK];

	type->decode(1, is, y);
	linear_columns(l, row, column, BLOCK, was);
	for (int j = 0; j < BLOCK; j++) {
		const double error = (double)is[j] - (double)was[j];

		r->error += error * error;
	}
	r->blocks++;
}

void ggml_encode(const struct linear *l, const struct ggml_type *type, size_t row, uint8_t y[],
	struct ggml_rounding *r)
{
	float unit[BLOCK];

	if (type->storage) {
		const size_t bytes = code_columns(&l->storage, l->in);

		memcpy(y, l->codes + row * bytes, bytes);
		return;
	}
	for (size_t i = 0; i < l->in; i += BLOCK, y += type->bytes) {
		const size_t group = linear_group(l, i);

		linear_units(l, row, i, BLOCK, unit);
		if (!put_block(l, type, y, unit, linear_unit_scale(l, row, group),
			l->zero ? l->zero[linear_scale_at(l, row, group)] : 0, r))
			add_cost(l, type, row, i, y, r);
	}
}
