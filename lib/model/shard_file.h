/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shard_file.h -- one shard: its number, its inputs, its blocks
 *
 * Root attributes are `shard` and `shards`, counted from 1, and, for inputs that were files, the digests
 * `model_sha256`, `tokens_sha256`, `hessian_sha256`, `order_sha256` and `pair_sha256` (io/file.h). Block b of
 * a model, counted through all stacks, belongs to shard b mod n + 1. The root belongs to every shard,
 * everything else to shard 1.
 */
#ifndef MODEL_SHARD_FILE_H
#define MODEL_SHARD_FILE_H
#include <stdbool.h>
#include "base/shard.h"
#include "io/part.h"
#include "model/config.h"

enum shard_input { SHARD_MODEL, SHARD_TOKENS, SHARD_HESSIAN, SHARD_ORDER, SHARD_PAIR, SHARD_INPUTS };
extern const char *const shard_digests[SHARD_INPUTS];	/* names of the attributes */
/* Writes these attributes, between begin and end of part 0; shard and shards only if there are several.
 * name: the names of the inputs; NULL: none. */
void shard_write(struct output *out, const struct shard *s, const char *const name[SHARD_INPUTS]);

/* Warns if the file is one shard of several; for tools that expect the whole. */
void shard_warn(const struct part *part);
/* Fatal error if the model is one shard of several; for tools that need the whole model. */
void shard_refuse(const struct part *model);
/* For one shard of several: fatal error if the file `name` has no /config; warns if the model has no block
 * for the shard. */
void shard_check(const struct shard *s, const char *name, const struct config *c);
/* Whether this part of a model belongs to the shard. */
bool shard_has(const struct shard *s, const struct part *part, const struct config *c);
/* Writes an empty group instead of the part's block, or an empty part if it has no block. */
void shard_write_empty(struct output *out, const struct part *part, const struct config *c);
#endif
