/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * perplexity.h -- perplexity and other statistics of negative log-likelihoods
 *
 *	ppl = exp(mean nll)
 *	nll_se = √((mean nll² - mean² nll) / (n - 1))
 *	bits_per_byte = Σ nll / (ln 2 · bytes of the targets)
 *
 * For numbers x_i of targets with mean x̄, the standard error of x̄ if windows, but not targets, are
 * independent, is
 *
 *	se_windows = √(W / (W - 1) · Σ_w (Σ_{i in w} (x_i - x̄))²) / n
 *
 * over W windows with n targets in total. It includes the correlation of neighbours (ratio estimator of
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
	double nll, nll_se, ppl;	/* nats per token; nll_se is NaN for one target */
	double bits_per_byte;		/* NaN if the number of bytes is unknown */
};

/* bytes: of the text of all targets, 0: unknown. n ≥ 1. */
struct perplexity perplexity_of(size_t n, const double nll[n], uint64_t bytes);

enum { PERPLEXITY_METRICS = 5, DELTA_METRICS = 3 };
/* The results of p; returns their number. bits_per_byte is left out if it is unknown. */
size_t perplexity_metrics(const struct perplexity *p, struct metric metric[PERPLEXITY_METRICS]);

/* se_windows above; NaN for one window. */
double perplexity_se_windows(const struct windows *w, const double x[w->targets]);
/*
 * Three results with these names: the mean of d = x - before over the same targets, its standard error
 * √((mean d² - mean² d)/(n - 1)), and its se_windows.
 */
size_t delta_metrics(const char *const names[DELTA_METRICS], const struct windows *w,
	const double x[w->targets], const double before[w->targets], struct metric metric[DELTA_METRICS]);
/* paired_nll_delta, ..., paired_kl_delta, ..., reference_nll_delta, ... */
extern const char *const paired_nll[DELTA_METRICS], *const paired_kl[DELTA_METRICS];
extern const char *const reference_nll[DELTA_METRICS];
#endif
