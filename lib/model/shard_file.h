/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shard_file.h -- a file that is a shard: which of how many, and of what
 *
 * Root attributes `shard`, `shards`, counted from 1, and of the inputs that were files `model_sha256`,
 * `tokens_sha256`, `hessian_sha256` and `order_sha256` (io/file.h). Blocks of a model are dealt out: block b,
 * counted through all stacks, belongs to shard b mod n + 1; all else to shard 1, and the root to every shard.
 */
#ifndef MODEL_SHARD_FILE_H
#define MODEL_SHARD_FILE_H
#include <stdbool.h>
#include "base/shard.h"
#include "io/part.h"
#include "model/config.h"

enum shard_input { SHARD_MODEL, SHARD_TOKENS, SHARD_HESSIAN, SHARD_ORDER, SHARD_INPUTS };
extern const char *const shard_digests[SHARD_INPUTS];	/* the attributes' names */
/* Writes what the file is, between begin and end of part 0: a shard, if there are several, of which inputs.
 * name: of the inputs; NULL: there is none. */
void shard_write(struct output *out, const struct shard *s, const char *const name[SHARD_INPUTS]);

/* Warns where the file is one shard of several, and something expects the whole. */
void shard_warn(const struct part *part);
/* Dies unless the model, of this file, has a block for the shard. */
void shard_check(const struct shard *s, const char *name, const struct config *c);
/* Whether this part of a model belongs to the shard. */
bool shard_has(const struct shard *s, const struct part *part, const struct config *c);
/* Writes an empty group in the place of the part's block, or nothing in that of a part without one. */
void shard_leave(struct output *out, const struct part *part, const struct config *c);
#endif
