/* SPDX-License-Identifier: GPL-3.0-or-later */
/* export_config.h -- the config.json of what is exported: the model's, with what has become otherwise */
#ifndef EXPORT_EXPORT_CONFIG_H
#define EXPORT_EXPORT_CONFIG_H
#include <jansson.h>
#include "export/target.h"

/*
 * The text: /config with the class's name, the dtype of plain weights, whether the head is tied, the depth of
 * an encoder and the layer of its features (what nothing reads is not in the tree), and `quantization` as
 * quantization_config, which it frees; NULL: none. free() it.
 */
char *export_config(const struct export *e, json_t *quantization);
#endif
