/* SPDX-License-Identifier: GPL-3.0-or-later */
/* perplexity.c -- see perplexity.h */
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
	for (size_t i = 0; i < n; i++)	/* mean nll² - mean² nll, without cancellation */
		squares += (nll[i] - mean) * (nll[i] - mean);
	return (struct perplexity){ .tokens = n, .nll = mean, .ppl = exp(mean),
		.nll_se = n > 1 ? sqrt(squares / (double)n / (double)(n - 1)) : NAN,
		.bits_per_byte = bytes ? sum / (M_LN2 * (double)bytes) : NAN };
}

size_t perplexity_metrics(const struct perplexity *p, struct metric metric[PERPLEXITY_METRICS])
{
	metric[0] = (struct metric){ "tokens", (double)p->tokens, 0 };
	metric[1] = (struct metric){ "nll", p->nll, 9 };
	metric[2] = (struct metric){ "nll_se", p->nll_se, 4 };
	metric[3] = (struct metric){ "ppl", p->ppl, 8 };
	metric[4] = (struct metric){ "bits_per_byte", p->bits_per_byte, 8 };
	return isnan(p->bits_per_byte) ? 4 : 5;
}

double perplexity_se_windows(const struct windows *w, const double x[w->targets])
{
	size_t *targets = xalloc(w->n, sizeof *targets), i = 0;
	const double mean = perplexity_of(w->targets, x, 0).nll, n = (double)w->n;
	double squares = 0;

	windows_targets(w, targets);
	for (size_t k = 0; k < w->n; k++) {
		double sum = 0;

		for (size_t end = i + targets[k]; i < end; i++)
			sum += x[i] - mean;
		squares += sum * sum;
	}
	free(targets);
	return w->n > 1 ? sqrt(n / (n - 1) * squares) / (double)w->targets : NAN;
}

/* paired: differences from the record of --paired. reference: from the model of --reference. */
const char *const paired_nll[DELTA_METRICS] = { "paired_nll_delta", "paired_nll_delta_se",
	"paired_nll_delta_se_windows" };
const char *const paired_kl[DELTA_METRICS] = { "paired_kl_delta", "paired_kl_delta_se",
	"paired_kl_delta_se_windows" };
const char *const reference_nll[DELTA_METRICS] = { "reference_nll_delta", "reference_nll_delta_se",
	"reference_nll_delta_se_windows" };

size_t delta_metrics(const char *const names[DELTA_METRICS], const struct windows *w,
	const double x[w->targets], const double before[w->targets], struct metric metric[DELTA_METRICS])
{
	double *d = xalloc(w->targets, sizeof *d);
	struct perplexity p;

	for (size_t i = 0; i < w->targets; i++)
		d[i] = x[i] - before[i];
	p = perplexity_of(w->targets, d, 0);
	metric[0] = (struct metric){ names[0], p.nll, 6 };
	metric[1] = (struct metric){ names[1], p.nll_se, 4 };
	metric[2] = (struct metric){ names[2], perplexity_se_windows(w, d), 4 };
	free(d);
	return DELTA_METRICS;
}
