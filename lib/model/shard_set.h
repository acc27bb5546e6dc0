/* SPDX-License-Identifier: GPL-3.0-or-later */
/* shard_set.h -- a complete set of shards (model/shard_file.h), and files of one model */
#ifndef MODEL_SHARD_SET_H
#define MODEL_SHARD_SET_H
#include <stdbool.h>
#include <stddef.h>
#include "model/filter.h"

/*
 * Sorts n inputs by shard number, if they are shards; returns whether they are. Each input has its first
 * part read, and no output yet. Fatal error unless all of them are shards of one whole, each present once.
 * Shards of one whole were made by the same command (except for --shard) from the same files.
 */
bool shard_sort(size_t n, struct filter file[n]);

/* For a result made of n files: drops the attributes of a shard that output_begin() copied from the first
 * file, and the digests of inputs that are not equal in all n files. n 0: all digests. */
void shard_drop(struct output *out, size_t n, const struct filter file[n]);
/* Fatal error unless n files that are combined are of one model: equal bases (model/basis.h), and equal
 * digests of the model if the files have them. With `force`, a warning; returns whether they differ. */
bool shard_match(size_t n, const struct filter file[n], bool force);
#endif
