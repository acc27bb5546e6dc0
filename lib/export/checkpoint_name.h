/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint_name.h -- names of tensors in checkpoints, from paths of the tree */
#ifndef EXPORT_CHECKPOINT_NAME_H
#define EXPORT_CHECKPOINT_NAME_H
#include "model/config.h"

/* "model.norm.weight" for "/model/norm/weight". In a vision-language model the name is one that all versions
 * of its class read, "language_model.model.norm.weight". free() it. */
char *checkpoint_name(const struct config *c, const char *path);
#endif
