/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_name.h -- how quantization_config names a layer */
#ifndef EXPORT_COMPRESSED_NAME_H
#define EXPORT_COMPRESSED_NAME_H
#include "model/config.h"

/*
 * Of a layer as checkpoints call it: that name. In a model that sees images, modules of transformers and of
 * vLLM have other names than their tensors: there it is a pattern, "re:...", that matches all of them.
 * free() it.
 */
char *compressed_name(const struct config *c, const char *name);
#endif
