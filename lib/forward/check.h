/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * check.h -- a filter that must not change what its model computes, checked as the parts pass
 *
 * Both versions of each part are run, in float32, on two sequences of 64 ids drawn from a seed (fewer where
 * the model has fewer positions), each behind an image of noise where the model sees images; at the head
 *	max |Δ logit| / max |logit|
 * is printed. So neither version is held whole, and each may be a stream.
 */
#ifndef FORWARD_CHECK_H
#define FORWARD_CHECK_H
#include <stdbool.h>
#include "model/filter.h"

#define CHECK_MAX 1e-4		/* that float32 explains */
#define OPTION_CHECK(var) { 0, "check", OPTION_BOOL(var), NULL, \
	"run the model before and after, print the largest difference of logits", .neutral = true }

/* model_filter(), with `check` as described; then it dies above `limit`, before the last part is written. */
void check_filter(struct filter *f, void (*part)(void *arg, const struct filter *f), void *arg, bool check,
	double limit);
#endif
