/* SPDX-License-Identifier: GPL-3.0-or-later */
/* correct.c -- see correct.h */
#include "solver/correct.h"
#include <string.h>
#include "base/size.h"
#include "base/thread.h"
#include "num/cholesky.h"
#include "num/linalg.h"
#include "solver/factor.h"

enum { FEW = 1 << 16 };		/* numbers, up to which one thread is faster */

/* The workspace: P, the factor, the column order. */
size_t correct_workspace(size_t n)
{
	return 2 * n * n * sizeof(double) + n * sizeof(int32_t);
}

size_t correct_buffer(size_t n, size_t m)
{
	return 2 * m * n * sizeof(double) + n * sizeof(float);
}

/* The lower triangle of H + λ I in the order of the columns. */
static void fill(const struct correction *c, double ridge, double *a)
{
	const size_t n = c->live;

	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(dynamic, 16)
	for (size_t i = 0; i < n; i++) {
		const float *row = c->h + (size_t)c->column[i] * c->n;

		for (size_t j = 0; j <= i; j++)
			a[i * n + j] = (double)row[c->column[j]];
		a[i * n + i] += ridge;
	}
}

/* p = C. */
static void subtract(const struct correction *c)
{
	const size_t n = c->live;

	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(static)
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const size_t at = (size_t)c->column[i] * c->n + (size_t)c->column[j];

			c->p[i * n + j] = (double)c->cross[at] - (double)c->h[at];
		}
}

/* P_a, in the last column of p, and its effect on the others. */
static void take_alone(const struct correction *c)
{
	const size_t n = c->live, last = n - 1;
	const float *h = c->h + (size_t)c->alone * c->n;

	#pragma omp parallel for num_threads(threads) if (n * n > FEW) schedule(static)
	for (size_t i = 0; i < n; i++) {
		double *row = c->p + i * n;

		row[last] /= (double)h[c->alone];
		for (size_t j = 0; j < last; j++)
			row[j] -= row[last] * (double)h[c->column[j]];
	}
}

enum status correct_make(struct correction *c, void *workspace, size_t *index)
{
	const size_t n = c->n;
	double *factor = (double *)workspace + n * n, mean;
	size_t failed = 1, solved;
	bool alone = false;

	c->p = workspace;
	c->column = (void *)(factor + n * n);
	c->live = factor_columns(n, c->column, c->h, NULL);
	for (size_t i = 0; i < c->live && !alone; i++)
		if ((size_t)c->column[i] == c->alone) {
			c->column[i] = c->column[c->live - 1];
			c->column[c->live - 1] = (int32_t)c->alone;
			alone = true;
		}
	mean = factor_mean(n, c->live, c->h, c->column);
	for (size_t i = 0; failed && i < FACTOR_STEPS; i++) {
		c->lambda = c->damp * factor_ladder[i];
		fill(c, c->lambda * mean, factor);
		failed = cholesky_factor(c->live, (double (*)[c->live])factor);
	}
	if (failed) {
		*index = (size_t)c->column[failed - 1];
		return STATUS_NOT_POSITIVE;
	}
	subtract(c);
	if (alone)
		take_alone(c);
	solved = c->live - alone;	/* the leading part of the factor is that of the rest */
	cholesky_solve(solved, c->live, (const double (*)[c->live])factor, c->live, c->live,
		(double (*)[c->live])c->p);
	return STATUS_DONE;
}

void correct_apply(const struct correction *c, double share, size_t m, float w[m][c->n], double buffer[])
{
	const size_t n = c->live;
	double *from = buffer, *by = buffer + m * n;
	float *live = (void *)(by + m * n);

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			from[i * n + j] = (double)w[i][c->column[j]];
	if (n)
		linalg_product_double(m, n, n, n, (double (*)[n])by, n, (const double (*)[n])from,
			(const double (*)[n])c->p);
	for (size_t i = 0; i < m; i++) {
		for (size_t j = 0; j < n; j++)
			live[j] = (float)(from[i * n + j] + share * by[i * n + j]);
		memset(w[i], 0, c->n * sizeof *w[i]);
		for (size_t j = 0; j < n; j++)
			w[i][c->column[j]] = live[j];
	}
}
