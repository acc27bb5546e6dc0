/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stats.h -- what the effective weight of a linear layer is like, and how far it is from another
 *
 * With W [m][n], μ the mean of its elements, and E = W - Ŵ:
 *	sigma       = std(w_i)/max|w_i| of an output channel (FPE2M2 figure 9)
 *	kurtosis    = mean (w - μ)⁴ / (mean (w - μ)²)², 3 for a Gaussian
 *	incoherence = max|w| √(mn) / ‖W‖_F
 *	error       = ‖E‖²/‖W‖²,  sqnr = -10 log₁₀ error
 *	output      = tr(E H Eᵀ)/tr(W H Wᵀ)
 * Sums are in double, row by row, then over rows in their order: results do
 * not depend on the number of threads. The products with H are in float.
 *
 * Sources: FPE2M2 appendix C; kurtosis as in Shkolnik et al. 2020 (KURE);
 * incoherence: QuIP (Chee et al., 2023), definition 1.
 */
#ifndef QUANT_STATS_H
#define QUANT_STATS_H
#include <stdbool.h>
#include <stddef.h>
#include "quant/linear.h"

struct weight_stats {
	double sigma, sigma_min, sigma_max;	/* mean, least, largest over channels that are not all zero */
	double deviation;			/* √(mean (w - μ)²) */
	double kurtosis, absmax, incoherence;	/* NaN where all elements are the same, where all are zero */
};

struct weight_difference {
	double mse, error, sqnr;	/* mean E²; error is NaN for 0/0; sqnr in dB, infinite where E = 0 */
	double largest;			/* max |E| */
	double output;			/* NaN without H, or where W H Wᵀ = 0 */
};

/* Bytes of work for m rows and n columns under the present number of `threads`. */
size_t stats_workspace(size_t m, size_t n);

void stats_weight(const struct linear *l, struct weight_stats *s, void *work);
/* w: the reference, of the extents of v. h: [n][n] or NULL. False if the sums with h are not finite. */
bool stats_difference(const struct linear *w, const struct linear *v, const float *h,
	struct weight_difference *d, void *work);
#endif
