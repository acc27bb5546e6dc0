/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_name.h -- names of layers in quantization_config */
#ifndef EXPORT_COMPRESSED_NAME_H
#define EXPORT_COMPRESSED_NAME_H
#include "model/config.h"

/*
 * name: the layer's name in checkpoints. The result is the same name. In a vision-language model, modules of
 * transformers and of vLLM have other names than their tensors. The result is then a pattern, "re:...", that
 * matches all of these names. free() it.
 */
char *compressed_name(const struct config *c, const char *name);
#endif
