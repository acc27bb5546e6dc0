/* SPDX-License-Identifier: GPL-3.0-or-later */
/* device_codes.c -- see device_codes.h */
#include "device/device_codes.h"
#include <math.h>
#include <stdlib.h>
#include "device/device_open.h"

enum { GROUP = 32, WIDTHS = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 };

bool device_codes_fit(const struct format *f, size_t group)
{
	return format_has_grid(f) && !f->form && WIDTHS >> f->bits & 1 && group % GROUP == 0;
}

/* Whether the bits of each code are sign, exponent and mantissa. */
static bool is_float(const struct format *f)
{
	const int sign = 1 << (f->bits - 1);

	for (int c = 0; c < 1 << f->bits; c++) {
		const int e = (c & (sign - 1)) >> f->y, m = c & ((1 << f->y) - 1);
		const double v = ldexp(e ? (1 << f->y) + m : m, (e ? e : 1) - f->bias - f->y);

		if ((c & f->code_mask) <= f->code_last && f->grid[c] != (float)(c & sign ? -v : v))
			return false;
	}
	return true;
}

void device_codes(const struct device *d, const struct format *f, struct device_packed *p)
{
	p->bits = f->bits;
	p->mantissa = f->y;
	p->bias = f->bias;
	p->offset = f->integers ? (int)-f->grid[0] : 0;
	p->code = f->integers ? DEVICE_INTEGER : is_float(f) ? DEVICE_FLOAT : DEVICE_TABLE;
	p->table = p->code == DEVICE_TABLE ?
		device_copy(d, f->grid, sizeof *f->grid << f->bits) : NULL;
}

/* A value of a format, with its code. */
struct value { float value; uint8_t code; };

static int by_value(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : x->code - y->code;
}

/* The smallest number that is rounded to b, of two neighbouring values a < b. */
static double edge_between(const struct format *f, float a, float b)
{
	const double middle = ((double)a + b) / 2;
	const float one = 1;
	uint8_t code;
	float y;

	format_quantize(f, 1, &code, &y, &middle, &one, &(uint8_t){ 0 });
	return y >= b ? middle : nextafter(middle, INFINITY);
}

struct device_format device_format(const struct format *f)
{
	struct device_format y = { .max = f->max, .integers = f->integers, .away = f->away,
		.floats = !f->integers && is_float(f), .mantissa = f->y, .bias = f->bias };
	struct value value[256] = { { 0 } };
	int n = 0;

	for (int c = 0; c < 1 << f->bits; c++)
		if ((c & f->code_mask) <= f->code_last)
			value[n++] = (struct value){ f->grid[c], (uint8_t)c };
	qsort(value, (size_t)n, sizeof *value, by_value);
	for (int i = 0; i < n; i++) {
		const float v = value[i].value;

		if (y.n && y.value[y.n - 1] == v)	/* 0 has the code of +0, not that of -0 */
			continue;
		if (y.n)
			y.edge[y.n - 1] = edge_between(f, y.value[y.n - 1], v);
		y.code[y.n] = value[i].code;
		y.value[y.n++] = v;
	}
	return y;
}
