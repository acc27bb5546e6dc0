/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * import.h -- a model from the files of others (source.h), in the parts of its architecture's layout
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H
#include "base/report.h"
#include "io/part.h"

/*
 * Writes every part of the model at the path into out. Weights that the architecture's
 * checkpoints keep transposed, or fused with others, become layers [out, in] of their
 * own; a tied head is written as a copy of the embedding with the attribute `tied_to` (a
 * stored head that differs from the embedding stays, with a warning, as in transformers).
 * What stays out, and what is missing: checkpoint.h. Packed weights (source.h) become codes. Dies where
 * weights are NaN or infinite. basis: the model that this was quantized from and whose basis it takes
 * (import/adopt.h), or NULL: a basis of its own; report: gets how far each weight is from that model's.
 */
void import_model(struct output *out, const char *path, const char *basis, struct report *report);
#endif
