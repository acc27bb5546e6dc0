/* SPDX-License-Identifier: GPL-3.0-or-later */
/* batch.c -- see batch.h */
#include "forward/batch.h"

const int32_t *batch_positions(const struct batch *b, int32_t own[b->rows])
{
	if (b->position)
		return b->position;
	for (size_t s = 0; s < b->sequences; s++)
		for (size_t i = 0; i < b->sequence[s].length; i++)
			own[b->sequence[s].first + i] = (int32_t)(b->sequence[s].past + i);
	return own;
}
