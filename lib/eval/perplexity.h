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
#include "base/report.h"

struct perplexity {
	size_t tokens;			/* targets */
	double nll, nll_se, ppl;	/* nats a token; nll_se is NaN for one target */
	double bits_per_byte;		/* NaN where the bytes are not known */
};

/* bytes: of the text of all targets, 0 if not known. n ≥ 1. */
struct perplexity perplexity_of(size_t n, const double nll[n], uint64_t bytes);

enum { PERPLEXITY_ANSWERS = 5, PAIRED_ANSWERS = 2 };
/* Rows of an answer; how many: bits_per_byte only where it is known. */
size_t perplexity_answer(const struct perplexity *p, struct answer answer[PERPLEXITY_ANSWERS]);

struct paired { double delta, delta_se; };
/* Mean of nll - nll' over the same targets and its standard error √((mean d² - mean² d)/(n - 1)). */
struct paired perplexity_paired(size_t n, const double nll[n], const double before[n]);
size_t paired_answer(struct paired p, struct answer answer[PAIRED_ANSWERS]);
#endif
