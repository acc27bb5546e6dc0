/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_scheme.c -- see compressed_scheme.h */
#include "import/compressed_scheme.h"
#include <string.h>

const struct compressed_format compressed_formats[] = {
	{ .name = "pack-quantized", .layout = COMPRESSED_WORDS, .member = "weight_packed", .dtype = "I32",
	  .inputs = "e4m3fn" },
	{ .name = "int-quantized", .layout = COMPRESSED_BYTES, .member = "weight", .dtype = "I8",
	  .inputs = "int8" },
	{ .name = "float-quantized", .codes = "e4m3fn", .bits = 8, .layout = COMPRESSED_BYTES,
	  .member = "weight", .dtype = "F8_E4M3", .inputs = "e4m3fn" },
	{ .name = "mxfp4-pack-quantized", .codes = "mxfp4", .bits = 4, .layout = COMPRESSED_PAIRS,
	  .member = "weight_packed", .dtype = "U8",
	  .group = 32, .scales = SCALE_E8M0, .scale_dtype = "U8", .scale_torch = "torch.uint8" },
	{ .name = "nvfp4-pack-quantized", .codes = "nvfp4", .bits = 4, .layout = COMPRESSED_PAIRS,
	  .member = "weight_packed", .dtype = "U8", .group = 16, .scales = SCALE_E4M3FN,
	  .divided = true, .scale_dtype = "F8_E4M3", .scale_torch = "torch.float8_e4m3fn" },
	{ .name = NULL },
};

const struct compressed_format *compressed_format(const char *name)
{
	for (const struct compressed_format *f = compressed_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}
