/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * perplexity.h -- numbers of a text's negative log-likelihoods
 *
 *	ppl = exp(mean nll)
 *	nll_se = √((mean nll² - mean² nll) / (n - 1))
 *	bits_per_byte = Σ nll / (ln 2 · bytes of the targets)
 */
#ifndef EVAL_PERPLEXITY_H
#define EVAL_PERPLEXITY_H
#include <stddef.h>
#include <stdint.h>

struct perplexity {
	size_t tokens;			/* targets */
	double nll, nll_se, ppl;	/* nats a token; nll_se is NaN for one target */
	double bits_per_byte;		/* NaN where the bytes are not known */
};

/* bytes: of the text of all targets, 0 if not known. n ≥ 1. */
struct perplexity perplexity_of(size_t n, const double nll[n], uint64_t bytes);
#endif
