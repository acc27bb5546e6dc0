/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * logits.h -- the logits of models whose hidden states are at their heads, and likelihoods made of them
 */
#ifndef FORWARD_LOGITS_H
#define FORWARD_LOGITS_H
#include <stddef.h>
#include <stdint.h>
#include "forward/forward.h"
#include "forward/head.h"

/*
 * The logits of one or two models over the same windows, side by side, tile by
 * tile over the vocabulary that they share: visit() gets y[k][m][n] of model k, for rows
 * row .. row + m - 1 and entries first .. first + n - 1. Threads call it, for
 * different rows; the tiles of a row come in order, the same for any number of
 * threads.
 */
typedef void logits_visit(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[]);
void logits_tiles(size_t models, struct forward *const f[models], const struct head *const h[models],
	logits_visit *visit, void *arg);
/* -log p of each target, nats, window by window: log Σ exp(logits) - logit, sums in double. likeliest, or
 * NULL: whether no other token is likelier. */
void logits_score(struct forward *f, const struct head *h, double nll[f->windows->targets],
	uint8_t *likeliest);
/* All logits of rows first .. first + n - 1 of the windows. */
void logits_of(struct forward *f, const struct head *h, size_t first, size_t n,
	float y[n][f->config->vocab]);
#endif
