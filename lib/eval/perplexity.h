/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * perplexity.h -- numbers of a text's negative log-likelihoods
 *
 *	ppl = exp(mean nll)
 *	nll_se = √((mean nll² - mean² nll) / (n - 1))
 *	bits_per_byte = Σ nll / (ln 2 · bytes of the targets)
 *
 * and of numbers x a target with mean x̄ the standard error of x̄ that takes windows, not targets, as
 * independent
 *
 *	se_windows = √(W / (W - 1) · Σ_w (Σ_{i in w} (x_i - x̄))²) / n
 *
 * over W windows of n targets in all: what neighbours have in common counts in it (the ratio estimator of
 * cluster sampling).
 */
#ifndef EVAL_PERPLEXITY_H
#define EVAL_PERPLEXITY_H
#include <stddef.h>
#include <stdint.h>
#include "base/report.h"
#include "forward/windows.h"

struct perplexity {
	size_t tokens;			/* targets */
	double nll, nll_se, ppl;	/* nats a token; nll_se is NaN for one target */
	double bits_per_byte;		/* NaN where the bytes are not known */
};

/* bytes: of the text of all targets, 0 if not known. n ≥ 1. */
struct perplexity perplexity_of(size_t n, const double nll[n], uint64_t bytes);

enum { PERPLEXITY_ANSWERS = 5, DELTA_ANSWERS = 3 };
/* Rows of an answer; how many: bits_per_byte only where it is known. */
size_t perplexity_answer(const struct perplexity *p, struct answer answer[PERPLEXITY_ANSWERS]);

/* The formula above; NaN for one window. */
double perplexity_se_windows(const struct windows *w, const double x[w->targets]);
/*
 * Mean of x - before over the same targets, its standard error √((mean d² - mean² d)/(n - 1)), and that over
 * windows, under these three names.
 */
size_t delta_answer(const char *const names[DELTA_ANSWERS], const struct windows *w,
	const double x[w->targets], const double before[w->targets], struct answer answer[DELTA_ANSWERS]);
/* paired_nll_delta, ..., paired_kl_delta, ..., reference_nll_delta, ... */
extern const char *const paired_nll[DELTA_ANSWERS], *const paired_kl[DELTA_ANSWERS];
extern const char *const reference_nll[DELTA_ANSWERS];
#endif
