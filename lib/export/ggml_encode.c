/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ggml_encode.c -- see ggml_encode.h */
#include "export/ggml_encode.h"
#include <math.h>
#include <string.h>
#include "num/half.h"

enum { BLOCK = 32 };
enum { Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, MXFP4 = 39 };

bool ggml_groups_fit(const struct linear *l)
{
	for (size_t i = 0; i < l->in; i++)
		if (linear_group(l, i) != linear_group(l, i / BLOCK * BLOCK))
			return false;
	return l->in % BLOCK == 0;
}

bool ggml_has_minimum(const struct ggml_type *type)
{
	return type->id == Q4_1 || type->id == Q5_1;
}

/* Elements of scale and zero. */
static size_t parameters(const struct linear *l)
{
	return l->group == -1 ? 1 : l->out * l->groups;
}

/* Whether all zero points are in the middle of the codes, so that code - zero is a symmetric integer. */
static bool is_centred(const struct linear *l)
{
	for (size_t i = 0; i < parameters(l); i++)
		if (l->zero[i] != 1 << (l->storage.bits - 1))
			return false;
	return true;
}

static bool is_e2m1(const struct format *f)
{
	return f->unit == 0.5f && f->max == 6 && f->bits == 4;
}

/* What a quantized layer has beside its format that no blocks hold; NULL: nothing. */
static const char *beyond_blocks(const struct linear *l)
{
	return l->compute.kind ? "a compute format" : l->splits ? "columns taken out" :
		l->branch_a ? "a low-rank branch" :
		linear_two_sided(l) || l->rotation_in.hadamard ? "a rotation" :
		l->in % BLOCK ? "rows that are no multiple of 32 columns" :
		!ggml_groups_fit(l) ? "groups that are no multiple of 32 columns" : NULL;
}

/* By the numbers of the format alone; NULL: there is none. */
static const struct ggml_type *type_of_numbers(const struct linear *l, bool q8)
{
	static const struct { uint32_t id; float max; } symmetric[] = {
		{ Q4_0, 7 }, { Q5_0, 15 }, { Q8_0, 127 } };
	const struct format *f = &l->storage;

	if (!linear_has_grid(l))
		return NULL;
	if (f->asymmetric && !is_centred(l))
		return f->bits > 7 ? NULL : ggml_find(q8 || f->bits > 5 ? Q8_0 : f->bits > 4 ? Q5_1 : Q4_1);
	if (f->asymmetric)
		return ggml_find(q8 || f->bits > 5 ? Q8_0 : f->bits > 4 ? Q5_0 : Q4_0);
	if (!q8 && f->scales == SCALE_E8M0 && is_e2m1(f))
		return ggml_find(MXFP4);
	for (size_t i = q8 ? 2 : 0; i < sizeof symmetric / sizeof *symmetric; i++)
		if (format_unit(f, symmetric[i].max) > 0)
			return ggml_find(symmetric[i].id);
	return NULL;
}

const struct ggml_type *ggml_for(const struct linear *l, bool q8, const char **why)
{
	const struct ggml_type *type;

	*why = NULL;
	if (l->weight)
		return NULL;
	*why = beyond_blocks(l);
	type = *why ? NULL : type_of_numbers(l, q8);
	if (!type && !*why)
		*why = "a format that no type of blocks holds";
	return type;
}

/* x as a half float at y; whether it is that. */
static bool put_half(uint8_t y[2], float x, struct ggml_rounding *r)
{
	uint16_t h;
	float back;

	half_narrow(1, &h, &x, HALF_F16);
	half_widen(1, &back, &h, HALF_F16);
	memcpy(y, &h, sizeof h);
	r->beyond += !isfinite(back);
	return back == x;
}

/* Codes of 4 bits, and the fifth ones behind `high` if that is not NULL. */
static void put_nibbles(uint8_t y[BLOCK / 2], uint8_t *high, const int q[BLOCK])
{
	uint32_t fifth = 0;

	for (int j = 0; j < BLOCK; j++)
		fifth |= (uint32_t)(q[j] >> 4 & 1) << j;
	for (int j = 0; j < BLOCK / 2; j++)
		y[j] = (uint8_t)((q[j] & 15) | (q[j + BLOCK / 2] & 15) << 4);
	if (high)
		memcpy(high, &fifth, sizeof fifth);
}

/* Exponent and codes: sign and half the magnitude's place among 0, 1, 2, 3, 4, 6, 8, 12. */
static bool put_mxfp4(uint8_t y[], const float unit[BLOCK], float scale)
{
	static const int8_t place[13] = { 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7 };
	int q[BLOCK], e;

	for (int j = 0; j < BLOCK; j++)
		q[j] = place[(int)(2 * fabsf(unit[j]))] | (unit[j] < 0 ? 8 : 0);
	put_nibbles(y + 1, NULL, q);
	const bool power = frexpf(scale, &e) == 0.5f;

	y[0] = (uint8_t)(e - 1 + 127);
	return power && e >= -126 && e <= 128;
}

/* A block of numbers without their scale: whether d and m are what they are to be. */
static bool put_block(const struct linear *l, uint32_t type, uint8_t y[], const float unit[BLOCK],
	float scale, int zero, struct ggml_rounding *r)
{
	const bool has_m = type == Q4_1 || type == Q5_1, fifth = type == Q5_0 || type == Q5_1;
	const float u = l->storage.asymmetric ? 1 : l->storage.unit, d = scale * u;
	const int offset = has_m ? zero : type == Q4_0 ? 8 : type == Q5_0 ? 16 : 0;
	uint8_t *rest = y + (has_m ? 4 : 2);
	int q[BLOCK];
	bool exact;

	if (type == MXFP4)
		return put_mxfp4(y, unit, scale);
	exact = put_half(y, d, r);
	if (has_m)
		exact &= put_half(y + 2, -(float)zero * d, r);
	for (int j = 0; j < BLOCK; j++)
		q[j] = (int)(unit[j] / u) + offset;
	if (type != Q8_0)
		put_nibbles(rest + (fifth ? 4 : 0), fifth ? rest : NULL, q);
	for (int j = 0; type == Q8_0 && j < BLOCK; j++)
		rest[j] = (uint8_t)q[j];
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

	for (size_t i = 0; i < l->in; i += BLOCK, y += type->bytes) {
		const size_t group = linear_group(l, i);
		const size_t at = l->group == -1 ? 0 : row * l->groups + group;

		linear_units(l, row, i, BLOCK, unit);
		if (!put_block(l, type->id, y, unit, linear_unit_scale(l, row, group),
			l->zero ? l->zero[at] : 0, r))
			add_cost(l, type, row, i, y, r);
	}
}
