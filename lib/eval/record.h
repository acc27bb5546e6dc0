/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * record.h -- the record of an evaluation: the negative log-likelihood of every target, and the results
 *
 * Calling sequence: record_open_earlier() and record_metrics() for --paired; record_open(), record_input()
 * and record_write().
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
 * Opens a record of a tool that prints its results as text (output_stdout_check()), with the history and the
 * calibration of the model, from its first part; model NULL: without one. path NULL: returns NULL, no record.
 */
struct output *record_open(const char *path, const struct part *model);
/* Writes the history of another input, from its first part. option: its option. out or input NULL: no effect.
 */
void record_input(struct output *out, const char *option, const struct part *input);
/* Writes the line of the ids in use (model/calibrated.h) as attribute `evaluation`. out NULL: no effect. */
void record_tokens(struct output *out, const char *used);
/* Writes attribute `settings`: the options that change the results of any model. out NULL: no effect. */
void record_settings(struct output *out, const char *settings);
/* Warns if the settings of the record are not these, of the file `other`. NULL, or none in the record: no
 * effect. */
void record_check_settings(const struct part *record, const char *settings, const char *other);
/* The same for two records. */
void record_check_same_settings(const struct part *record, const struct part *other);
/*
 * Writes /target and /window (from 0) int32, /nll_of_target f64 [targets], and results as attributes; closes.
 * out NULL: no effect.
 */
void record_write(struct output *out, size_t n, const struct metric metric[n], const struct windows *w,
	const double nll[w->targets]);

/* Opens an earlier record. Fatal error if it is none of eval-ppl, if its targets or windows differ, or if it
 * has no /kl although kl is true. used: the line of the ids in use (model/calibrated.h). Other settings are a
 * warning. */
struct part *record_open_earlier(const char *path, const struct windows *w, const char *used,
	const char *settings, bool kl);
/* A value for each of the n targets, questions or choices. A value that is not finite is a fatal error. */
const double *record_numbers(const struct part *record, const char *path, size_t n);
/* Log-likelihoods of a token under the same model differ by less than this, even if two kinds of processor
 * round sums differently. */
extern const double same_nll;
/* Fatal error if the likelihoods of the reference in the record are not those of the same model: nll. */
void record_check_reference(const struct part *record, size_t n, const double nll[n]);
enum { RECORD_METRICS = 2 * DELTA_METRICS };
/*
 * Differences of nll from the record and, unless d is NULL, of the divergence. Returns their number. A record
 * with another reference model is a fatal error.
 */
size_t record_metrics(const struct part *record, const struct windows *w, const double nll[w->targets],
	const struct divergence *d, struct metric metric[RECORD_METRICS]);
#endif
