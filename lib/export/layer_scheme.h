/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer_scheme.h -- which scheme of compressed-tensors says what a layer is
 *
 *	struct compressed_scheme s = layer_scheme(e, w);
 *
 *	json_array_append_new(groups, layer_scheme_group(&s, targets));
 *
 * What no scheme says is refused, by the layer's name.
 */
#ifndef EXPORT_LAYER_SCHEME_H
#define EXPORT_LAYER_SCHEME_H
#include <jansson.h>
#include "export/target.h"
#include "import/compressed_scheme.h"

/* Dies where there is none. The layers passed export_check_codes(). */
struct compressed_scheme layer_scheme(const struct export *e, const struct export_weight *w);
/* A member of config_groups; takes the list of targets. */
json_t *layer_scheme_group(const struct compressed_scheme *s, json_t *targets);
#endif
