/* SPDX-License-Identifier: GPL-3.0-or-later */
/* weight_code.h -- kernels: rounding to formats (num/format_codec.c), codes of weights (solver/coding.h) */
#ifndef CUDA_WEIGHT_CODE_H
#define CUDA_WEIGHT_CODE_H
#include <string.h>
#include "cuda/gpu.h"
#include "device/device.h"

/* Numbers that are read before the first of them is used, so that the latencies of memory overlap. */
enum { READ_AHEAD = 8 };

/* The number of the value that is nearest to x. */
DEVICE_FUNCTION int value_near(const struct device_format *f, double x)
{
	int low = 0, high = f->n - 1;

	while (low < high) {
		const int middle = (low + high + 1) / 2;

		if (x >= f->edge[middle - 1])
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Nearest integer of |x| < 2⁵¹: ties to even. */
DEVICE_FUNCTION double integer_near(double x)
{
	return x + 6755399441055744.0 - 6755399441055744.0;
}

DEVICE_FUNCTION double integer_of(double x, bool away)
{
	const double even = integer_near(x), rest = x - even;

	if (away && rest == 0.5 && x > 0)
		return even + 1;
	return away && rest == -0.5 && x < 0 ? even - 1 : even;
}

/* x >= 0 rounded to a float of the format, without its largest value; as in num/format_codec.c. */
DEVICE_FUNCTION double float_near(const struct device_format *f, double x)
{
	const double normal = (double)of_bits((uint32_t)(128 - f->bias) << 23);
	uint64_t u;
	double e, half, magic, y;

	memcpy(&u, &x, sizeof u);
	u &= (uint64_t)0x7ff << 52;
	memcpy(&e, &u, sizeof e);
	half = (e > normal ? e : normal) * (double)of_bits((uint32_t)(126 - f->mantissa) << 23);
	magic = half * 13510798882111488.0;	/* 1.5 * 2^53 */
	y = x + magic - magic;
	return f->away && x - y == half ? y + 2 * half : y;
}

/* That value; for integers and floats without a search. */
DEVICE_FUNCTION float value_nearest(const struct device_format *f, double x)
{
	const double low = f->value[0], high = f->value[f->n - 1];

	if (f->integers)
		return (float)integer_of(x < low ? low : x > high ? high : x, f->away);
	if (f->floats) {
		const double a = fabs(x);
		const float y = (float)float_near(f, a > high ? high : a);

		return x < 0 ? -y : y;
	}
	return f->value[value_near(f, x)];
}

/* x rounded to a format; magnitudes are at most `limit`. NaN stays NaN. */
DEVICE_FUNCTION float value_of(const struct device_format *f, float x, float limit)
{
	const float v = x != x ? x : f->value[value_near(f, (double)x)];

	return v > limit ? limit : v < -limit ? -limit : v;
}

/* The code of x with a scale and a zero. *value: the number of the code, less the zero. */
DEVICE_FUNCTION uint8_t code_of(const struct device_storage *f, double x, float scale, uint8_t zero,
	float *value)
{
	double q = x / scale;

	if (f->values) {
		const int i = value_near(f->values, q);

		*value = f->values->value[i];
		return *value == 0 && signbit(q) ? f->minus : f->values->code[i];
	} else {
		const double max = f->max, z = f->asymmetric ? zero : max;
		const double last = (f->asymmetric ? max : 2 * max) - z;

		q = q > -z ? q : -z;
		q = integer_of(q < last ? q : last, f->away);
		*value = (float)q;
		return (uint8_t)(int)(q + z);
	}
}

/* The weight at position p of row l, in FP8 units; d: its compensation, or NULL. */
DEVICE_FUNCTION double weight_at(const struct device_solve *s, size_t p, size_t l, const float *d)
{
	const float w = s->w[(size_t)s->column[p] * s->m + l];
	const double x = s->scale8 ? w / (double)s->scale8[l] : w;

	return d ? x + (double)d[l] : x;
}

/* The weight that is coded. */
DEVICE_FUNCTION double weight_first(const struct device_solve *s, double x)
{
	return s->round_first ? value_of(s->compute, (float)x, s->compute->max) : x;
}
#endif
