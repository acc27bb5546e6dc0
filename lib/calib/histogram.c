/* SPDX-License-Identifier: GPL-3.0-or-later */
/* histogram.c -- see histogram.h */
#include "calib/histogram.h"
#include <math.h>
#include "base/size.h"
#include "num/bits.h"
#include "num/clones.h"

enum { AT_ONCE = 256 };

CLONES(static, void, bins_of, (size_t n, int32_t bin[restrict n], const float x[restrict n]), (n, bin, x))
{
	for (size_t i = 0; i < n; i++) {
		const int32_t top = (int32_t)((float_bits(x[i]) & 0x7fffffff) >> HISTOGRAM_SHIFT);
		const int32_t b = top - HISTOGRAM_FIRST + 1;

		bin[i] = b < 0 ? 0 : b < HISTOGRAM_BINS - 1 ? b : HISTOGRAM_BINS - 1;
	}
}

void histogram_add(size_t n, int64_t count[HISTOGRAM_BINS], const float x[n])
{
	int32_t bin[AT_ONCE];

	for (size_t i = 0; i < n; i += AT_ONCE) {
		const size_t m = min(AT_ONCE, n - i);

		bins_of(m, bin, x + i);
		for (size_t j = 0; j < m; j++)
			count[bin[j]]++;
	}
}

float histogram_edge(size_t bin)
{
	if (bin >= HISTOGRAM_BINS)
		return INFINITY;
	return bin ? bits_float((uint32_t)(HISTOGRAM_FIRST + (int)bin - 1) << HISTOGRAM_SHIFT) : 0;
}

float histogram_percentile(const double count[HISTOGRAM_BINS], double p)
{
	double all = 0, below = 0;
	size_t b = 0;

	for (size_t i = 0; i < HISTOGRAM_BINS; i++)
		all += count[i];
	while (b < HISTOGRAM_BINS && below * 100 < all * p)
		below += count[b++];
	return histogram_edge(b);
}
