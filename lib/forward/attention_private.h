/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention_private.h -- attention of some queries of all heads that share keys and values
 *
 * Queries stand across the lanes of vectors, a column for each head of a query: keys and values are read
 * row by row, maxima and sums need no lane of another column, and weights are multiplied where they were
 * made, in the first cache. A column's sums run over keys in their order, 128 at a time, so that no result
 * depends on which queries stand beside each other, nor on the width of vectors.
 */
#ifndef FORWARD_ATTENTION_PRIVATE_H
#define FORWARD_ATTENTION_PRIVATE_H
#include <stddef.h>
#include "forward/attention.h"

/* Bytes of work space for so many queries of a group of heads; aligned as xalloc() does. */
size_t attention_tile_workspace(const struct attention *a, size_t queries);
/* y of rows first .. first + queries - 1 of r, of the query heads that share this head of keys. */
void attention_tile(const struct attention *a, const struct attention_rows *r, size_t kv_head, size_t first,
	size_t queries, void *workspace);
#endif
