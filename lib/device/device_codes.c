/* SPDX-License-Identifier: GPL-3.0-or-later */
/* device_codes.c -- see device_codes.h */
#include "device/device_codes.h"
#include <math.h>
#include "device/device_open.h"

enum { GROUP = 32, WIDTHS = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 };

bool device_codes_fit(const struct format *f, size_t group)
{
	return format_has_grid(f) && !f->form && WIDTHS >> f->bits & 1 && group % GROUP == 0;
}

bool device_codes_float(const struct format *f)
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
	p->y = f->y;
	p->bias = f->bias;
	p->offset = f->integers ? (int)-f->grid[0] : 0;
	p->code = f->integers ? DEVICE_INTEGER : device_codes_float(f) ? DEVICE_FLOAT : DEVICE_TABLE;
	p->table = p->code == DEVICE_TABLE ?
		device_copy(d, f->grid, sizeof *f->grid << f->bits) : NULL;
}
