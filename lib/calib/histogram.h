/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * histogram.h -- how many magnitudes lie where, and below which of them P percent lie
 *
 *	bin b counts edge(b) ≤ |x| < edge(b + 1)
 *
 * where edge(0) = 0, edge(1) = 2⁻²⁴, from there on 64 bins an octave up to 2²⁴, each 1/64 of where its octave
 * begins, and edge(HISTOGRAM_BINS) = ∞. Counts add up in any order: files and threads may each have theirs.
 */
#ifndef CALIB_HISTOGRAM_H
#define CALIB_HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_STEPS = 64, HISTOGRAM_OCTAVES = 48,
	HISTOGRAM_BINS = HISTOGRAM_STEPS * HISTOGRAM_OCTAVES + 2 };

/* Counts n magnitudes; NaN as infinite. */
void histogram_add(size_t n, int64_t count[HISTOGRAM_BINS], const float x[n]);
float histogram_edge(size_t bin);	/* where the bin begins; bin up to HISTOGRAM_BINS */
/* The least edge that at least P percent of what was counted lie below, 0 < P ≤ 100: above the percentile by
 * at most 1/64 of it between 2⁻²⁴ and 2²⁴. Infinity where it lies beyond, 0 where nothing was counted. Counts
 * may be weighted. */
float histogram_percentile(const double count[HISTOGRAM_BINS], double p);
#endif
