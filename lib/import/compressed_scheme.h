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

enum compressed_format {
	COMPRESSED_PACK, COMPRESSED_INT, COMPRESSED_FLOAT, COMPRESSED_MXFP4, COMPRESSED_NVFP4
};
enum compressed_strategy {
	COMPRESSED_TENSOR, COMPRESSED_CHANNEL, COMPRESSED_GROUP,
	COMPRESSED_BLOCK	/* read, never written */
};
enum compressed_inputs { COMPRESSED_PLAIN, COMPRESSED_STATIC, COMPRESSED_TOKEN };

struct compressed_scheme {
	enum compressed_format format;
	int bits;			/* of a weight */
	bool asymmetric;		/* there are zero points */
	enum compressed_strategy strategy;
	size_t group;			/* columns under one scale; COMPRESSED_GROUP only */
	enum compressed_inputs inputs;	/* of 8 bits: int8 in COMPRESSED_INT, else e4m3fn */
};

extern const char *const compressed_formats[];	/* by number */
#endif
