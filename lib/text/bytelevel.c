/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bytelevel.c -- see bytelevel.h */
#include "text/bytelevel.h"
#include "text/utf8.h"

enum { CODES = 256 + 68 };

static bool prints(unsigned c)
{
	return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255);
}

static uint16_t code[256];	/* of each byte; all are below U+0800, so two bytes at most */
static int16_t byte[CODES];

static void fill(void)
{
	unsigned next = 256;

	if (code[0])
		return;
	for (int i = 0; i < CODES; i++)
		byte[i] = -1;
	for (unsigned c = 0; c < 256; c++) {
		code[c] = (uint16_t)(prints(c) ? c : next++);
		byte[code[c]] = (int16_t)c;
	}
}

void bytelevel_put(struct weighted *to, struct piece from)
{
	fill();
	weighted_reserve(to, 2 * from.n);
	for (size_t i = 0; i < from.n; i++) {
		size_t length = utf8_put(to->text + to->n, code[(unsigned char)from.text[i]]);

		to->weight[to->n] = from.weight ? from.weight[i] : 1;
		if (length == 2)
			to->weight[to->n + 1] = 0;
		to->n += length;
	}
}

int bytelevel_byte(const char *s, size_t n)
{
	bool valid;
	uint32_t value;

	fill();
	utf8_character(s, n, &valid);
	value = valid ? utf8_value(s) : CODES;
	return value < CODES ? byte[value] : -1;
}
