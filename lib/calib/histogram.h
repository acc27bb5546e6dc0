/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * histogram.h -- histogram of magnitudes |x| with logarithmic bins, and its percentiles
 *
 *	bin b counts edge(b) ≤ |x| < edge(b + 1)
 *
 * edge(0) = 0 and edge(1) = 2⁻²⁴. Up to 2²⁴ there are 64 bins per octave, of equal width: 1/64 of the lower
 * end of the octave. edge(HISTOGRAM_BINS) = ∞. Counts can be added in any order, so files and threads may
 * have their own.
 */
#ifndef CALIB_HISTOGRAM_H
#define CALIB_HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_STEPS = 64, HISTOGRAM_OCTAVES = 48,
	HISTOGRAM_BINS = HISTOGRAM_STEPS * HISTOGRAM_OCTAVES + 2 };
/* The bin of |x| is the bits of the float |x| without the last HISTOGRAM_SHIFT, less HISTOGRAM_FIRST, plus 1:
 * the exponent and 6 bits of the mantissa. HISTOGRAM_FIRST: of 2⁻²⁴. */
enum { HISTOGRAM_SHIFT = 23 - 6, HISTOGRAM_FIRST = (127 - HISTOGRAM_OCTAVES / 2) * HISTOGRAM_STEPS };

/* Counts n magnitudes; NaN counts as infinite. */
void histogram_add(size_t n, int64_t count[HISTOGRAM_BINS], const float x[n]);
float histogram_edge(size_t bin);	/* lower edge of the bin; bin ≤ HISTOGRAM_BINS */
/* The smallest edge below which at least p percent of the counts are, 0 < p ≤ 100. Between 2⁻²⁴ and 2²⁴ it
 * exceeds the percentile by at most 1/64 of it; beyond, it is infinity. Without counts it is 0. Counts may be
 * weighted. */
float histogram_percentile(const double count[HISTOGRAM_BINS], double p);
#endif
