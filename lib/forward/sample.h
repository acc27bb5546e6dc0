/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sample.h -- draws token ids from a model
 *
 * Each sequence is BOS and the ctx - 1 ids drawn after it. BOS, ends of sequences and placeholders of images
 * are never drawn. The random number of an id is a function of the seed and of the place of the id in the
 * result.
 */
#ifndef FORWARD_SAMPLE_H
#define FORWARD_SAMPLE_H
#include <stddef.h>
#include <stdint.h>
#include "forward/execution.h"
#include "io/part.h"
#include "model/config.h"

/* Fatal error if a logit is not finite. name: of the model's file. */
void sample_check(const char *name, size_t vocab, const float logit[vocab]);

/* One id from p ∝ exp(logit / temperature), by the inverse distribution function at u in [0, 1). An id with
 * the logit -infinity is never drawn. Temperature 0: the most likely id (ties: the lowest id). */
int32_t sample_one(size_t vocab, const float logit[vocab], double temperature, double u);

/* Draws n ids, sequence after sequence; the last sequence may be shorter. The part contains the whole model.
 * Logits that are not finite are a fatal error. */
void sample_tokens(const struct part *part, const struct config *c, const struct execution *e, size_t ctx,
	double temperature, uint64_t seed, size_t n, int32_t id[n]);
#endif
