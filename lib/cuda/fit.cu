/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fit.cu -- scale and zero of a group of columns, as solver/search.c finds them; see device/device.h
 *
 * All factors of the range are tried in float, by a thread for each row and factor. Those whose loss is near
 * the smallest are then compared in double, so that the choice does not depend on the approximation.
 */
#include <float.h>
#include <math.h>
#include "cuda/gpu.h"
#include "cuda/library.h"
#include "cuda/module.h"
#include "cuda/weight_code.h"

enum { WIDE = BLOCK_THREADS, AT_ONCE = 16 };

struct fit_of {
	struct device_solve s;
	const float *d;			/* compensation of position `origin`, or NULL */
	size_t origin, group, from, n;
};

/* 2^⌊log₂ x⌋ for a normal x > 0 */
DEVICE_FUNCTION double power_below(double x)
{
	uint64_t u;

	memcpy(&u, &x, sizeof u);
	u &= (uint64_t)0x7ff << 52;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* The scale of a range, which includes 0; as format_fit(). */
DEVICE_FUNCTION float scale_of(const struct device_storage *f, double low, double high)
{
	const double max = f->max, range = f->asymmetric ? high - low : -low > high ? -low : high;
	double y, place, magic;

	if (!f->rounds) {
		y = range / max;
		y = y > f->least ? y : f->least;
		return range > 0 ? (float)(y < f->most ? y : f->most) : 1;
	}
	y = f->power ? power_below(range) / power_below(max) : rounded_product(range / max, f->divisor);
	y = range > 0 ? y : 1;
	place = power_below(y) * f->step;
	magic = (place > f->least ? place : f->least) * 6755399441055744.0;
	y = y + magic - magic;
	return (float)(y < f->least ? f->least : y > f->most ? f->most : y) / f->divisor;
}

/* The scale of the range of row l times factor i. */
DEVICE_FUNCTION float scale_shrunk(const struct device_solve *s, size_t l, size_t i)
{
	return scale_of(&s->storage, rounded_product(s->low[l], s->factor[i]),
		rounded_product(s->high[l], s->factor[i]));
}

DEVICE_FUNCTION uint8_t zero_of(const struct device_storage *f, double low, double high)
{
	const double max = f->max, range = high - low;

	return (uint8_t)(int)(range > 0 ? integer_near(rounded_product(-low, max) / range) : 0);
}

/* The weights of the group and their range, whose scale and zero are the result without a search. */
KERNEL(take_group, struct fit_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD, m = a.s.m;
	double low = 0, high = 0;

	if (l >= m)
		return;
	for (size_t i = 0; i < a.n; i += READ_AHEAD) {
		double x[READ_AHEAD];

		for (size_t k = 0; k < READ_AHEAD; k++) {
			const size_t p = (size_t)a.s.member[a.from + (i + k < a.n ? i + k : i)];

			x[k] = weight_first(&a.s, weight_at(&a.s, p, l,
				a.d ? a.d + (p - a.origin) * m : NULL));
		}
		for (size_t k = 0; k < READ_AHEAD && i + k < a.n; k++) {
			a.s.x[(i + k) * m + l] = (float)x[k];
			low = x[k] < low ? x[k] : low;
			high = x[k] > high ? x[k] : high;
		}
	}
	a.s.low[l] = low;
	a.s.high[l] = high;
	a.s.scale[a.group * m + l] = scale_of(&a.s.storage, low, high);
	a.s.zero[a.group * m + l] = a.s.storage.asymmetric ? zero_of(&a.s.storage, low, high) : 0;
}

/* d^2.4 for d ≥ 0; see solver/search.c */
DEVICE_FUNCTION float power(float d)
{
	float m, e, i, f, p, q;
	uint32_t u = bits_of(d > 1e-18f ? d : 1e-18f);

	e = 0.4f * (float)((int32_t)(u >> 23) - 127);
	m = of_bits((u & 0x7fffff) | 0x3f800000) - 1.5f;
	p = -0.00270909113f;
	p = p * m + 0.00525095316f;
	p = p * m - 0.00962058146f;
	p = p * m + 0.0222231211f;
	p = p * m - 0.0627255908f;
	p = p * m + 0.31362356f;
	p = p * m + 1.17607902f;
	i = rintf(e);
	f = e - i;
	q = 0.00964898061f;
	q = q * f + 0.0557712929f;
	q = q * f + 0.240225519f;
	q = q * f + 0.693138628f;
	q = q * f + 1;
	return d * d * (p * q) * of_bits((uint32_t)((int32_t)i + 127) << 23);
}

/* The decoded value nearest to x, whose quotient is approximate. A subnormal scale may have no reciprocal. */
DEVICE_FUNCTION float nearest(const struct device_storage *f, float x, float scale, float inverse, float low,
	float high)
{
	float q = inverse <= FLT_MAX ? x * inverse : (float)((double)x / scale);

	if (f->values)
		return f->values->value[value_near(f->values, (double)q)] * scale;
	q = q > low ? q : low;
	q = q < high ? q : high;
	return rintf(q) * scale;
}

KERNEL(take_loss, struct fit_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD, m = a.s.m;
	const struct device_storage *f = &a.s.storage;
	float scale, inverse, unit, low, high;
	double loss = 0;

	if (l >= m)
		return;
	scale = scale_shrunk(&a.s, l, BLOCK_Y);
	inverse = 1 / scale;
	unit = fminf(16 / f->max / a.s.scale[a.group * m + l], FLT_MAX);
	low = f->asymmetric ? -(float)a.s.zero[a.group * m + l] : -f->max;
	high = f->max + (f->asymmetric ? low : 0);
	for (size_t i = 0; i < a.n; i += AT_ONCE) {
		float sum = 0;

		for (size_t k = i; k < i + AT_ONCE && k < a.n; k++) {
			const float x = a.s.x[k * m + l];

			sum += power(fabsf(nearest(f, x, scale, inverse, low, high) - x) * unit);
		}
		loss += sum;
	}
	a.s.loss[BLOCK_Y * m + l] = loss;
}

/* Marks of a loss: not the smallest; to be computed in double. */
#define NOT_BEST INFINITY
#define OPEN (-1)

/* Of factors with the same scale only the first is compared. */
KERNEL(mark_candidates, struct fit_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD, m = a.s.m;
	double *loss = a.s.loss + l, least = INFINITY, limit;
	float scale = 0;
	size_t best = 0, found = 0;

	if (l >= m)
		return;
	for (size_t i = 0; i < a.s.steps; i++)
		if (loss[i * m] < least) {
			least = loss[i * m];
			best = i;
		}
	limit = least * (1 + a.s.near);
	for (size_t i = 0; i < a.s.steps; i++) {
		const bool in = loss[i * m] <= limit;
		const float last = scale;

		loss[i * m] = NOT_BEST;
		if (!in)
			continue;
		scale = scale_shrunk(&a.s, l, i);
		if (!found || scale != last) {
			loss[i * m] = OPEN;
			found++;
		}
	}
	if (found >= 2 && least != 0)
		return;
	for (size_t i = 0; i < a.s.steps; i++)
		loss[i * m] = i == best ? 0 : NOT_BEST;
}

KERNEL(compare_exactly, struct fit_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD, m = a.s.m;
	const struct device_storage *f = &a.s.storage;
	double loss = 0;
	float scale;

	if (l >= m || a.s.loss[BLOCK_Y * m + l] != OPEN)
		return;
	scale = scale_shrunk(&a.s, l, BLOCK_Y);
	for (size_t i = 0; i < a.n; i++) {
		const double x = a.s.x[i * m + l];
		float value;

		code_of(f, x, scale, a.s.zero[a.group * m + l], &value);
		loss += pow(fabs(rounded_product(value, scale) - x), 2.4);
	}
	a.s.loss[BLOCK_Y * m + l] = loss;
}

KERNEL(take_best, struct fit_of)
{
	const size_t l = (size_t)BLOCK * THREADS + THREAD, m = a.s.m;
	double least = INFINITY;
	size_t best = 0;

	if (l >= m)
		return;
	for (size_t i = 0; i < a.s.steps; i++)
		if (a.s.loss[i * m + l] < least) {
			least = a.s.loss[i * m + l];
			best = i;
		}
	a.s.scale[a.group * m + l] = scale_shrunk(&a.s, l, best);
}

void gpu_fit(const struct device_solve *s, const struct device_span *span, size_t group, size_t from,
	size_t n)
{
	const struct fit_of a = { *s, span ? s->d : NULL, span ? span->first : 0, group, from, n };
	const size_t blocks = blocks_of(s->m, WIDE);

	LAUNCH(take_group, blocks, 1, WIDE, a);
	if (s->steps < 2 || !n)
		return;
	LAUNCH(take_loss, blocks, s->steps, WIDE, a);
	LAUNCH(mark_candidates, blocks, 1, WIDE, a);
	LAUNCH(compare_exactly, blocks, s->steps, WIDE, a);
	LAUNCH(take_best, blocks, 1, WIDE, a);
}
