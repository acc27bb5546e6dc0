/* SPDX-License-Identifier: GPL-3.0-or-later */
/* perplexity.c -- numbers of a text's negative log-likelihoods; see perplexity.h */
#include "eval/perplexity.h"
#include <math.h>
#include <stdlib.h>
#include "base/error.h"

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

size_t perplexity_answer(const struct perplexity *p, struct answer answer[PERPLEXITY_ANSWERS])
{
	answer[0] = (struct answer){ "tokens", (double)p->tokens, 0 };
	answer[1] = (struct answer){ "nll", p->nll, 9 };
	answer[2] = (struct answer){ "nll_se", p->nll_se, 4 };
	answer[3] = (struct answer){ "ppl", p->ppl, 8 };
	answer[4] = (struct answer){ "bits_per_byte", p->bits_per_byte, 8 };
	return isnan(p->bits_per_byte) ? 4 : 5;
}

struct paired perplexity_paired(size_t n, const double nll[n], const double before[n])
{
	double *d = xalloc(n, sizeof *d);
	struct perplexity p;

	for (size_t i = 0; i < n; i++)
		d[i] = nll[i] - before[i];
	p = perplexity_of(n, d, 0);
	free(d);
	return (struct paired){ p.nll, p.nll_se };
}

size_t paired_answer(struct paired p, struct answer answer[PAIRED_ANSWERS])
{
	answer[0] = (struct answer){ "paired_delta", p.delta, 6 };
	answer[1] = (struct answer){ "paired_delta_se", p.delta_se, 4 };
	return 2;
}
