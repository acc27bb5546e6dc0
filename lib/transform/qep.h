/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * qep.h -- corrects the weights of a model for the quantization error of their inputs (QEP)
 *
 *	W ← W + α W C (H + λ I)⁻¹,	C = Σ (z - x) xᵀ
 * (Arai and Ichikawa, arXiv 2504.09629; solver/correct.h). The Hessians and cross moments are those of
 * hessian-accum --pair. Down projections, the default of --skip, are left as they are.
 *
 * Calling sequence: qep_check(); qep_part() for each part; qep_end().
 */
#ifndef TRANSFORM_QEP_H
#define TRANSFORM_QEP_H
#include <stdbool.h>
#include <stddef.h>
#include "base/selection.h"
#include "model/filter.h"
#include "model/layer_ref.h"
#include "num/half.h"

struct qep {
	const struct selection *layers;
	const struct selection *skip;	/* no pattern: down projections */
	const struct part *hessian;
	double share, damp;		/* α, λ over the mean diagonal */
	enum half_type dtype;		/* of corrected weights */
	size_t done;			/* layers so far */
	size_t skipped;			/* selected layers that were left out */
};

/* Whether a layer is left as it is. skip without a pattern: down projections. */
bool qep_skips(const struct selection *skip, const struct layer_ref *layer);

/* Fatal error if the layer was corrected before: attribute `corrected` of its group. */
void qep_check_layer(const struct part *part, const char *path);
/* Fatal error if no layer is selected, or if a selected one was corrected before or has no Hessian or cross
 * moments; as far as the first part, which must have been read, determines the layers. */
void qep_check(struct qep *q, const struct filter *f);
/* part() of a filter: corrects and reports the selected layers, and copies the rest. Fatal errors: a
 * quantized layer, one with split columns or a branch, numbers that are not finite. */
void qep_part(void *qep, const struct filter *f);
/* Fatal error if no layer was corrected; warns if `skip` matched none. */
void qep_end(const struct qep *q, const char *name);
#endif
