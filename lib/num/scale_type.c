/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scale_type.c -- see scale_type.h */
#include "num/scale_type.h"
#include <float.h>
#include <math.h>
#include <stddef.h>

#define SINGLE	[SCALE_F32] = "f32", [SCALE_BF16] = "bf16", [SCALE_F16] = "f16", [SCALE_E8M0] = "e8m0", \
	[SCALE_E4M3FN] = "e4m3fn"

const char *const scale_types[] = { SINGLE, [SCALE_U8] = "u8", NULL };
const char *const scale_types_single[] = { SINGLE, NULL };

const struct scale_kind scale_kinds[] = {
	[SCALE_F32] = { 32, 0x1p-149, 0x1p-23, FLT_MAX },
	[SCALE_BF16] = { 16, 0x1p-133, 0x1p-7, 0x1.fep127 },
	[SCALE_F16] = { 16, 0x1p-24, 0x1p-10, 65504 },
	[SCALE_E8M0] = { 8, 0x1p-127, 1, 0x1p127, .power = true },
	[SCALE_E4M3FN] = { 8, 0x1p-9, 0x1p-3, 448, .divided = true },
	[SCALE_U8] = { 8, 1, 0x1p-7, 255, .units = true },
};

struct scale_kind scale_kind_of(enum scale_type type, int bits)
{
	struct scale_kind t = scale_kinds[type];
	const double step = ldexp(1, 1 - bits);

	if (bits && step > t.step) {
		t.step = step;
		t.max = (2 - step) * scale_power(t.max);
	}
	return t;
}
