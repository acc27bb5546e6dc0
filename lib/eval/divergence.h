/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * divergence.h -- KL divergence of a model from a reference, target by target
 *
 *	kl = Σ_v P(v) (log P(v) - log Q(v)),	P of the reference, Q of the model
 *	Δp = Q(target) - P(target)
 *
 * and top-token agreement. Logits of both are computed tile by tile over the vocabulary, in one pass. With
 * logits a of the reference and m of the model, and their maxima so far A and M, kl is
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
#include "forward/logits.h"
#include "forward/run.h"
#include "io/part.h"

struct divergence {
	size_t n;			/* targets */
	const double *nll;		/* [n] of the model, a view */
	double *reference;		/* [n] nll of the reference */
	double *kl;			/* [n] nats; values below 0, from rounding, become 0 */
	uint8_t *agrees;		/* [n] 1: same most probable token (ties: lowest index) */
	uint8_t *likeliest;		/* [n] 1: for the model, no token is more likely than the target */
};

/*
 * The divergence of two models that have run over the same windows up to their heads, with the same size of
 * vocabulary. The nll of both are bit for bit those of logits_score(). Numbers that are not finite are a
 * fatal error.
 */
struct divergence divergence_of(struct forward *f, const struct head *h, struct forward *reference,
	const struct head *reference_head, double nll[f->windows->targets]);
/* The divergences d[k] of n models, at most DIVERGENCES, from the same reference, whose logits are computed
 * once. */
enum { DIVERGENCES = LOGITS_MODELS - 1 };
void divergences_of(size_t n, struct forward *const f[n], const struct head *const h[n],
	struct forward *reference, const struct head *reference_head, double *const nll[n],
	struct divergence d[n]);
/*
 * Runs the opened models over the windows, computes their divergence, and closes them. memory: bytes of
 * hidden states that are kept in memory. run_score() does the same for one model.
 */
struct divergence divergence_measure(struct run *model, struct run *reference, const struct windows *w,
	size_t memory, double nll[w->targets]);
void divergence_free(struct divergence *d);

enum { DIVERGENCE_METRICS = 21 };
/* Means, their standard errors, and percentiles (linear between the two nearest targets). Returns their
 * number. */
size_t divergence_metrics(const struct divergence *d, const struct windows *w,
	struct metric metric[DIVERGENCE_METRICS]);
/* Writes /nll_of_reference and /kl f64, /top_agrees uint8 [n]. out NULL: no effect. */
void divergence_write(struct output *out, const struct divergence *d);
#endif
