/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * import.h -- a model from a checkpoint (source.h), written in the parts of its architecture's layout
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H
#include "base/report.h"
#include "io/part.h"

/*
 * Writes every part of the model at the path into out.
 *
 * Weights that checkpoints of the architecture store transposed, or fused with others, become separate layers
 * [out, in]. Packed weights (source.h) become codes. A tied head is written as a copy of the embedding with
 * the attribute `tied_to`. A stored head that differs from the embedding is kept with a warning, as in
 * transformers. checkpoint.h lists the tensors that are left out.
 *
 * basis: the model that this checkpoint was quantized from, whose basis the result gets (import/adopt.h), or
 * NULL: a basis from the checkpoint itself. report: receives the relative difference of each weight from
 * that model.
 *
 * Weights that are NaN or infinite and missing tensors are fatal errors.
 */
void import_model(struct output *out, const char *path, const char *basis, struct report *report);
#endif
