/* SPDX-License-Identifier: GPL-3.0-or-later */
/* code_form.c -- see code_form.h */
#include "num/code_form.h"
#include "base/size.h"

enum { BYTE = 8 };

static void decode_grid(const struct format *f, size_t row, size_t i, size_t n, float w[n],
	const uint8_t code[], const float scale[n], const uint8_t zero[n])
{
	(void)row;
	format_decode(f, n, w, code + i, scale, zero);
}

static const struct code_form single = { .rows = 1, .columns = 1, .decode = decode_grid };

const struct code_form *code_form(const struct format *f)
{
	return f->form ? f->form : &single;
}

bool code_is_single(const struct format *f)
{
	return !f->form;
}

bool code_has_scales(const struct format *f)
{
	return code_form(f)->has_scales;
}

bool code_packs(const struct format *f)
{
	return f->bits <= BYTE;
}

size_t code_bytes(const struct format *f)
{
	return ceil_div((size_t)f->bits, BYTE);
}

size_t code_rows(const struct format *f, size_t out)
{
	return ceil_div(out, code_form(f)->rows);
}

size_t code_columns(const struct format *f, size_t in)
{
	return ceil_div(in, code_form(f)->columns) * code_bytes(f);
}

double code_bits(const struct format *f, size_t out, size_t in)
{
	const size_t columns = ceil_div(in, code_form(f)->columns);

	return f->bits * (double)code_rows(f, out) * (double)columns;
}

/* Index of the first of n bytes that is not a code of the format; n: all are. */
static size_t first_invalid_byte(const struct format *f, size_t n, const uint8_t byte[n])
{
	uint8_t max = 0;
	size_t i = 0;

	for (size_t j = 0; j < n; j++)
		max = (byte[j] & f->code_mask) > max ? byte[j] & f->code_mask : max;
	if (max <= f->code_last)
		return n;
	while ((byte[i] & f->code_mask) <= f->code_last)
		i++;
	return i;
}

size_t code_first_invalid(const struct format *f, size_t n, const uint8_t code[])
{
	const struct code_form *form = code_form(f);
	const size_t bytes = code_bytes(f);
	size_t i = 0;

	if (!form->valid)
		return first_invalid_byte(f, n * bytes, code) / bytes;
	while (i < n && form->valid(f, code + i * bytes))
		i++;
	return i;
}

bool code_is_any(const struct format *f, bool packed)
{
	const int bits = f->bits < BYTE ? f->bits : BYTE;

	if (f->bits > BYTE && f->bits % BYTE)
		return false;
	return !code_form(f)->valid && f->code_mask == 0xff && f->code_last == (1 << bits) - 1 &&
		(packed || bits == BYTE);
}
