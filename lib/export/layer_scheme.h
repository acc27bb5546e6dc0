/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * layer_scheme.h -- the scheme of compressed-tensors for a layer
 *
 *	struct compressed_scheme s = layer_scheme(e, w);
 *
 *	json_array_append_new(groups, layer_scheme_group(&s, targets));
 *
 * A layer that no scheme can express is a fatal error, which names the layer.
 */
#ifndef EXPORT_LAYER_SCHEME_H
#define EXPORT_LAYER_SCHEME_H
#include <jansson.h>
#include "export/target.h"
#include "import/compressed_scheme.h"

/* The scheme. The layers of w must have passed export_check_codes(). */
struct compressed_scheme layer_scheme(const struct export *e, const struct export_weight *w);
/* Whether a scheme has weights that are rounded to this compute format. */
bool layer_scheme_has(const struct format *compute);
/* A member of config_groups, which then owns the list of targets. */
json_t *layer_scheme_group(const struct compressed_scheme *s, json_t *targets);
#endif
