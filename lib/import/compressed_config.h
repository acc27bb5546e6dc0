/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_config.h -- what the quantization_config of compressed-tensors says of each layer
 *
 * A layer has the scheme of the member of config_groups whose targets name it: exactly, or by a pattern
 * "re:..." from its first letter on, or as "Linear", which all layers with codes are; the first of these that
 * there is. Layers that the list `ignore` names in one of these ways have none.
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
	bool indexed;			/* weight_g_idx has the group of each column */
	bool inputs_float;		/* inputs are FP8, not int8 */
	bool inputs_left;		/* inputs are rounded in a way that has no form here */
	const char *name;		/* of the group, for messages */
};
struct compressed_config;

/* Dies where it says what no layer here can have. q: valid as long as the result. */
struct compressed_config *compressed_config_open(const char *file, const json_t *q);
void compressed_config_close(struct compressed_config *c);
/* NULL: it is ignored, or no group has it. */
const struct compressed_rule *compressed_config_rule(const struct compressed_config *c, const char *name);
/*
 * Whether rows of n codes in so many words are dense across words, as from version 0.17 on. Without a
 * version the number of words decides; where it is that of both layouts they are not dense, since old files
 * lack the version.
 */
bool compressed_config_dense(const struct compressed_config *c, size_t n, int bits, size_t words);
#endif
