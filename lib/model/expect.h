/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * expect.h -- whether a checkpoint has the tensors that its config and architecture say
 */
#ifndef MODEL_EXPECT_H
#define MODEL_EXPECT_H
#include "model/checkpoint.h"

/*
 * Dies where a tensor is missing or has another shape than the config says. Biases that the class has no
 * parameter for are left out with a warning: readers of a tree would use them. Other tensors that it
 * does not know stay, with a warning, if they can be read.
 */
void expect_model(struct checkpoint *k);
#endif
