/* SPDX-License-Identifier: GPL-3.0-or-later */
/* json_text.h -- a configuration as text: indented, keys in their order, numbers without loss */
#ifndef IMPORT_JSON_TEXT_H
#define IMPORT_JSON_TEXT_H
#include <jansson.h>

/* free() it. */
char *json_text(json_t *o);
#endif
