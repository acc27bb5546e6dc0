/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bit_plan.c -- see bit_plan.h */
#include "eval/bit_plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/knapsack.h"

enum { SUMS = 1 << 20 };		/* partial sums that the search keeps: 32 MiB a unit */

static struct knapsack knapsack_of(const struct units *u, const double kl[], uint64_t budget)
{
	return (struct knapsack){ u->n, u->candidates, u->size, kl, budget, SUMS };
}

/* Bytes of the model whose units have these bits. */
static double bytes_of(const struct units *u, double bits)
{
	return (bits + u->other) / 8;
}

/* Bits per weight, rounded up to the four decimals that are printed: enough as a --target-bits. */
static double per_weight(const struct units *u, double bits)
{
	return ceil(bits / u->weights * 1e4) / 1e4;
}

uint64_t bit_plan_budget(const struct units *u, double bits, size_t bytes)
{
	const double budget = bits < 0 ? 8 * (double)bytes - u->other : bits * u->weights;
	const struct knapsack k = knapsack_of(u, NULL, 0);
	const double least = (double)knapsack_least(&k);

	if (budget < 0)
		die("%s: has %.0f bytes outside of the layers of the plan, --target-size is %zu",
			part_name(u->model), u->other / 8, bytes);
	if (budget < least)
		die("the smallest candidates have %.4f bits per weight and %.0f bytes with the rest of the "
			"model, more than the target", per_weight(u, least), bytes_of(u, least));
	return (uint64_t)fmin(budget, 0x1p62);	/* more than any model has */
}

struct bit_plan bit_plan_make(const struct units *u, const double kl[], uint64_t budget)
{
	const struct knapsack k = knapsack_of(u, kl, budget);
	struct bit_plan p = { .candidate = xalloc(u->n, sizeof *p.candidate) };

	if (!knapsack_solve(&k, p.candidate, &p.kl, &p.bound))
		die("no plan has as few bits as the target");	/* bit_plan_budget() finds it first */
	return p;
}

void bit_plan_free(struct bit_plan *p)
{
	free(p->candidate);
}

static void print_comments(const struct bit_plan *p, const struct units *u,
	const struct measured_kl *measured)
{
	double bits = 0;

	for (size_t i = 0; i < u->n; i++)
		bits += (double)u->size[i * u->candidates + p->candidate[i]];
	printf("# plan-bits: %.4f bits per weight, %.0f bytes with the rest of the model\n",
		per_weight(u, bits), bytes_of(u, bits));
	printf("# KL %.4g predicted", p->kl);
	if (measured && isnan(measured->se))	/* one window */
		printf(", %.4g measured on %zu tokens", measured->kl, measured->tokens);
	else if (measured)
		printf(", %.4g ± %.2g measured on %zu tokens", measured->kl, measured->se, measured->tokens);
	if (p->bound < p->kl)
		printf("; lower bound %.4g\n", p->bound);
	else
		printf("; optimal\n");
}

void bit_plan_print(const struct bit_plan *p, const struct units *u, const double kl[],
	const struct measured_kl *measured)
{
	print_comments(p, u, measured);
	/* Layers without a line would get the options of dpq-run's command line. */
	printf("* keep\n");
	for (size_t i = 0; i < u->n; i++) {
		const size_t c = p->candidate[i];
		char *note = xformat("%s, KL %.3g", part_name(u->candidate[c]), kl[i * u->candidates + c]);
		char *lines;

		for (char *end = note; (end = strchr(end, '\n')); )
			*end = '?';	/* in the name of a file */
		lines = unit_lines(u, i, c, note);
		fputs(lines, stdout);
		free(note), free(lines);
	}
	if (fflush(stdout) || ferror(stdout))
		die("<stdout>: cannot write:");
}
