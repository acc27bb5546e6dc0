/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq.h -- the parts of a model, scaled and clipped for rounding to nearest (transform/awq_search.h)
 *
 * Scaled is what norms put out, by their gains and shifts, and what one layer makes for another (residual.h:
 * source), by its rows and bias; then the weights are clipped, but for those that make queries and keys. Only
 * layers that a Hessian file has take part, and no routers, which solvers leave alone.
 */
#ifndef TRANSFORM_AWQ_H
#define TRANSFORM_AWQ_H
#include <stdbool.h>
#include <stddef.h>
#include "base/report.h"
#include "io/part.h"
#include "transform/awq_search.h"
#include "transform/rewrite.h"

struct awq {
	const struct part *hessian;	/* has mean_abs of the layers' inputs */
	struct awq_format format;
	bool clip;
	struct report *report;
	size_t done;			/* layers so far */
	size_t notes;			/* what of a part was scaled, and is not yet written */
	struct awq_note { char *path; double ratio, nearest, scaled; } *note;
};

/* For struct rewrite: factors of a norm, and between a layer and its source; none where the file has no
 * Hessian of a layer behind. */
void awq_norm(void *awq, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm);
double *awq_source(void *awq, const struct part *part, const struct residual *here, size_t i);
/* Whether the layer takes part; clips it, and prints the ratio r, and tr(E H Eᵀ)/tr(W H Wᵀ) of rounding the
 * weight to nearest as it was, scaled, and clipped, and the share of groups that are clipped. */
bool awq_wants(void *awq, const struct residual_layer *l);
void awq_finish(void *awq, const struct part *part, const struct residual_layer *l,
	const struct rewrite_factors *by, double (*w)[l->in]);
#endif
