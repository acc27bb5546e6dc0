/* SPDX-License-Identifier: GPL-3.0-or-later */
/* embed.h -- embeddings of ids, and learned positions */
#ifndef FORWARD_EMBED_H
#define FORWARD_EMBED_H
#include <stddef.h>
#include <stdint.h>
#include "forward/batch.h"
#include "forward/execution.h"
#include "model/config.h"
#include "model/layer.h"

/* Embeddings of ids in x[n][hidden], scaled where the architecture has it so, by a factor of the type that
 * the model computes in; and the learned positions added where there are any,
 * position 0 behind so many rows. */
void embed_tokens(const struct config *c, const struct execution *e, const struct layer *embedding,
	size_t n, float x[n][embedding->linear.in], const int32_t id[n]);
void embed_positions(const struct layer *position, size_t offset, const struct batch *batch,
	float x[batch->rows][position->linear.in]);
#endif
