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

/* x[n][hidden] = embeddings of ids, times the architecture's scale, which is rounded to the type that the
 * model computes in. An id beyond the vocabulary is a fatal error. */
void embed_tokens(const struct config *c, const struct execution *e, const struct layer *embedding,
	size_t n, float x[n][embedding->linear.in], const int32_t id[n]);
/* Adds learned positions to the rows of a batch. Position 0 is row `offset` of the table. A position beyond
 * the table is a fatal error. */
void embed_positions(const struct layer *position, size_t offset, const struct batch *batch,
	float x[batch->rows][position->linear.in]);
#endif
