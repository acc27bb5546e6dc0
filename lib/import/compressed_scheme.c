/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_scheme.c -- see compressed_scheme.h */
#include "import/compressed_scheme.h"

const char *const compressed_formats[] = {
	[COMPRESSED_PACK] = "pack-quantized", [COMPRESSED_INT] = "int-quantized",
	[COMPRESSED_FLOAT] = "float-quantized", [COMPRESSED_MXFP4] = "mxfp4-pack-quantized",
	[COMPRESSED_NVFP4] = "nvfp4-pack-quantized",
};
