/* SPDX-License-Identifier: GPL-3.0-or-later */
/* export_config.h -- the config.json of an exported model */
#ifndef EXPORT_EXPORT_CONFIG_H
#define EXPORT_EXPORT_CONFIG_H
#include <jansson.h>
#include "export/target.h"

/*
 * The text; free() it. It is /config with these changes: the name of the class, the dtype of plain weights,
 * whether the head is tied, the depth of an encoder and the layer of its features (later layers are not in
 * the tree), and quantization_config. quantization: the quantization_config, which is freed; NULL: none.
 */
char *export_config(const struct export *e, json_t *quantization);
#endif
