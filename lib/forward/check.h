/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * check.h -- checks during a filter that the logits of its model do not change
 *
 * Both versions of each part are run in float32 on two sequences of 64 random ids from a fixed seed (fewer if
 * the model has fewer positions). If the model reads images, an image of noise precedes each sequence. At the
 * head,
 *	max |Δ logit| / max |logit|
 * is printed. Neither version is ever whole in memory, and each may be a stream.
 */
#ifndef FORWARD_CHECK_H
#define FORWARD_CHECK_H
#include <stdbool.h>
#include "model/filter.h"

#define CHECK_MAX 1e-4		/* largest difference that float32 explains */
#define OPTION_CHECK(var) { 0, "check", OPTION_BOOL(var), NULL, \
	"compare the logits before and after", .neutral = true }

/* model_filter(); with `check`, a difference above `limit` is a fatal error before the last part is written.
 */
void check_filter(struct filter *f, void (*part)(void *arg, const struct filter *f), void *arg, bool check,
	double limit);
#endif
