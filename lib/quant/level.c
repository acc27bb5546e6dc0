/* SPDX-License-Identifier: GPL-3.0-or-later */
/* level.c -- see level.h */
#include "quant/level.h"
#include <string.h>
#include "base/size.h"
#include "num/clones.h"

#define AT(field) offsetof(struct linear, field)

static struct level_block of_group(const struct linear *l)
{
	return l->group < 0 ? (struct level_block){ 0, 0 } : (struct level_block){ 1, (size_t)l->group };
}

static struct level_block of_tensor(const struct linear *l)
{
	(void)l;
	return (struct level_block){ 0, 0 };
}

static struct level_block of_row_or_tensor(const struct linear *l)
{
	return (struct level_block){ l->scales8 > 1, 0 };
}

const struct level levels[LEVELS] = {	/* in the order of arithmetic */
	[LEVEL_SCALES] = { AT(scale), LEVEL_OF_SCALES, LEVEL_SCALE, .grouped = true, .block = of_group },
	[LEVEL_TENSOR] = { AT(scale_tensor), LEVEL_FLOAT, LEVEL_DIVISOR, .block = of_tensor },
	[LEVEL_ZEROS] = { AT(zero), LEVEL_OF_CODES, LEVEL_ZERO, .grouped = true, .block = of_group },
	[LEVEL_SCALES8] = { AT(scale8), LEVEL_FLOAT, LEVEL_SCALE, .outer = true, .block = of_row_or_tensor },
};

struct level_block level_extents(const struct level *v, const struct linear *l)
{
	const struct level_block b = v->block(l);

	return (struct level_block){ b.rows ? ceil_div(l->out, b.rows) : 1,
		b.columns ? ceil_div(l->in, b.columns) : 1 };
}

double level_bits(const struct level *v, const struct linear *l)
{
	switch (v->type) {
	case LEVEL_OF_SCALES:	return scale_kinds[l->storage.scales].bits;
	case LEVEL_OF_CODES:	return l->storage.bits;
	default:		return 32;
	}
}

static const void *values_of(const struct level *v, const struct linear *l)
{
	const void *values;

	memcpy(&values, (const char *)l + v->view, sizeof values);
	return values;
}

/* Applies one value to n columns. */
static void add_value(enum level_role role, const void *value, size_t n, float scale[n], uint8_t zero[n])
{
	const float x = role == LEVEL_ZERO ? 0 : *(const float *)value;

	if (role == LEVEL_ZERO)
		memset(zero, *(const uint8_t *)value, n);
	for (size_t j = 0; role == LEVEL_SCALE && j < n; j++)
		scale[j] *= x;
	for (size_t j = 0; role == LEVEL_DIVISOR && j < n; j++)
		scale[j] /= x;
}

/* Applies to each column the value of its group. */
CLONES(static, void, add_values, (size_t n, enum level_role role, const void *values, const int32_t *group,
	float *restrict scale, uint8_t *restrict zero), (n, role, values, group, scale, zero))
{
	const float *x = values;

	if (role == LEVEL_ZERO)
		for (size_t j = 0; j < n; j++)
			zero[j] = ((const uint8_t *)values)[group[j]];
	else
		for (size_t j = 0; j < n; j++)
			scale[j] = role == LEVEL_SCALE ? scale[j] * x[group[j]] : scale[j] / x[group[j]];
}

/* Applies a level to scale and zero, in runs of columns with one value. */
static void add_level(const struct level *v, const struct linear *l, const char *values, size_t row, size_t i,
	size_t n, float scale[n], uint8_t zero[n])
{
	const struct level_block b = v->block(l);
	const size_t size = v->role == LEVEL_ZERO ? 1 : sizeof(float);

	if (b.rows)
		values += row / b.rows * level_extents(v, l).columns * size;
	if (v->grouped && l->group_index) {
		add_values(n, v->role, values, l->group_index + i, scale, zero);
		return;
	}
	for (size_t j = 0, end; j < n; j = end) {
		const size_t block = b.columns ? (i + j) / b.columns : 0;

		end = b.columns ? min((block + 1) * b.columns - i, n) : n;
		add_value(v->role, values + block * size, end - j, scale + j, zero + j);
	}
}

void level_columns(const struct linear *l, bool outer, bool scaled, size_t row, size_t i, size_t n,
	float scale[n], uint8_t zero[n])
{
	for (size_t j = 0; j < n; j++)
		scale[j] = 1;
	memset(zero, 0, n);
	for (const struct level *v = levels; v < levels + LEVELS; v++) {
		const void *values = values_of(v, l);

		if (values && v->outer == outer && (scaled || v->role == LEVEL_ZERO))
			add_level(v, l, values, row, i, n, scale, zero);
	}
}
