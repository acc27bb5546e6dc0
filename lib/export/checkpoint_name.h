/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint_name.h -- names of tensors in a tree as checkpoints of its class have them */
#ifndef EXPORT_CHECKPOINT_NAME_H
#define EXPORT_CHECKPOINT_NAME_H
#include "model/config.h"

/* "model.norm.weight" of "/model/norm/weight"; of a model that sees images as all versions of its class read
 * it, "language_model.model.norm.weight". free() it. */
char *checkpoint_name(const struct config *c, const char *path);
#endif
