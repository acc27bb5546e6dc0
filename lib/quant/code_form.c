/* SPDX-License-Identifier: GPL-3.0-or-later */
/* code_form.c -- see code_form.h */
#include "quant/code_form.h"
#include "base/size.h"
#include "quant/pack.h"

enum { BYTE = 8 };

static void decode_grid(const struct format *f, size_t row, size_t i, size_t n, float w[n],
	const uint8_t code[], const float scale[n], const uint8_t zero[n])
{
	(void)row;
	format_decode(f, n, w, code + i, scale, zero);
}

static const struct code_form single = { 1, 1, decode_grid };

const struct code_form *code_form(const struct format *f)
{
	return f->form ? f->form : &single;
}

bool code_is_single(const struct format *f)
{
	return !f->form;
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

size_t code_words(const struct format *f, size_t in)
{
	return pack_words(f->bits, code_columns(f, in));
}

double code_bits(const struct format *f, size_t out, size_t in)
{
	const size_t columns = ceil_div(in, code_form(f)->columns);

	return f->bits * (double)code_rows(f, out) * (double)columns;
}

bool code_is_any(const struct format *f, bool packed)
{
	const int bits = f->bits < BYTE ? f->bits : BYTE;

	return f->code_mask == 0xff && f->code_last == (1 << bits) - 1 && (packed || bits == BYTE);
}
