/* SPDX-License-Identifier: GPL-3.0-or-later */
/* round.c -- see round.h */
#include "quant/round.h"
#include <string.h>
#include "num/clones.h"

enum { CHUNK = 256, LONG = 512, SUMS = 16, WIDE = 64 };

/* Range of the weights and 0. WIDE numbers at once hide the latency. */
CLONES(static, void, range, (size_t n, float ends[2], const float w[n]), (n, ends, w))
{
	float low[WIDE] = { 0 }, high[WIDE] = { 0 };

	for (size_t i = 0; i + WIDE <= n; i += WIDE)
		for (size_t k = 0; k < WIDE; k++) {
			low[k] = w[i + k] < low[k] ? w[i + k] : low[k];
			high[k] = w[i + k] > high[k] ? w[i + k] : high[k];
		}
	for (size_t i = n / WIDE * WIDE, k = 0; i + k < n; k++) {
		low[k] = w[i + k] < low[k] ? w[i + k] : low[k];
		high[k] = w[i + k] > high[k] ? w[i + k] : high[k];
	}
	for (size_t half = WIDE / 2; half; half /= 2)
		for (size_t k = 0; k < half; k++) {
			low[k] = low[k + half] < low[k] ? low[k + half] : low[k];
			high[k] = high[k + half] > high[k] ? high[k + half] : high[k];
		}
	ends[0] = low[0], ends[1] = high[0];
}

/* Σ (x - y)². Differences are in float, as in the arithmetic of the layer. Squares are in double, in an
 * order that does not depend on the vector width. */
CLONES(static, double, squares, (size_t n, const float x[n], const float y[n]), (n, x, y))
{
	double sum[SUMS] = { 0 }, total = 0;

	for (size_t i = 0; i + SUMS <= n; i += SUMS)
		for (size_t k = 0; k < SUMS; k++) {
			float d = x[i + k] - y[i + k];

			sum[k] += (double)d * d;
		}
	for (size_t i = n / SUMS * SUMS; i < n; i++)
		sum[i % SUMS] += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
	for (size_t k = 0; k < SUMS; k++)
		total += sum[k];
	return total;
}

void round_row(const struct format *f, size_t n, size_t group, uint8_t code[n], float scale[], uint8_t zero[],
	const float w[n])
{
	for (size_t first = 0, g = 0; first < n; first += group, g++) {
		const size_t m = n - first < group ? n - first : group;
		uint8_t offset = 0;
		float ends[2];

		range(m, ends, w + first);
		format_fit(f, &scale[g], &offset, ends[0], ends[1]);
		if (f->asymmetric)
			zero[g] = offset;
		for (size_t i = first; i < first + m; i += LONG) {
			const size_t few = first + m - i < LONG ? first + m - i : LONG;

			for (size_t k = 0; k < few; k += 16)	/* of the next row, during the rounding */
				__builtin_prefetch(w + n + i + k);
			format_encode_group(f, few, code + i, w + i, scale[g], offset);
		}
	}
}

/* Values of codes [first, first + m), m ≤ CHUNK. */
static void some_values(const struct format *f, size_t first, size_t m, size_t group, float x[m],
	const uint8_t *code, const float *scale, const uint8_t *zero)
{
	float s[CHUNK];
	uint8_t z[CHUNK];

	for (size_t k = 0; k < m; ) {
		const size_t g = (first + k) / group, end = (g + 1) * group - first;
		const uint8_t offset = f->asymmetric ? zero[g] : 0;

		for (; k < m && k < end; k++)
			s[k] = scale[g], z[k] = offset;
	}
	format_decode(f, m, x, code + first, s, z);
}

void round_values(const struct format *f, size_t n, size_t group, float x[n], const uint8_t code[n],
	const float scale[], const uint8_t zero[])
{
	for (size_t i = 0; i < n; i += CHUNK)
		some_values(f, i, n - i < CHUNK ? n - i : CHUNK, group, x + i, code, scale, zero);
}

double round_error(const struct format *f, size_t n, size_t group, const uint8_t code[n],
	const float scale[], const uint8_t zero[], const float w[n])
{
	float y[CHUNK];
	double sum = 0;

	for (size_t i = 0; i < n; i += CHUNK) {
		const size_t m = n - i < CHUNK ? n - i : CHUNK;

		some_values(f, i, m, group, y, code, scale, zero);
		sum += squares(m, w + i, y);
	}
	return sum;
}

/* round_residue() for at most CHUNK numbers with one scale and zero. */
static void residue(const struct format *f, size_t n, float x[n], float scale, uint8_t zero)
{
	float s[CHUNK], y[CHUNK];
	uint8_t z[CHUNK];

	memset(z, zero, sizeof z);
	for (size_t i = 0; i < n; i++)
		s[i] = scale;
	format_nearest(f, 1, n, (float (*)[n])y, (const float (*)[n])x, s, z);
	for (size_t i = 0; i < n; i++)
		x[i] -= y[i];
}

void round_residue(const struct format *f, size_t n, size_t group, float x[n])
{
	for (size_t first = 0; first < n; first += group) {
		const size_t m = n - first < group ? n - first : group;
		uint8_t zero = 0;
		float ends[2], scale;

		range(m, ends, x + first);
		format_fit(f, &scale, &zero, ends[0], ends[1]);
		for (size_t i = first; i < first + m; i += CHUNK)
			residue(f, first + m - i < CHUNK ? first + m - i : CHUNK, x + i, scale, zero);
	}
}
