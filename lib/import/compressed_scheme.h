/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_scheme.h -- schemes of compressed-tensors
 *
 * A scheme is what a member of `config_groups` says of its layers: the format in which their weights are
 * stored, and how weights and inputs are rounded.
 *
 * Source: the package compressed-tensors 0.20, quantization/quant_args.py and quant_scheme.py.
 */
#ifndef IMPORT_COMPRESSED_SCHEME_H
#define IMPORT_COMPRESSED_SCHEME_H
#include <stdbool.h>
#include <stddef.h>
#include "num/scale_type.h"

/* How codes are stored. */
enum compressed_layout {
	COMPRESSED_WORDS,	/* fields of words of 32 bits, from the lowest on; a row is padded to words */
	COMPRESSED_BYTES,	/* one a byte; integers signed */
	COMPRESSED_PAIRS	/* two a byte, that of the even column low */
};

/* A value of `format`: which codes a weight has, how they and their scales are stored. */
struct compressed_format {
	const char *name;
	const char *codes;		/* the format of num/format.h; NULL: integers of 2 to 8 bits */
	int bits;			/* of a code; 0: the scheme says it */
	enum compressed_layout layout;
	const char *member, *dtype;	/* the tensor of codes; with words weight_shape has their extents */
	const char *inputs;		/* how they are rounded where they are; NULL: never */
	/* Formats with groups of their own; 0: scales are floats, of groups that the scheme says. */
	size_t group;
	enum scale_type scales;		/* codes of this type */
	bool divided;			/* weight_global_scale divides them */
	const char *scale_dtype, *scale_torch;	/* in the file, in config.json */
};

/* Ends with a row without a name. */
extern const struct compressed_format compressed_formats[];
/* By name; NULL: it is not known. */
const struct compressed_format *compressed_format(const char *name);

enum compressed_strategy {
	COMPRESSED_TENSOR,
	COMPRESSED_CHANNEL,
	COMPRESSED_GROUP,
	COMPRESSED_BLOCK		/* read, never written */
};
enum compressed_inputs { COMPRESSED_PLAIN, COMPRESSED_STATIC, COMPRESSED_TOKEN };

struct compressed_scheme {
	const struct compressed_format *format;
	int bits;			/* of a weight */
	bool asymmetric;		/* there are zero points */
	enum compressed_strategy strategy;
	size_t group;			/* columns under one scale; COMPRESSED_GROUP only */
	enum compressed_inputs inputs;	/* of the format that weights say */
};
#endif
