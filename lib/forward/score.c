/* SPDX-License-Identifier: GPL-3.0-or-later */
/* score.c -- see score.h */
#include "forward/score.h"
#include <math.h>
#include "base/error.h"
#include "num/vector.h"

struct score score_begin(void)
{
	return (struct score){ .max = -INFINITY };
}

void score_add(struct score *s, size_t n, const float y[n], size_t first, size_t target)
{
	float max = fmaxf(s->max, vector_max(n, y));

	s->sum = s->sum * exp((double)s->max - (double)max) + vector_sum_exp(n, y, max);
	s->max = max;
	if (target >= first && target < first + n)
		s->target = (double)y[target - first];
}

bool score_likeliest(const struct score *s)
{
	return s->target >= (double)s->max;
}

double score_nll(const struct score *s, const char *file, const struct windows *w, size_t row)
{
	double nll = log(s->sum) + (double)s->max - s->target;

	if (!isfinite(nll))
		die("%s: has the negative log-likelihood %s at %s: numbers of the model overflow", file,
			isnan(nll) ? "NaN" : "infinity", windows_place(w, row));
	return nll;
}
