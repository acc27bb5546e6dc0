/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_name.h -- how quantization_config names a layer */
#ifndef EXPORT_COMPRESSED_NAME_H
#define EXPORT_COMPRESSED_NAME_H
#include "model/config.h"

/*
 * Of a layer as checkpoints call it: that name; of a model that sees images, where modules of transformers
 * and of vLLM stand under other names than their tensors, a pattern, "re:...", that fits all of them. free()
 * it.
 */
char *compressed_name(const struct config *c, const char *name);
#endif
