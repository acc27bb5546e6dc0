/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * smooth_attention.h -- SmoothAttention: makes outliers of keys smaller, and queries larger
 *
 *	λ_i = λ_j = max(max|K_i|, max|K_j|)^α, K_i ← K_i/λ_i, Q_i ← Q_i·λ_i
 *
 * for the two channels i, j of a key head that rotary positions pair; a channel without a pair has a factor
 * of its own. Queries that share a key head share its factors, so that all products of queries and keys stay
 * equal. Rows and biases of the key and query layers are changed; the inputs of all layers stay the same
 * (QServe, Lin et al. 2024, section 4.2; α = 1/2). The maxima are over the outputs of the key layer for the
 * tokens of a calibration, before rotary positions. A rotation of a pair changes the larger of its two maxima
 * by at most √2. λ = 1 for channels that are all 0.
 *
 * Calling sequence: smooth_attention_check(); then the functions of struct rewrite. Heads with norms of
 * queries and keys are a fatal error: a norm follows the layers, and would remove the factors. So are keys
 * that are not finite.
 */
#ifndef TRANSFORM_SMOOTH_ATTENTION_H
#define TRANSFORM_SMOOTH_ATTENTION_H
#include "base/report.h"
#include "calib/calibrate.h"
#include "transform/rewrite.h"

struct smooth_attention {
	const struct config *config;
	struct calibrate_run *run;	/* of the input model */
	double alpha;			/* 0 to 1 */
	struct report *report;
	struct smoothed_keys *keys;	/* [blocks of the language model]; NULL at first */
};

/* Fatal error if the attention of the language model has norms of queries and keys. name: of the file. */
void smooth_attention_check(const struct config *c, const char *name);
/* begin() of struct rewrite: runs the blocks of a part, and reports the largest key before and after. */
void smooth_attention_begin(void *smooth, const struct filter *f, const struct residual *here);
/* outputs() of struct rewrite: the divisors of a layer of keys or queries, of a block that begin() has run.
 */
double *smooth_attention_outputs(void *smooth, const struct part *part, const struct residual *here,
	size_t i);
void smooth_attention_free(struct smooth_attention *s);
#endif
