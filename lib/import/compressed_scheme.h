/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_scheme.h -- schemes of compressed-tensors
 *
 * A scheme is the setting of a member of `config_groups`: the format in which weights of its layers are
 * stored, and the rounding of weights and inputs.
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
	COMPRESSED_WORDS,	/* fields of 32-bit words, lowest bits first; a row is padded to words */
	COMPRESSED_BYTES,	/* one per byte; integers are signed */
	COMPRESSED_PAIRS	/* two per byte, the code of the even column in the low bits */
};

/* A value of `format`: the codes of a weight, and the storage of codes and scales. */
struct compressed_format {
	const char *name;
	const char *codes;		/* the format of num/format.h; NULL: integers of 2 to 8 bits */
	int bits;			/* of a code; 0: the scheme specifies it */
	enum compressed_layout layout;
	const char *member, *dtype;	/* the tensor of codes; with words, weight_shape has the extents */
	const char *inputs;		/* the format of inputs, if they are rounded; NULL: never rounded */
	/* For formats with a fixed group size; 0: scales are floats, and the scheme specifies groups. */
	size_t group;
	enum scale_type scales;		/* scales are codes of this type */
	bool divided;			/* weight_global_scale divides the scales */
	const char *scale_dtype, *scale_torch;	/* the type of scales in the file, in config.json */
};

/* Ends with a row without a name. */
extern const struct compressed_format compressed_formats[];
/* By name; NULL: no such format. */
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
	bool asymmetric;		/* with zero points */
	enum compressed_strategy strategy;
	size_t group;			/* columns under one scale; COMPRESSED_GROUP only */
	enum compressed_inputs inputs;	/* their format is format->inputs */
};
#endif
