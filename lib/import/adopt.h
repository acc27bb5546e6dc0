/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * adopt.h -- the basis (model/basis.h) of a model for a checkpoint of it that another program quantized
 *
 * Hessians of the model can then be used with the checkpoint. This requires layers with the same inputs: the
 * checkpoint has the same tensors and extents, values that both configurations have are equal, and the
 * relative difference ‖W - W'‖/‖W‖ is below 2⁻⁷ for the gains of norms and below ½ for every other weight.
 * Biases are not compared, since some methods correct them.
 *
 *	struct part *model = adopt_open(path, &checkpoint);
 *
 *	adopt_tensor(model, e, &t, report);	for each entry e
 *	part_close(model);
 *
 * Errors are fatal.
 */
#ifndef IMPORT_ADOPT_H
#define IMPORT_ADOPT_H
#include "base/report.h"
#include "import/checkpoint.h"

/* Opens the model at the path. It is a fatal error if the model has no basis, has other tensors than the
 * checkpoint, or a configuration that contradicts the checkpoint's. */
struct part *adopt_open(const char *path, const struct checkpoint *k);
/* Compares t, the tensor of the entry in the form of the tree, with the tensor of the model. It is a fatal
 * error if extents differ or the difference is too large. Differences of matrices are reported. */
void adopt_tensor(const struct part *model, const struct entry *e, const struct tensor *t,
	struct report *report);
#endif
