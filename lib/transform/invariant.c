/* SPDX-License-Identifier: GPL-3.0-or-later */
/* invariant.c -- see invariant.h */
#include "transform/invariant.h"
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"

enum { FEW = 1 << 14 };		/* numbers, below which one thread is quicker */

static bool is_constant(const struct wide_norm *norm)
{
	for (size_t i = 1; i < norm->n; i++)
		if (norm->gain[i] < norm->gain[0] || norm->gain[i] > norm->gain[0])
			return false;
	return true;
}

const char *invariant_refusal(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm)
{
	if (at->use == NORM_POST && invariant_changes_norm(t, NULL))
		return "is a norm of the residual stream itself, behind the sum x + f(x): its gain cannot "
			"leave the stream, expected norms before the branches, or x + norm(f(x))";
	if (t->centre && at->use == NORM_PRE && norm->kind == NORM_RMS)
		return "is an RMS norm already, expected LayerNorm: a stream that RMS norms read keeps its "
			"mean";
	if (t->centre && at->use == NORM_PRE && residual_normed(at->stack))
		return "reads a stream that norms behind the branches add to: what they add has a mean, and "
			"their gains cannot be folded";
	if (t->turn && norm->kind == NORM_LAYER)
		return "is a LayerNorm, whose mean a rotation does not keep: ln2rms makes RMS norms";
	if (t->turn && at->use == NORM_BRANCH && !is_constant(norm))
		return "stands behind a branch and has another gain for each channel, which a rotation of "
			"the stream cannot pass";
	return NULL;
}

bool invariant_reads(const struct residual_layer *l)
{
	return l->columns == CHANNELS_RESIDUAL && !l->table;
}

bool invariant_changes_norm(const struct invariant *t, const struct wide_norm *norm)
{
	return t->fold || t->centre || t->turn || (norm && norm->factor);
}

bool invariant_changes(const struct invariant *t, const struct residual_layer *l,
	const struct wide_norm *norm)
{
	return invariant_changes_norm(t, invariant_reads(l) ? norm : NULL);
}

bool invariant_biased(const struct invariant *t, const struct residual_layer *l, const struct wide_norm *norm)
{
	return t->fold && invariant_reads(l) && norm && norm->shift;
}

bool invariant_by_rows(const struct residual_layer *l)
{
	return l->rows == CHANNELS_OWN;
}

static void fold(const struct wide_norm *norm, size_t m, size_t n, double w[m][n], double *bias)
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static)
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			if (norm->shift)
				bias[i] += w[i][j] * norm->shift[j];
			w[i][j] *= norm->gain[j];
		}
}

static void scale_columns(const double factor[], size_t m, size_t n, double w[m][n])
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			w[i][j] *= factor[j];
}

void invariant_scale(const double columns[], const double rows[], size_t m, size_t n, double w[m][n],
	double *bias)
{
	if (columns)
		scale_columns(columns, m, n, w);
	for (size_t i = 0; rows && i < m; i++)
		for (size_t j = 0; j < n; j++)
			w[i][j] /= rows[i];
	for (size_t i = 0; rows && bias && i < m; i++)
		bias[i] /= rows[i];
}

/* Takes the mean off each row. */
static void centre_rows(size_t m, size_t n, double w[m][n])
{
	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static)
	for (size_t i = 0; i < m; i++) {
		double mean = 0;

		for (size_t j = 0; j < n; j++)
			mean += w[i][j];
		mean /= (double)n;
		for (size_t j = 0; j < n; j++)
			w[i][j] -= mean;
	}
}

/* Takes the mean off each column, and off the bias. */
static void centre_columns(size_t m, size_t n, double w[m][n], double *bias)
{
	enum { COLUMNS = 64 };		/* at a time: rows of them are whole lines of the cache */

	#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static)
	for (size_t from = 0; from < n; from += COLUMNS) {
		const size_t end = n - from < COLUMNS ? n : from + COLUMNS;
		double mean[COLUMNS] = { 0 };

		for (size_t i = 0; i < m; i++)
			for (size_t j = from; j < end; j++)
				mean[j - from] += w[i][j] / (double)m;
		for (size_t i = 0; i < m; i++)
			for (size_t j = from; j < end; j++)
				w[i][j] -= mean[j - from];
	}
	if (bias)
		centre_rows(1, m, (double (*)[m])bias);
}

/* Columns, and from row l->first on rows. */
static void turn(const struct rotations *r, const struct residual_layer *l, size_t m, double w[m][l->in],
	double *bias)
{
	const struct rotation *columns = rotations_of(r, l->columns, l->in);
	const size_t n = l->rows == CHANNELS_OWN ? 0 : m - l->first;
	const struct rotation *rows = rotations_of(r, l->rows, n);

	if (columns)
		rotation_rows(columns, m, l->in, w);
	if (rows)
		rotation_columns(rows, n, l->in, &w[l->first]);
	if (rows && bias)
		rotation_rows(rows, 1, n, (double (*)[n])(bias + l->first));
}

void invariant_layer(const struct invariant *t, const struct residual_layer *l, const struct wide_norm *norm,
	size_t m, double w[m][l->in], double *bias)
{
	/* Behind an RMS norm the branch keeps its mean. */
	const bool adds = l->rows == CHANNELS_RESIDUAL && (!norm || norm->kind == NORM_LAYER);

	if (t->fold && invariant_reads(l) && norm)
		fold(norm, m, l->in, w, bias);
	if (invariant_reads(l) && norm && norm->factor)
		scale_columns(norm->factor, m, l->in, w);
	if (t->centre && l->table && !residual_normed(l->stack))
		centre_rows(m, l->in, w);
	if (t->centre && adds)
		centre_columns(m, l->in, w, bias);
	if (t->turn)
		turn(t->turn, l, m, w, bias);
}

size_t invariant_online(const struct invariant *t, const struct residual_layer *l)
{
	const struct rotation *r = rotations_of(t->turn, l->columns, l->in);

	return r && l->columns == CHANNELS_INNER ? r->h.block : 0;
}

void invariant_norm(const struct invariant *t, const struct residual_norm *at, struct wide_norm *norm)
{
	for (size_t i = 0; norm->factor && i < norm->n; i++) {
		norm->gain[i] /= norm->factor[i];
		if (norm->shift)
			norm->shift[i] /= norm->factor[i];
	}
	if (t->centre)
		norm->kind = NORM_RMS;
	if (t->turn && at->use == NORM_BRANCH && norm->shift)
		rotation_rows(&t->turn->residual, 1, norm->n, (double (*)[norm->n])norm->shift);
	if (!t->fold || at->use != NORM_PRE)
		return;
	for (size_t i = 0; i < norm->n; i++)
		norm->gain[i] = 1;
	free(norm->shift);
	norm->shift = NULL;
}
