/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * share.h -- files that are shards: which of how many, and of what; and all shards of one whole together
 *
 * Root attributes `shard`, `shards`, counted from 1, and of the inputs that were files `model_sha256`,
 * `tokens_sha256`, `hessian_sha256` and `order_sha256` (io/file.h).
 */
#ifndef MODEL_SHARE_H
#define MODEL_SHARE_H
#include <stdbool.h>
#include "base/shard.h"
#include "model/filter.h"

enum share_input { SHARE_MODEL, SHARE_TOKENS, SHARE_HESSIAN, SHARE_ORDER, SHARE_INPUTS };
/* Writes what the file is, between begin and end of part 0: a shard, if there are several, of which inputs.
 * name: of the inputs; NULL: there is none. */
void share_write(struct output *out, const struct shard *s, const char *const name[SHARE_INPUTS]);
/* Of a whole made of several files: drops what output_begin() has copied from the first: which shard it is,
 * and the digests of its inputs, but for those that are the same in all n files. n 0: all digests. */
void share_drop(struct output *out, size_t n, const struct filter file[n]);
/* Dies unless n files that become one are of one model: of one basis (model/basis.h), and made from one file,
 * where they say so. With `force` it warns, and returns whether they are not. */
bool share_match(size_t n, const struct filter file[n], bool force);

/* Warns where the file is one shard of several, and something expects the whole. */
void share_warn(const struct part *part);

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
