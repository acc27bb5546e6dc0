/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * share.h -- files that are shards: which of how many, and of what; and all shards of one whole together
 *
 * Root attributes `shard`, `shards`, counted from 1, and of the inputs that were files `model_sha256` and
 * `tokens_sha256` (io/file.h).
 */
#ifndef MODEL_SHARE_H
#define MODEL_SHARE_H
#include <stdbool.h>
#include "base/shard.h"
#include "model/filter.h"

/* Writes what the file is, between begin and end of part 0; nothing for 1/1. model, tokens: names of inputs,
 * or NULL. */
void share_write(struct output *out, const struct shard *s, const char *model, const char *tokens);
/* Of a whole made of shards: leaves out what output_begin() has taken over from one. */
void share_drop(struct output *out);

/* Dies unless the model has a block for the filter's shard. */
void share_check(const struct filter *f);
/* Whether the part at hand belongs to the filter's shard (model/filter.h). */
bool share_has(const struct filter *f);
/* Writes an empty group in the place of the block at hand, or nothing in that of another part. */
void share_leave(const struct filter *f);

/*
 * n inputs, each with its first part at hand, before they have an output: if they are shards they are put in
 * order. Dies unless they are all shards of one whole and none is missing or there twice; of one whole: made
 * by the same command (but for --shard) from the same files. Returns whether they are shards.
 */
bool share_sort(size_t n, struct filter file[n]);
#endif
