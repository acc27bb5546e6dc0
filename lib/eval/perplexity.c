/* SPDX-License-Identifier: GPL-3.0-or-later */
/* perplexity.c -- numbers of a text's negative log-likelihoods; see perplexity.h */
#include "eval/perplexity.h"
#include <math.h>

struct perplexity perplexity_of(size_t n, const double nll[n], uint64_t bytes)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += nll[i];
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)	/* mean nll² - mean² nll without its cancellation */
		squares += (nll[i] - mean) * (nll[i] - mean);
	return (struct perplexity){ .tokens = n, .nll = mean, .ppl = exp(mean),
		.nll_se = n > 1 ? sqrt(squares / (double)n / (double)(n - 1)) : NAN,
		.bits_per_byte = bytes ? sum / (M_LN2 * (double)bytes) : NAN };
}
