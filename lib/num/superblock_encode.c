/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * superblock_encode.c -- searches of blocks; see superblock.h
 *
 * A lane of vectors is a group of weights, so that sums have the order of columns. All searches try inverse
 * scales. For each they take codes by rounding, and the scale (and minimum) of least squares for these codes,
 * and keep the inverse scale with the least weighted error, which has the codes. They are computed in the
 * order of operations that is written here, as CLONES() contracts none.
 */
#include <math.h>
#include <string.h>
#include "base/size.h"
#include "num/half.h"
#include "num/superblock.h"
#include "num/clones.h"

enum { LANES = 16, GROUP = 32, PAIRS = SUPERBLOCK_GROUPS, SIXES = 16, TOP_PAIR = 63, NEAR = 4, PASSES = 5 };
static const float levels[16] = IQ4_NL_VALUES;
static const float smallest = 1e-15f;	/* groups with smaller weights are 0 */

/* Weights of 16 groups, their factors in the error, and codes. */
struct lanes {
	float x[GROUP][LANES], weight[GROUP][LANES], code[GROUP][LANES];
};

/* To the nearest integer, ties to even, for |x| < 2²². */
static inline float nearest(float x)
{
	const float shift = 0x1.8p23f;

	return (x + shift) - shift;
}

/* NaN becomes low. */
static inline float clamp(float x, float low, float high)
{
	x = x > low ? x : low;
	return x < high ? x : high;
}

static float half_of(uint8_t y[2], float x)
{
	uint16_t h;

	half_narrow(1, &h, &x, HALF_F16);
	memcpy(y, &h, sizeof h);
	half_widen(1, &x, &h, HALF_F16);
	return x;
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
CLONES(static, void, fit_pairs, (struct lanes *v, float top, const struct trials *t, float scale[LANES],
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

/* The extreme weight of each group, with its sign; 0 if all are below the smallest. */
static inline __attribute__((always_inline)) void extremes(const struct lanes *v, size_t n, float x[LANES])
{
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++) {
		float most = 0;

		x[l] = 0;
		for (size_t i = 0; i < n; i++) {
			const float a = fabsf(v->x[i][l]);

			x[l] = a > most ? v->x[i][l] : x[l];
			most = a > most ? a : most;
		}
		x[l] = most < smallest ? 0 : x[l];
	}
}

/* Codes from -32 to 31 in v->code. */
static inline __attribute__((always_inline)) void round_sixes(struct lanes *v, const float inverse[LANES])
{
	for (size_t i = 0; i < SIXES; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = clamp(nearest(inverse[l] * v->x[i][l]), -32, 31);
}

/* The scales of groups of 16, and codes from -32 to 31. A group of small weights has scale 0, codes -32. */
CLONES(static, void, fit_sixes, (struct lanes *v, float scale[LANES]), (v, scale))
{
	float most[LANES], best[LANES] = { 0 }, inverse[LANES] = { 0 };

	extremes(v, SIXES, most);
	for (int k = 0; k < 19; k++) {	/* first without a change, then from -9 to 9 tenths */
		const float change = k ? 0.1f * (float)(k - (k < 10 ? 10 : 9)) : 0;
		float qx[LANES] = { 0 }, qq[LANES] = { 0 }, by[LANES];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			by[l] = most[l] != 0 ? -(32 + change) / most[l] : 0;
		round_sixes(v, by);
		for (size_t i = 0; i < SIXES; i++)
			#pragma omp simd
			for (size_t l = 0; l < LANES; l++) {
				const float code = v->code[i][l], w = v->weight[i][l];

				qx[l] += w * v->x[i][l] * code;
				qq[l] += w * code * code;
			}
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const bool better = !k || (qq[l] > 0 && qx[l] * qx[l] > best[l] * qq[l]);
			const float s = qq[l] != 0 ? qx[l] / qq[l] : 0;

			scale[l] = better ? s : scale[l];
			best[l] = better ? s * qx[l] : best[l];
			inverse[l] = better ? by[l] : inverse[l];
		}
	}
	round_sixes(v, inverse);
	for (size_t i = 0; i < SIXES; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = most[l] != 0 ? v->code[i][l] : -32;
}

/* The nearest level, the upper one of two that are equally near; and its number. */
static inline __attribute__((always_inline)) float nearest_level(float x)
{
	float y = levels[0];

	#pragma GCC unroll 15
	for (size_t k = 0; k < 15; k++)
		y = x >= (levels[k] + levels[k + 1]) / 2 ? levels[k + 1] : y;
	return y;
}

static inline __attribute__((always_inline)) float nearest_number(float x)
{
	float y = 0;

	#pragma GCC unroll 15
	for (size_t k = 0; k < 15; k++)
		y = x >= (levels[k] + levels[k + 1]) / 2 ? (float)(k + 1) : y;
	return y;
}

/* The scales of blocks of 32, and codes. */
CLONES(static, void, fit_levels, (struct lanes *v, float scale[LANES]), (v, scale))
{
	float most[LANES], best[LANES] = { 0 };

	extremes(v, GROUP, most);
	for (int k = 0; k < 16; k++) {	/* first without a change, then from -7 to 7 */
		float qx[LANES] = { 0 }, qq[LANES] = { 0 }, by[LANES];

		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			by[l] = most[l] == 0 ? 0 : k ? ((float)(k - 8) + levels[0]) / most[l] :
				1 / (-most[l] / levels[0]);
		for (size_t i = 0; i < GROUP; i++)
			#pragma omp simd
			for (size_t l = 0; l < LANES; l++) {
				const float q = nearest_level(by[l] * v->x[i][l]), w = v->weight[i][l];

				qx[l] += w * q * v->x[i][l];
				qq[l] += w * q * q;
			}
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++) {
			const bool better = !k || (qq[l] > 0 && qx[l] * qx[l] > best[l] * qq[l]);
			const float s = most[l] != 0 && qq[l] > 0 ? qx[l] / qq[l] : 0;

			scale[l] = better ? s : scale[l];
			best[l] = better ? s * qx[l] : best[l];
		}
	}
	#pragma omp simd
	for (size_t l = 0; l < LANES; l++)
		best[l] = scale[l] != 0 ? 1 / scale[l] : 0;
	for (size_t i = 0; i < GROUP; i++)
		#pragma omp simd
		for (size_t l = 0; l < LANES; l++)
			v->code[i][l] = nearest_number(best[l] * v->x[i][l]);
}

/* Writes groups of n weights to lanes; the rest of the lanes is 0. */
static void load(struct lanes *v, size_t n, size_t groups, const float *x, const float *weight)
{
	memset(v, 0, sizeof *v);
	for (size_t l = 0; l < groups; l++)
		for (size_t i = 0; i < n; i++) {
			v->x[i][l] = x[l * n + i];
			v->weight[i][l] = weight[l * n + i];
		}
}

static float squares(size_t n, const float x[n])
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

/* importance · √(σ² + x²) */
static void weights_by(size_t n, float w[n], const float x[n], float sigma2, const float importance[n])
{
	for (size_t i = 0; i < n; i++)
		w[i] = importance[i] * sqrtf(sigma2 + x[i] * x[i]);
}

/*
 * The scale d of eight numbers x from 0 on, x ≈ d code, and codes from 0 to 63, with factors w of the errors:
 * the best of nine trials, then single codes are changed as long as the fit becomes better.
 */
static float fit_codes(const float x[PAIRS], const float w[PAIRS], int code[PAIRS])
{
	float most = 0, best = 0, inverse = 0, qx = 0, qq = 0;

	for (size_t i = 0; i < PAIRS; i++)
		most = x[i] > most ? x[i] : most;
	memset(code, 0, PAIRS * sizeof *code);
	if (most < smallest)
		return 0;
	for (int k = -1; k <= 2 * NEAR; k++) {	/* first without a change */
		const float change = k < 0 ? 0 : 0.1f * (float)(k - NEAR), by = (change + TOP_PAIR) / most;
		const float scale = 1 / by;
		float error = 0;

		for (size_t i = 0; i < PAIRS; i++) {
			const float q = nearest(by * x[i]), e = x[i] - scale * (q > TOP_PAIR ? TOP_PAIR : q);

			error += w[i] * e * e;
		}
		if (k < 0 || error < best)
			best = error, inverse = by;
	}
	for (size_t i = 0; i < PAIRS; i++) {
		const float q = clamp(nearest(inverse * x[i]), 0, TOP_PAIR);

		code[i] = (int)q;
		qx += w[i] * x[i] * q;
		qq += w[i] * q * q;
	}
	for (int pass = 0, changed = 1; pass < PASSES && changed; pass++) {
		changed = 0;
		for (size_t i = 0; i < PAIRS; i++) {
			const float old = (float)code[i];
			float sx = qx - w[i] * x[i] * old, sq = qq - w[i] * old * old, q;

			if (!(sx > 0 && sq > 0))
				continue;
			q = clamp(nearest(x[i] * sq / sx), 0, TOP_PAIR);
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

/* The same by the largest number. */
static float fit_largest(const float x[PAIRS], int code[PAIRS])
{
	float most = 0, inverse;

	for (size_t i = 0; i < PAIRS; i++)
		most = x[i] > most ? x[i] : most;
	inverse = most > 0 ? TOP_PAIR / most : 0;
	for (size_t i = 0; i < PAIRS; i++)
		code[i] = (int)clamp(nearest(inverse * x[i]), 0, TOP_PAIR);
	return most / TOP_PAIR;
}

/* Codes of a group under the stored scale and offset. */
static void round_pair(float code[GROUP], const float x[GROUP], float scale, float offset, float top)
{
	for (size_t i = 0; i < GROUP && scale != 0; i++)	/* else the codes of the search stay */
		code[i] = clamp(nearest((x[i] + offset) / scale), 0, top);
}

/* Writes the codes of 8 groups: fifth bits, if there are any, and nibbles. */
static void put_pairs(uint8_t *y, bool fifth, const float code[PAIRS][GROUP])
{
	uint8_t *low = y + (fifth ? GROUP : 0);

	memset(y, 0, fifth ? GROUP : 0);
	for (size_t g = 0; g < PAIRS; g += 2)
		for (size_t j = 0; j < GROUP; j++) {
			const unsigned a = (unsigned)code[g][j], b = (unsigned)code[g + 1][j];

			low[g / 2 * GROUP + j] = (uint8_t)((a & 15) | (b & 15) << 4);
			if (fifth)
				y[j] |= (uint8_t)((a >> 4) << g | (b >> 4) << (g + 1));
		}
}

/* A block of q4_k or q5_k from the fits of its groups: lanes from `first` on. */
static void put_block(const struct format *f, uint8_t *y, const float *x, const struct lanes *v, size_t first,
	const float scale[PAIRS], const float minimum[PAIRS], const float *sum)
{
	const float top = (float)((1 << f->n) - 1);
	float code[PAIRS][GROUP], offset[PAIRS], d, m;
	int s[PAIRS], b[PAIRS];

	for (size_t g = 0; g < PAIRS; g++)
		offset[g] = -minimum[g];
	d = sum ? fit_codes(scale, sum, s) : fit_largest(scale, s);
	m = sum ? fit_codes(offset, sum, b) : fit_largest(offset, b);
	d = half_of(y, d);
	m = half_of(y + 2, m);
	superblock_put_pairs(y + 4, s, b);
	for (size_t g = 0; g < PAIRS; g++) {
		for (size_t i = 0; i < GROUP; i++)
			code[g][i] = v->code[i][first + g];
		round_pair(code[g], x + g * GROUP, d * (float)s[g], m * (float)b[g], top);
	}
	put_pairs(y + 4 + SUPERBLOCK_PAIRS, f->n == 5, code);
}

/* Blocks of q4_k or q5_k, at most two. */
static void pairs(const struct format *f, size_t n, uint8_t *y, const float *x, const float *importance)
{
	const struct trials *t = importance ? &with_importance : &without[f->n - 4];
	float w[LANES * GROUP], sum[LANES] = { 0 }, scale[LANES], minimum[LANES];
	struct lanes v;

	for (size_t i = 0; i < n; i += SUPERBLOCK_COLUMNS)
		if (importance)
			weights_by(SUPERBLOCK_COLUMNS, w + i, x + i, 2 * squares(SUPERBLOCK_COLUMNS, x + i) /
				SUPERBLOCK_COLUMNS, importance + i);
	for (size_t g = 0; g < n / GROUP; g++) {
		const float *u = x + g * GROUP, mean = sqrtf(squares(GROUP, u) / GROUP);

		for (size_t i = 0; i < GROUP; i++) {
			w[g * GROUP + i] = importance ? w[g * GROUP + i] : mean + fabsf(u[i]);
			sum[g] += w[g * GROUP + i];
		}
	}
	load(&v, GROUP, n / GROUP, x, w);
	fit_pairs(&v, (float)((1 << f->n) - 1), t, scale, minimum);
	for (size_t g = 0; g < n / GROUP; g += PAIRS)
		put_block(f, y + g / PAIRS * (size_t)f->bits / 8, x + g * GROUP, &v, g, scale + g,
			minimum + g, importance ? sum + g : NULL);
}

/* Codes from 0 to 63 of a block of q6_k, and its scales. */
static void put_sixes(uint8_t *y, const uint8_t code[SUPERBLOCK_COLUMNS])
{
	uint8_t *high = y + SUPERBLOCK_COLUMNS / 2;

	for (size_t half = 0; half < 2; half++, code += 128, y += 64, high += GROUP)
		for (size_t j = 0; j < GROUP; j++) {
			const unsigned a = code[j], b = code[j + 32], c = code[j + 64], d = code[j + 96];

			y[j] = (uint8_t)((a & 15) | (c & 15) << 4);
			y[j + GROUP] = (uint8_t)((b & 15) | (d & 15) << 4);
			high[j] = (uint8_t)(a >> 4 | b >> 4 << 2 | c >> 4 << 4 | d >> 4 << 6);
		}
}

static void sixes(uint8_t *y, const float *x, const float *importance)
{
	float w[SUPERBLOCK_COLUMNS], scale[LANES] = { 0 }, most = 0, inverse, d;
	uint8_t code[SUPERBLOCK_COLUMNS];
	struct lanes v;

	for (size_t i = 0; i < SUPERBLOCK_COLUMNS; i++)
		w[i] = importance ? importance[i] : x[i] * x[i];
	load(&v, SIXES, LANES, x, w);
	fit_sixes(&v, scale);
	for (size_t g = 0; g < LANES; g++)	/* NaN, of sums that overflow, stays */
		most = fabsf(scale[g]) > fabsf(most) || isnan(scale[g]) ? scale[g] : most;
	memset(y, 0, SUPERBLOCK_BYTES);
	if (fabsf(most) < smallest)
		return;
	inverse = -128 / most;
	d = half_of(y + SUPERBLOCK_BYTES - 2, 1 / inverse);
	for (size_t g = 0; g < LANES; g++) {
		const float s = clamp(nearest(inverse * scale[g]), -128, 127), step = d * s;

		y[192 + g] = (uint8_t)(int8_t)s;
		for (size_t i = 0; i < SIXES; i++) {
			const float q = step != 0 ? clamp(nearest(x[g * SIXES + i] / step), -32, 31) :
				v.code[i][g];

			code[g * SIXES + i] = (uint8_t)(q + 32);
		}
	}
	put_sixes(y, code);
}

/* Blocks of iq4_nl, at most 16. */
static void values(size_t blocks, uint8_t *y, const float *x, const float *importance)
{
	float w[LANES * GROUP], scale[LANES] = { 0 };
	struct lanes v;

	for (size_t k = 0; k < blocks * GROUP; k += GROUP) {
		if (importance)
			weights_by(GROUP, w + k, x + k, squares(GROUP, x + k) * (2.f / GROUP),
				importance + k);
		for (size_t i = k; !importance && i < k + GROUP; i++)
			w[i] = x[i] * x[i];
	}
	load(&v, GROUP, blocks, x, w);
	fit_levels(&v, scale);
	for (size_t k = 0; k < blocks; k++, y += 2 + GROUP / 2) {
		half_of(y, scale[k]);
		for (size_t i = 0; i < GROUP / 2; i++)
			y[2 + i] = (uint8_t)((unsigned)v.code[i][k] |
				(unsigned)v.code[i + GROUP / 2][k] << 4);
	}
}

void superblock_encode(const struct format *f, size_t n, uint8_t code[], const float x[n],
	const float *importance)
{
	const size_t bytes = code_bytes(f), columns = code_form(f)->columns, step = f->n == 6 ?
		SUPERBLOCK_COLUMNS : LANES * GROUP;

	for (size_t i = 0; i < n; i += step) {
		const float *c = importance ? importance + i : NULL;
		const size_t some = min(step, n - i);
		uint8_t *y = code + i / columns * bytes;

		if (f->n == 6)
			sixes(y, x + i, c);
		else if (f->n)
			pairs(f, some, y, x + i, c);
		else
			values(some / GROUP, y, x + i, c);
	}
}
