/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_config.h -- the scheme of each layer in a quantization_config of compressed-tensors
 *
 *	struct compressed_config *c = compressed_config_open(file, q);
 *	const struct compressed_rule *r = compressed_config_rule(c, "model.layers.0.self_attn.q_proj");
 *
 *	compressed_config_close(c);
 *
 * A layer has the scheme of the member of config_groups whose targets match the layer. A target matches by
 * the exact name, by a pattern "re:..." that matches from the first letter on, or as "Linear", which matches
 * all layers with codes. An exact name is preferred to a pattern, a pattern to "Linear". Layers that the list
 * `ignore` matches in one of these ways have no scheme.
 *
 * Source: the package compressed-tensors 0.20, utils/match.py and quantization/quant_config.py.
 */
#ifndef IMPORT_COMPRESSED_CONFIG_H
#define IMPORT_COMPRESSED_CONFIG_H
#include <jansson.h>
#include "import/compressed_scheme.h"
#include "quant/linear.h"

struct compressed_rule {
	struct compressed_scheme scheme;
	size_t block[2];		/* rows and columns under one scale; COMPRESSED_BLOCK only */
	bool indexed;			/* weight_g_idx stores the group of each column */
	bool inputs_float;		/* inputs are FP8, not int8 */
	bool inputs_ignored;		/* the rounding of inputs is not supported and left out */
	const char *name;		/* of the group, for messages */
};
struct compressed_config;

/* A setting that is not supported is a fatal error. q: valid as long as the result. */
struct compressed_config *compressed_config_open(const char *file, const json_t *q);
void compressed_config_close(struct compressed_config *c);
/* NULL: the layer is ignored, or no group matches it. */
const struct compressed_rule *compressed_config_rule(const struct compressed_config *c, const char *name);
/*
 * Whether rows of n codes, stored in `words` words, have codes across the borders of words, as from version
 * 0.17 on. Without a version the number of words decides. If it fits both layouts, codes are not across
 * words, since old files lack the version.
 */
bool compressed_config_dense(const struct compressed_config *c, size_t n, int bits, size_t words);
#endif
