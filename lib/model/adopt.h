/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * adopt.h -- the basis of another model (model/basis.h) for a checkpoint that somebody else quantized
 *
 * Its layers must see the inputs of that model: it has the same tensors, what both configurations say is the
 * same, the gains of norms differ by the rounding of 16-bit types at most, and ‖W - W'‖/‖W‖ of each other
 * weight is below one half.
 */
#ifndef MODEL_ADOPT_H
#define MODEL_ADOPT_H
#include "model/checkpoint.h"

/* The other model; dies unless it has a basis, and a tensor for each of the checkpoint's and no other. */
struct image *adopt_open(const char *path, const struct checkpoint *k);
/* Dies if the tensor of the entry, as the tree has it, is of other extents or too far from the model's;
 * prints how far it is. */
void adopt_tensor(const struct image *model, const struct entry *e, const struct tensor *t);
#endif
