/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shard_set.h -- all shards of one whole together (model/shard_file.h): in order, none missing, of one model
 */
#ifndef MODEL_SHARD_SET_H
#define MODEL_SHARD_SET_H
#include <stdbool.h>
#include <stddef.h>
#include "model/filter.h"

/*
 * n inputs, each with its first part read, before they have an output: if they are shards they are put in
 * order. Dies unless they are all shards of one whole and none is missing or there twice; of one whole: made
 * by the same command (but for --shard) from the same files. Returns whether they are shards.
 */
bool shard_sort(size_t n, struct filter file[n]);

/* Of a whole made of several files: drops what output_begin() has copied from the first: which shard it is,
 * and the digests of its inputs, but for those that are the same in all n files. n 0: all digests. */
void shard_drop(struct output *out, size_t n, const struct filter file[n]);
/* Dies unless n files that become one are of one model: of one basis (model/basis.h), and made from one file,
 * where they say so. With `force` it warns, and returns whether they are not. */
bool shard_match(size_t n, const struct filter file[n], bool force);
#endif
