/* SPDX-License-Identifier: GPL-3.0-or-later */
/* score.h -- the negative log-likelihood of a target, from logits that come tile by tile */
#ifndef FORWARD_SCORE_H
#define FORWARD_SCORE_H
#include <stdbool.h>
#include <stddef.h>
#include "forward/windows.h"

/* Of one row so far: largest logit, Σ exp(logit - max), the target's logit. */
struct score { float max; double sum, target; };

struct score score_begin(void);
/* Logits of entries first .. first + n - 1. */
void score_add(struct score *s, size_t n, const float y[n], size_t first, size_t target);
/* Whether no other token's logit is larger. */
bool score_likeliest(const struct score *s);
/* log Σ exp(logits) - the target's logit, nats. Dies with the position of `row` where that is not finite. */
double score_nll(const struct score *s, const char *file, const struct windows *w, size_t row);
#endif
