/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.c -- see online.h */
#include "forward/online.h"
#include "base/error.h"

static struct online {
	struct hadamard h;
	void *memory;			/* of its matrices */
	struct online *next;
} *built;

const struct hadamard *online_hadamard(size_t in, size_t order)
{
	struct online *y = built;

	if (!order)
		return NULL;
	while (y && (y->h.n != in || y->h.block != order))
		y = y->next;
	if (y)
		return &y->h;
	y = xalloc(1, sizeof *y);
	if (!hadamard_choose(&y->h, in, order))
		die("no Hadamard matrix of order %zu is known that divides %zu", order, in);
	y->memory = xalloc(hadamard_bytes(&y->h), 1);
	hadamard_build(&y->h, y->memory);
	y->next = built;
	built = y;
	return &y->h;
}
