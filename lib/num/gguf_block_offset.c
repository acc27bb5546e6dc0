/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_block_offset.c -- blocks of q4_k and q5_k: eight groups with scale and offset; see gguf_block.h */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "num/gguf_block_private.h"

enum { GROUPS = 8, PAIR_BYTES = 12, TOP_SCALE = 63, STEPS = 4, PASSES = 5 };

/* Scale and offset of a group, 6 bits each, in 12 bytes for all groups. The upper two bits of groups 4 to 7
 * are in the bytes of groups 0 to 3. */
static void get_pair(const uint8_t x[], size_t g, int *s, int *b)
{
	if (g < GROUPS / 2) {
		*s = x[g] & 63;
		*b = x[g + 4] & 63;
	} else {
		*s = (x[g + 4] & 15) | x[g - 4] >> 6 << 4;
		*b = x[g + 4] >> 4 | x[g] >> 6 << 4;
	}
}

static void put_pairs(uint8_t y[], const int s[GROUPS], const int b[GROUPS])
{
	for (size_t g = 0; g < GROUPS / 2; g++) {
		y[g] = (uint8_t)(s[g] | s[g + 4] >> 4 << 6);
		y[g + 4] = (uint8_t)(b[g] | b[g + 4] >> 4 << 6);
		y[g + 8] = (uint8_t)((s[g + 4] & 15) | (b[g + 4] & 15) << 4);
	}
}

/*
 * Group g of a block of d, m, scales and offsets, the fifth bits (bit g of byte j belongs to number j of
 * group g), and nibbles. A span of 32 bytes has two groups, the first one in the low bits.
 */
static inline void decode_group(float y[GROUP], const uint8_t x[], size_t g, bool fifth)
{
	const uint8_t *high = x + 16, *low = high + (fifth ? GROUP : 0) + g / 2 * GROUP;
	float scale, offset;
	int s, b;

	get_pair(x + 4, g, &s, &b);
	scale = half_f16_at(x) * (float)s;
	offset = half_f16_at(x + 2) * (float)b;
	for (size_t j = 0; j < GROUP; j++) {
		int q = low[j] >> g % 2 * 4 & 15;

		if (fifth)
			q |= (high[j] >> g & 1) << 4;
		y[j] = scale * (float)q - offset;
	}
}

void q4_k_part(float y[GROUP], const uint8_t x[], size_t g)
{
	decode_group(y, x, g, false);
}

void q5_k_part(float y[GROUP], const uint8_t x[], size_t g)
{
	decode_group(y, x, g, true);
}

/* Trials of a scale and a minimum: inverse scales (first + step i + top)/(max - min) for i = 0 ... last. */
struct trials { float first, step; int last; };
static const struct trials with_importance = { -0.9f, 0.05f, 36 };
static const struct trials without[2] = { { -1, 0.1f, 20 }, { -0.5f, 0.1f, 15 } };

/* The best fit of x by scale · code + minimum, with the codes of inverse · (x - from). */
struct fit {
	float max[LANES], weight[LANES], x[LANES];	/* of x; sums of w and w x */
	float scale[LANES], minimum[LANES], error[LANES], inverse[LANES], from[LANES];
};

static inline __attribute__((always_inline)) void begin_fit(struct fit *f, const struct lanes *v, float top)
{
	for (size_t l = 0; l < LANES; l++) {
		float low = v->x[0][l], high = low, weight = v->weight[0][l], x = weight * low;

		for (size_t i = 1; i < GROUP; i++) {
			const float w = v->weight[i][l], u = v->x[i][l];

			low = u < low ? u : low;
			high = u > high ? u : high;
			weight += w;
			x += w * u;
		}
		low = low > 0 ? 0 : low;
		f->minimum[l] = f->from[l] = low;
		f->max[l] = high;
		f->weight[l] = weight;
		f->x[l] = x;
		f->inverse[l] = high > low ? top / (high - low) : 0;
		f->scale[l] = high > low ? 1 / f->inverse[l] : 0;
	}
}

/* The weighted squared error of codes under scale and minimum. */
static inline __attribute__((always_inline)) void errors(const struct lanes *v, const float scale[LANES],
	const float minimum[LANES], float error[LANES])
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		error[l] = 0;
	for (size_t i = 0; i < GROUP; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const float e = scale[l] * v->code[i][l] + minimum[l] - v->x[i][l];

			error[l] += v->weight[i][l] * (e * e);
		}
}

static inline __attribute__((always_inline)) void round_all(struct lanes *v, const float inverse[LANES],
	const float low[LANES], float top)
{
	for (size_t i = 0; i < GROUP; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = clamp(nearest(inverse[l] * (v->x[i][l] - low[l])), 0, top);
}

static inline __attribute__((always_inline)) void try_inverse(struct fit *f, struct lanes *v, float top,
	const float inverse[LANES])
{
	float q[LANES] = { 0 }, qq[LANES] = { 0 }, qx[LANES] = { 0 };
	float det[LANES], scale[LANES], minimum[LANES], error[LANES];

	round_all(v, inverse, f->minimum, top);
	for (size_t i = 0; i < GROUP; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const float code = v->code[i][l], w = v->weight[i][l] * code;

			q[l] += w;
			qq[l] += w * code;
			qx[l] += w * v->x[i][l];
		}
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		const float d = f->weight[l] * qq[l] - q[l] * q[l];
		const float s = (f->weight[l] * qx[l] - f->x[l] * q[l]) / d;
		const float m = (qq[l] * f->x[l] - q[l] * qx[l]) / d;

		det[l] = d;
		scale[l] = m > 0 ? qx[l] / qq[l] : s;
		minimum[l] = m > 0 ? 0 : m;
	}
	errors(v, scale, minimum, error);
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		const bool better = det[l] > 0 && error[l] < f->error[l];

		f->error[l] = better ? error[l] : f->error[l];
		f->scale[l] = better ? scale[l] : f->scale[l];
		f->from[l] = better ? f->minimum[l] : f->from[l];
		f->minimum[l] = better ? minimum[l] : f->minimum[l];
		f->inverse[l] = better ? inverse[l] : f->inverse[l];
	}
}

/* Scale and minimum (0 or below) of groups of 32, and codes from 0 to top. A trial counts from the best
 * minimum so far. Groups of equal weights have scale 0. */
CLONES(static, void, fit_groups, (struct lanes *v, float top, const struct trials *t, float scale[LANES],
	float minimum[LANES]), (v, top, t, scale, minimum))
{
	struct fit f;

	begin_fit(&f, v, top);
	round_all(v, f.inverse, f.minimum, top);
	errors(v, f.scale, f.minimum, f.error);
	for (int i = 0; i <= t->last; i++) {
		float inverse[LANES];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			inverse[l] = (t->first + t->step * (float)i + top) / (f.max[l] - f.minimum[l]);
		try_inverse(&f, v, top, inverse);
	}
	round_all(v, f.inverse, f.from, top);
	memcpy(scale, f.scale, sizeof f.scale);
	memcpy(minimum, f.minimum, sizeof f.minimum);
}

/*
 * The scale d of eight numbers x from 0 on, x ≈ d code, and codes from 0 to 63, with factors w of the errors:
 * the best of nine trials, then single codes are changed as long as the fit becomes better.
 */
static float fit_scales(const float x[GROUPS], const float w[GROUPS], int code[GROUPS])
{
	float most = 0, best = 0, inverse = 0, qx = 0, qq = 0;

	for (size_t i = 0; i < GROUPS; i++)
		most = x[i] > most ? x[i] : most;
	memset(code, 0, GROUPS * sizeof *code);
	if (most < smallest)
		return 0;
	for (int k = -1; k <= 2 * STEPS; k++) {	/* first without a change */
		const float change = k < 0 ? 0 : 0.1f * (float)(k - STEPS), by = (change + TOP_SCALE) / most;
		const float scale = 1 / by;
		float error = 0;

		for (size_t i = 0; i < GROUPS; i++) {
			const float q = nearest(by * x[i]);
			const float e = x[i] - scale * (q > TOP_SCALE ? TOP_SCALE : q);

			error += w[i] * e * e;
		}
		if (k < 0 || error < best)
			best = error, inverse = by;
	}
	for (size_t i = 0; i < GROUPS; i++) {
		const float q = clamp(nearest(inverse * x[i]), 0, TOP_SCALE);

		code[i] = (int)q;
		qx += w[i] * x[i] * q;
		qq += w[i] * q * q;
	}
	for (int pass = 0, changed = 1; pass < PASSES && changed; pass++) {
		changed = 0;
		for (size_t i = 0; i < GROUPS; i++) {
			const float old = (float)code[i];
			float sx = qx - w[i] * x[i] * old, sq = qq - w[i] * old * old, q;

			if (!(sx > 0 && sq > 0))
				continue;
			q = clamp(nearest(x[i] * sq / sx), 0, TOP_SCALE);
			if (q == old)
				continue;
			sx += w[i] * x[i] * q;
			sq += w[i] * q * q;
			if (sx * sx * qq > qx * qx * sq) {
				code[i] = (int)q;
				qx = sx, qq = sq;
				changed++;
			}
		}
	}
	return qq > 0 ? qx / qq : 0;
}

/* The same, with d that makes the largest number 63 d. */
static float scales_by_largest(const float x[GROUPS], int code[GROUPS])
{
	float most = 0, inverse;

	for (size_t i = 0; i < GROUPS; i++)
		most = x[i] > most ? x[i] : most;
	inverse = most > 0 ? TOP_SCALE / most : 0;
	for (size_t i = 0; i < GROUPS; i++)
		code[i] = (int)clamp(nearest(inverse * x[i]), 0, TOP_SCALE);
	return most / TOP_SCALE;
}

/* Codes of a group under the stored scale and offset. */
static void round_group(float code[GROUP], const float x[GROUP], float scale, float offset, float top)
{
	for (size_t i = 0; i < GROUP && scale != 0; i++)	/* else the codes of the search stay */
		code[i] = clamp(nearest((x[i] + offset) / scale), 0, top);
}

/* Writes fifth bits, if there are any, and nibbles. */
static void put_codes(uint8_t *y, bool fifth, const float code[GROUPS][GROUP])
{
	uint8_t *low = y + (fifth ? GROUP : 0);

	memset(y, 0, fifth ? GROUP : 0);
	for (size_t g = 0; g < GROUPS; g += 2)
		for (size_t j = 0; j < GROUP; j++) {
			const unsigned a = (unsigned)code[g][j], b = (unsigned)code[g + 1][j];

			low[g / 2 * GROUP + j] = (uint8_t)((a & 15) | (b & 15) << 4);
			if (fifth)
				y[j] |= (uint8_t)((a >> 4) << g | (b >> 4) << (g + 1));
		}
}

/* A block of q4_k or q5_k from the fits of its groups: lanes from `first` on. */
static void put_block(const struct format *f, uint8_t *y, const float *x, const struct lanes *v, size_t first,
	const float scale[GROUPS], const float minimum[GROUPS], const float *sum)
{
	const float top = (float)((1 << f->n) - 1);
	float code[GROUPS][GROUP], offset[GROUPS], d, m;
	int s[GROUPS], b[GROUPS];

	for (size_t g = 0; g < GROUPS; g++)
		offset[g] = -minimum[g];
	d = sum ? fit_scales(scale, sum, s) : scales_by_largest(scale, s);
	m = sum ? fit_scales(offset, sum, b) : scales_by_largest(offset, b);
	d = put_half(y, d);
	m = put_half(y + 2, m);
	put_pairs(y + 4, s, b);
	for (size_t g = 0; g < GROUPS; g++) {
		for (size_t i = 0; i < GROUP; i++)
			code[g][i] = v->code[i][first + g];
		round_group(code[g], x + g * GROUP, d * (float)s[g], m * (float)b[g], top);
	}
	put_codes(y + 4 + PAIR_BYTES, f->n == 5, code);
}

/* At most two blocks. */
void gguf_block_search_offset(const struct format *f, size_t n, uint8_t *y, const float *x,
	const float *importance)
{
	const struct trials *t = importance ? &with_importance : &without[f->n - 4];
	float w[MOST_AT_ONCE], sum[LANES] = { 0 }, scale[LANES], minimum[LANES];
	struct lanes v;

	for (size_t i = 0; importance && i < n; i += BLOCK)
		weigh(BLOCK, w + i, x + i, importance + i);
	for (size_t g = 0; g < n / GROUP; g++) {
		const float *u = x + g * GROUP, mean = sqrtf(squares(GROUP, u) / GROUP);

		for (size_t i = 0; i < GROUP; i++) {
			w[g * GROUP + i] = importance ? w[g * GROUP + i] : mean + fabsf(u[i]);
			sum[g] += w[g * GROUP + i];
		}
	}
	load(&v, GROUP, n / GROUP, x, w);
	fit_groups(&v, (float)((1 << f->n) - 1), t, scale, minimum);
	for (size_t g = 0; g < n / GROUP; g += GROUPS)
		put_block(f, y + g / GROUPS * (size_t)f->bits / 8, x + g * GROUP, &v, g, scale + g,
			minimum + g, importance ? sum + g : NULL);
}
