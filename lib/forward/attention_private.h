/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention_private.h -- attention of some queries, for all heads that share keys and values
 *
 * Queries lie across the lanes of vectors, with one column for each head of a query. Keys and values are read
 * row by row. Maxima and sums need no lane of another column. Softmax weights are multiplied where they were
 * computed, in the first-level cache. The sums of a column run over keys in order, 128 at a time, so a result
 * depends neither on the neighbouring queries nor on the width of vectors.
 */
#ifndef FORWARD_ATTENTION_PRIVATE_H
#define FORWARD_ATTENTION_PRIVATE_H
#include <stddef.h>
#include "forward/attention.h"

/* Bytes of workspace for `queries` queries of a group of heads. It must be aligned as by xalloc(). */
size_t attention_tile_workspace(const struct attention *a, size_t queries);
/* Computes y of rows first .. first + queries - 1 of r, for the query heads that share the head kv_head. */
void attention_tile(const struct attention *a, const struct attention_rows *r, size_t kv_head, size_t first,
	size_t queries, void *workspace);
#endif
