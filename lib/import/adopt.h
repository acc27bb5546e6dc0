/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * adopt.h -- a checkpoint that another program quantized takes the basis (model/basis.h) of its model
 *
 * So Hessians of that model can be used with it. Its layers must see the same inputs: it has the same tensors
 * and extents, values that both configurations have are equal, and the relative difference ‖W - W'‖/‖W‖ is
 * below 2⁻⁷ for the gains of norms and below one half for every other weight. Biases are not compared: some
 * methods correct them.
 */
#ifndef IMPORT_ADOPT_H
#define IMPORT_ADOPT_H
#include "base/report.h"
#include "import/checkpoint.h"

/* Opens the model at the path; dies unless it has a basis, the checkpoint's tensors and no others, and fits
 * its configuration. */
struct part *adopt_open(const char *path, const struct checkpoint *k);
/* Compares t, the tensor of the entry as the tree has it, with the model's. Dies if extents differ, or it is
 * too far from it; reports the relative difference of matrices. */
void adopt_tensor(const struct part *model, const struct entry *e, const struct tensor *t,
	struct report *report);
#endif
