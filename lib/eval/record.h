/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * record.h -- the full record of a measurement: every target's negative log-likelihood beside the numbers
 * that sum it up
 */
#ifndef EVAL_RECORD_H
#define EVAL_RECORD_H
#include <stdbool.h>
#include <stddef.h>
#include "base/report.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "forward/windows.h"
#include "io/part.h"

/*
 * Of a tool whose answer is text (output_answer()), with the history that the first part of the model
 * holds. path NULL: no record, returns NULL.
 */
struct output *record_open(const char *path, const struct part *model);
/* The history of another input, by the name of its option, from its first part. Nothing with NULL. */
void record_input(struct output *out, const char *option, const struct part *input);
/*
 * Writes /target and /window (from 0) int32, /nll_of_target f64 [targets], answers as attributes; closes.
 * Nothing with NULL.
 */
void record_write(struct output *out, size_t n, const struct answer answer[n], const struct windows *w,
	const double nll[w->targets]);

/* An earlier record. Dies unless it is over the same targets in the same windows, and where kl, has that. */
struct part *record_earlier(const char *path, const struct windows *w, bool kl);
enum { RECORD_ANSWERS = 2 * DELTA_ANSWERS };
/*
 * Differences from it of nll and, unless d is NULL, of the divergence. Dies where the reference of the record
 * was another model. Returns how many.
 */
size_t record_answer(const struct part *record, const struct windows *w, const double nll[w->targets],
	const struct divergence *d, struct answer answer[RECORD_ANSWERS]);
#endif
