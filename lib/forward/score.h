/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * score.h -- the negative log-likelihood of a target, from logits that arrive tile by tile
 *
 * Calling sequence: score_begin(); score_add() for each tile of the row; score_likeliest() and score_nll().
 */
#ifndef FORWARD_SCORE_H
#define FORWARD_SCORE_H
#include <stdbool.h>
#include <stddef.h>
#include "forward/windows.h"

/* Of the tiles of a row so far: the largest logit, Σ exp(logit - max), the logit of the target. */
struct score { float max; double sum, target; };

struct score score_begin(void);
/* Adds the logits of entries first .. first + n - 1. */
void score_add(struct score *s, size_t n, const float y[n], size_t first, size_t target);
/* Whether no other token's logit is larger. */
bool score_likeliest(const struct score *s);
/* log Σ exp(logits) - logit of the target, in nats. If it is not finite, that is a fatal error, which names
 * the position of `row`. */
double score_nll(const struct score *s, const char *file, const struct windows *w, size_t row);
#endif
