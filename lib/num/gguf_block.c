/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_block.c -- the table of types of blocks; see gguf_block.h */
#include "num/gguf_block.h"
#include <string.h>
#include "base/size.h"
#include "num/gguf_block_private.h"

enum { BYTE = 8 };

static const struct type {
	const char *name;
	size_t columns, bytes;
	size_t half[2];			/* offsets of its half floats */
	gguf_block_decode_part *part;
	gguf_block_search *search;
} types[] = {
	{ "q4_k", BLOCK, 144, { 0, 2 }, q4_k_part, gguf_block_search_offset },
	{ "q5_k", BLOCK, 176, { 0, 2 }, q5_k_part, gguf_block_search_offset },
	{ "q6_k", BLOCK, 210, { 208, 208 }, q6_k_part, gguf_block_search_q6_k },
	{ "iq4_nl", GROUP, 18, { 0, 0 }, iq4_nl_part, gguf_block_search_iq4_nl },
};
enum { Q4_K, Q5_K, Q6_K, IQ4_NL, TYPES };

static void decode_blocks(const struct type *t, size_t n, float y[], const uint8_t x[])
{
	for (size_t i = 0; i < n; i++, x += t->bytes)
		for (size_t k = 0; k < t->columns / GROUP; k++, y += GROUP)
			t->part(y, x, k);
}

void q4_k_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&types[Q4_K], n, y, x);
}

void q5_k_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&types[Q5_K], n, y, x);
}

void q6_k_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&types[Q6_K], n, y, x);
}

void iq4_nl_decode(size_t n, float y[], const uint8_t x[])
{
	decode_blocks(&types[IQ4_NL], n, y, x);
}

bool gguf_block_fill(struct format *f)
{
	for (f->x = 0; f->x < TYPES; f->x++)
		if (!strcmp(types[f->x].name, f->name)) {
			f->bits = (int)types[f->x].bytes * BYTE;
			return true;
		}
	return false;
}

static const struct type *type_of(const struct format *f)
{
	return &types[f->x];
}

/* Blocks have their own scales: scale and zero are not read. */
static void decode(const struct format *f, size_t row, size_t i, size_t n, float w[n], const uint8_t code[],
	const float scale[n], const uint8_t zero[n])
{
	const struct type *t = type_of(f);
	float part[GROUP];

	(void)row, (void)scale, (void)zero;
	for (size_t j = 0, some; j < n; j += some) {
		const size_t at = (i + j) % t->columns, from = at % GROUP;

		some = min(GROUP - from, n - j);
		t->part(part, code + (i + j) / t->columns * t->bytes, at / GROUP);
		memcpy(w + j, part + from, some * sizeof *w);
	}
}

static bool is_finite(const uint8_t half[2])
{
	return (half[1] & 0x7c) != 0x7c;
}

static bool valid(const struct format *f, const uint8_t code[])
{
	const struct type *t = type_of(f);

	return is_finite(code + t->half[0]) && is_finite(code + t->half[1]);
}

#define FORM(of) { .rows = 1, .columns = of, .decode = decode, .valid = valid, .has_scales = true }
const struct code_form gguf_block_256_form = FORM(BLOCK), gguf_block_32_form = FORM(GROUP);

void gguf_block_encode(const struct format *f, size_t n, uint8_t code[], const float x[n],
	const float *importance)
{
	const struct type *t = type_of(f);

	for (size_t i = 0; i < n; i += MOST_AT_ONCE)
		t->search(f, min(MOST_AT_ONCE, n - i), code + i / t->columns * t->bytes, x + i,
			importance ? importance + i : NULL);
}
