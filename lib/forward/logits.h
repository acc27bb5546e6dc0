/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * logits.h -- logits and negative log-likelihoods of models that have run up to their heads
 *
 * f: after forward_part() returned true (forward/forward.h). h: of head_read() on that part.
 */
#ifndef FORWARD_LOGITS_H
#define FORWARD_LOGITS_H
#include <stddef.h>
#include <stdint.h>
#include "forward/forward.h"
#include "forward/head.h"

/*
 * Computes the logits of up to LOGITS_MODELS models over the same windows, in tiles of rows by entries of
 * their common vocabulary. On the processor the weights of a head that several models have are prepared once.
 * visit() is called with y[k][m][n] of model k, for rows row .. row + m - 1 and entries first ..
 * first + n - 1. Threads call it for different rows. The tiles of a row come in order, and are the same for
 * any number of threads.
 */
enum { LOGITS_MODELS = 8 };
typedef void logits_visit(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[]);
void logits_tiles(size_t models, struct forward *const f[models], const struct head *const h[models],
	logits_visit *visit, void *arg);
/* nll = -log p of each target in nats, window by window: log Σ exp(logits) - logit of the target, summed in
 * double. likeliest (or NULL): whether no other token is more likely. A nll that is not finite is a fatal
 * error. */
void logits_score(struct forward *f, const struct head *h, double nll[f->windows->targets],
	uint8_t *likeliest);
#endif
