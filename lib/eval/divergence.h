/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * divergence.h -- a model against another, target by target
 *
 *	kl = Σ_v P(v) (log P(v) - log Q(v)),	P the other model's, Q the model's
 *	Δp = Q(target) - P(target)
 *
 * and whether the two have one token on top. Logits of both are made tile by tile over the vocabulary, and
 * one pass over them is enough: with their largest so far A and M, kl is
 *
 *	Σ e^(a - A) (a - m) / Σ e^(a - A) + log Σ e^(m - M) - log Σ e^(a - A) + M - A
 */
#ifndef EVAL_DIVERGENCE_H
#define EVAL_DIVERGENCE_H
#include <stddef.h>
#include <stdint.h>
#include "base/report.h"
#include "forward/forward.h"
#include "forward/head.h"
#include "forward/run.h"
#include "io/part.h"

struct divergence {
	size_t n;			/* targets */
	const double *nll;		/* [n] of the model, a view */
	double *reference;		/* [n] of the other */
	double *kl;			/* [n] nats; what rounding leaves below 0 is 0 */
	uint8_t *agrees;		/* [n] 1: both have the same token on top, of equal ones the first */
	uint8_t *likeliest;		/* [n] 1: for the model no other token is likelier than the target */
};

/*
 * Both over the same windows, with one size of vocabulary, and at their heads. nll and what is kept of the
 * other are bit for bit as logits_score() gives them. Dies on numbers that are not finite.
 */
struct divergence divergence_of(struct forward *f, const struct head *h, struct forward *reference,
	const struct head *reference_head, double nll[f->windows->targets]);
/*
 * Runs the opened models over the windows up to their heads, computes their divergence as above, reads the
 * rest of both and closes them. memory: bytes of hidden states that stay in memory. One model: run_score().
 */
struct divergence divergence_measure(struct run *model, struct run *reference, const struct windows *w,
	size_t memory, double nll[w->targets]);
void divergence_free(struct divergence *d);

enum { DIVERGENCE_ANSWERS = 21 };
/* Means, their standard errors, and percentiles, linear between the two nearest targets; returns how many. */
size_t divergence_answer(const struct divergence *d, const struct windows *w,
	struct answer answer[DIVERGENCE_ANSWERS]);
/* /nll_of_reference and /kl f64, /top_agrees uint8 [n]. Nothing with NULL. */
void divergence_write(struct output *out, const struct divergence *d);
#endif
