/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * cache.h -- the KV cache, and the format that keys and values are rounded to
 *
 * In a format, each group of channels of a head of a token has its own scale, and its own zero point if the
 * format has zero points, from its range (format_fit()): x becomes (grid[code] - zero) · scale. Rounding is
 * simulated: attention reads these numbers as floats, and the cache stores them as floats.
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

/* The format of keys and values of the model whose first part is `first`: the option if it is given, else the
 * root attribute kv_format. An attribute that is not a format is a fatal error, and so is a group that does
 * not divide a head. Warns as setting_hint() does. */
struct cache_format cache_use(const struct config *c, const struct part *first,
	const struct cache_format *option);
/* Checks a given option as cache_use() does, for a filter that does not run its model. Without a /config this
 * is a fatal error. */
void cache_check(const struct filter *f, const struct cache_format *option);
/* Writes a given option as the attribute of the result; "none" removes the attribute. Call it within part 0.
 */
void cache_write(struct output *out, const struct cache_format *option);
/* Fatal error unless all of n inputs that become one model have the same attribute, or none has it. */
void cache_match(size_t n, const struct part *const first[n]);
/* Bits of one number of a key or value, with its share of the scale and of a zero point, which has the width
 * of a code. 0: not rounded. */
double cache_bits(const struct config *c, const struct cache_format *f);
/*
 * Rounds the n numbers at the beginning of each row of `stride` numbers: keys and values, of heads of
 * head_dim channels. A row with numbers that are not finite is left unchanged, so that an overflow is not
 * hidden.
 */
void cache_round(const struct cache_format *f, size_t head_dim, size_t rows, size_t stride, size_t n,
	float *x);

/* Keys (after rotary positions) and values of a stack's blocks, [blocks][sequences][capacity][width]. */
struct cache {
	size_t sequences, capacity, width;
	float *k, *v;
	const size_t *slot;		/* of each sequence of a batch; NULL: sequence n has slot n */
};
struct cache cache_make(const struct stack *s, size_t sequences, size_t capacity);
void cache_free(struct cache *c);
/* Bytes of the keys and values of a sequence. */
size_t cache_bytes(const struct stack *s, size_t capacity);

/* Copies the first tokens of the only slot of `from` to slot n, for all blocks. */
void cache_copy(struct cache *c, size_t n, const struct cache *from, size_t blocks, size_t tokens);

/* Appends the rows of sequence n of a batch to its past, in its slot of a block. A row begins with keys
 * [width], then values [width]; rows begin every `stride` numbers. Returns all keys and values of the slot.
 */
struct attention_keys cache_put(struct cache *c, size_t block, size_t n, const struct sequence *q,
	size_t stride, const float *rows);
#endif
