/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cache.h -- keys and values that later tokens see: the format that they are rounded to, and their store
 *
 * Under a format each group of channels of a head of a token has its own scale, and zero point where the
 * format has one, from its range (format_fit()): x becomes (grid[code] - zero) · scale. Rounding is
 * simulated: attention sees, and the store holds, these numbers in float.
 */
#ifndef FORWARD_CACHE_H
#define FORWARD_CACHE_H
#include <stddef.h>
#include "forward/attention.h"
#include "forward/batch.h"
#include "io/part.h"
#include "model/cache_format.h"
#include "model/config.h"
#include "model/filter.h"

/* What keys and values of the model, whose first part this is, are rounded to: as an option says, else as its
 * root attribute kv_format. Dies where the attribute says nothing known, or groups do not divide a head;
 * warns as setting_hint(). */
struct cache_format cache_use(const struct config *c, const struct part *first,
	const struct cache_format *option);
/* The same of a filter that does not run its model, where the option is given; dies without a /config. */
void cache_check(const struct filter *f, const struct cache_format *option);
/* The attribute of a result, within part 0, where the option is given; "none" removes it. */
void cache_write(struct output *out, const struct cache_format *option);
/* Dies unless n inputs that become one model have one attribute, or none of them has it. */
void cache_match(size_t n, const struct part *const first[n]);
/* Bits of a key's or value's number with its share of the scale, and of a zero point of the format's
 * width; 0 where they are not rounded. */
double cache_bits(const struct config *c, const struct cache_format *f);
/*
 * Rounds n numbers at the beginning of every `stride`, keys and values of a row, of heads of so many
 * channels. A row with numbers that are not finite stays as it is, so that an overflow is not hidden.
 */
void cache_round(const struct cache_format *f, size_t head_dim, size_t rows, size_t stride, size_t n,
	float *x);

/* Keys (rotated already) and values of a stack's blocks, [blocks][sequences][capacity][width]. */
struct cache {
	size_t sequences, capacity, width;
	float *k, *v;
};
struct cache cache_make(const struct stack *s, size_t sequences, size_t capacity);
void cache_free(struct cache *c);

/* The next rows of a sequence, behind its past, into its place n of a block: keys, and behind them values, at
 * the beginning of every `stride`. Returns all that stand there then. */
struct attention_keys cache_put(struct cache *c, size_t block, size_t n, const struct sequence *q,
	size_t stride, const float *rows);
#endif
