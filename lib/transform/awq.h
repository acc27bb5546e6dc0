/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * awq.h -- AWQ: scales and clips the weights of a model for rounding to nearest (transform/awq_search.h)
 *
 * Outputs of norms are scaled by their gains and shifts. Inputs of a layer that come from another layer
 * (model/residual.h: source) are scaled by the rows and the bias of that layer. Then weights are clipped,
 * except for weights that compute queries and keys. Only layers with a Hessian in the file are changed, and
 * no routers, which solvers do not quantize either.
 *
 * The functions are callbacks of struct rewrite, with a struct awq as arg.
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
	const struct part *hessian;	/* with mean_abs of the layers' inputs */
	struct awq_format format;
	bool clip;
	struct report *report;
	size_t done;			/* layers so far */
	size_t notes;			/* layers of the part that are scaled, but not yet reported */
	struct awq_note { char *path; double ratio, nearest, scaled; } *note;
};

/* Factors of a norm, and between a layer and its source. None if the layers have no Hessian in the file. */
void awq_norm(void *awq, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm);
double *awq_source(void *awq, const struct part *part, const struct residual *here, size_t i);
/* awq_clips(): whether the layer is clipped. awq_finish(): clips it, and reports the ratio r; tr(E H Eᵀ)/tr(W
 * H Wᵀ) of rounding the original, the scaled and the clipped weight to nearest; and the share of clipped
 * groups. */
bool awq_clips(void *awq, const struct residual_layer *l);
void awq_finish(void *awq, const struct part *part, const struct residual_layer *l,
	const struct rewrite_factors *by, double (*w)[l->in]);
#endif
