/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * two_way.h -- the mean of numbers over draws and windows, and its standard error
 *
 * d_ij is the number of window j in draw i. Draws and windows are crossed: all draws have the same windows.
 * Both are random:
 *
 *	d_ij = μ + α_i + β_j + ε_ij
 *
 * With weights w_j of mean 1, Δ = mean of w_j d_ij, z_ij = w_j (d_ij - Δ), and the means r_i of the rows and
 * c_j of the columns of z, whose mean is 0, over a draws and b windows
 *
 *	A = b Σ r_i² / (a - 1)		B = a Σ c_j² / (b - 1)
 *	R = Σ (z_ij - r_i - c_j)² / ((a - 1)(b - 1))
 *	se² = max(A + B - R, A, B) / (ab)
 *	df of A + B - R = (A + B - R)² / (A²/(a - 1) + B²/(b - 1) + R²/((a - 1)(b - 1))), at least 1
 *	df of A = a - 1			df of B = b - 1
 *
 * df is that of the term that se² is. se² is the estimate by the mean squares of the layout (Searle, Casella
 * and McCulloch, Variance Components, 1992, chapter 4), df of the sum is Satterthwaite's (Biometrics Bulletin
 * 2, 1946). With df of the sum for A and B, too, fewer than 1 % of the verdicts would be false where draws or
 * windows have little effect (tests/two_way.c). The weights make Δ a ratio of sums; z is its linear part
 * (Cochran, Sampling Techniques, 1977, section 6.3). For one draw se is se_windows of perplexity.h.
 */
#ifndef EVAL_TWO_WAY_H
#define EVAL_TWO_WAY_H
#include <stdbool.h>
#include <stddef.h>

struct two_way {
	double mean, se;		/* Δ; NaN for one number */
	double se_draws, se_windows;	/* √(A/(ab)), √(B/(ab)): the parts of se; 0 below 2⁻⁵² ab max |d| */
	double df, quantile;		/* of Student's distribution, two-sided */
	bool separated;			/* |Δ| > quantile · se */
};

/*
 * d: [draws][windows], row after row. weight: [windows], positive, of any mean. confidence: of the two-sided
 * quantile, above 0 and below 1. draws ≥ 1, windows ≥ 1.
 *
 * One draw: se is se_windows; se_draws, df and quantile are NaN, and nothing is separated, since nothing is
 * known of other draws. One window: the same with draws and windows exchanged. One number: all are NaN. If
 * all numbers are equal, se is 0, and df and quantile are NaN.
 */
struct two_way two_way_of(size_t draws, size_t windows, const double d[draws * windows],
	const double weight[windows], double confidence);
#endif
