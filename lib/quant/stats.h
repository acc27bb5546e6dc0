/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * stats.h -- statistics of the effective weight of a linear layer, and differences of two weights
 *
 * With W [m][n], μ the mean of its elements, and E = W - Ŵ:
 *	sigma       = std(w_i)/max|w_i| of an output channel (FPE2M2 figure 9)
 *	kurtosis    = mean (w - μ)⁴ / (mean (w - μ)²)², 3 for a Gaussian
 *	incoherence = max|w| √(mn) / ‖W‖_F
 *	error       = ‖E‖²/‖W‖²,  sqnr = -10 log₁₀ error
 *	output      = tr(E H Eᵀ)/tr(W H Wᵀ)
 * Sums are in double, of each row, then over rows in their order: results do
 * not depend on the number of threads. The products with H are in float; BLAS
 * must use one thread (linalg_init()).
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
	double sigma, sigma_min, sigma_max;	/* mean, min, max over the channels that are not all zero */
	double deviation;			/* √(mean (w - μ)²) */
	/* kurtosis is NaN if all elements are equal, incoherence if all are zero */
	double kurtosis, absmax, incoherence;
};

struct weight_difference {
	double mse, error, sqnr;	/* mean E²; error is NaN for 0/0; sqnr in dB, infinite for E = 0 */
	double largest;			/* max |E| */
	double output;			/* NaN without H, or if W H Wᵀ = 0 */
};

/* Bytes of `work` for m rows and n columns, for the current number of `threads`. */
size_t stats_workspace(size_t m, size_t n);

void stats_weight(const struct linear *l, struct weight_stats *s, void *work);
/* w: the reference W; v: Ŵ, of the same extents. h: [n][n] or NULL. False if the sums with h are not
 * finite. */
bool stats_difference(const struct linear *w, const struct linear *v, const float *h,
	struct weight_difference *d, void *work);
#endif
