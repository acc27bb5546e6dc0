/* SPDX-License-Identifier: GPL-3.0-or-later */
/* online.c -- see online.h */
#include "forward/online.h"
#include <stdlib.h>
#include "base/error.h"

void online_set(struct online *o, size_t in, size_t order)
{
	if (order && o->h.n == in && o->h.block == order)
		return;
	online_free(o);
	if (!order)
		return;
	if (!hadamard_choose(&o->h, in, order))
		die("no Hadamard matrix of order %zu is known that divides %zu", order, in);
	o->memory = xalloc(hadamard_bytes(&o->h), 1);
	hadamard_build(&o->h, o->memory);
}

void online_free(struct online *o)
{
	free(o->memory);
	*o = (struct online){ 0 };
}
