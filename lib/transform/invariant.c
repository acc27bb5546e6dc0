/* SPDX-License-Identifier: GPL-3.0-or-later */
/* invariant.c -- see invariant.h */
#include "transform/invariant.h"
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"

enum { FEW = 1 << 14 };		/* numbers, up to which one thread is faster */

static bool is_constant(const struct wide_norm *norm)
{
	for (size_t i = 1; i < norm->n; i++)
		if (norm->gain[i] < norm->gain[0] || norm->gain[i] > norm->gain[0])
			return false;
	return true;
}

static bool changes_stream(const struct invariant *t, struct stream stream)
{
	return (t->fold || t->centre || t->rotations) && !t->unchanged[stream.index];
}

/* Whether the norm's gain and shift move into the layer. */
static bool folds(const struct invariant *t, const struct residual_layer *l, const struct wide_norm *norm)
{
	return t->fold && changes_stream(t, l->reads) && invariant_reads(l) && norm;
}

const char *invariant_refusal(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm)
{
	if (!changes_stream(t, at->stream))
		return NULL;
	if (at->use == NORM_POST)
		return "is a norm of the residual stream itself, after the sum x + f(x): its gain cannot "
			"be moved, expected norms before the residual branches, or x + norm(f(x))";
	if (t->centre && norm->kind == NORM_RMS)
		return "is an RMS norm already, expected LayerNorm: a stream that RMS norms read keeps its "
			"mean";
	if (t->centre && at->use == NORM_BRANCH && at->stream.normed && !is_constant(norm))
		return "adds to a stream that norms read, with a gain for each channel: its output has "
			"a mean, which cannot be removed";
	if (t->rotations && norm->kind == NORM_LAYER)
		return "is a LayerNorm, whose mean a rotation does not keep: ln2rms makes RMS norms";
	if (t->rotations && at->use == NORM_BRANCH && !is_constant(norm))
		return "is after a residual branch and has a gain for each channel: a rotation of the "
			"stream cannot be moved before it";
	return NULL;
}

const char *invariant_layer_refusal(const struct invariant *t, const struct residual_layer *l)
{
	if (t->centre && changes_stream(t, l->reads) && invariant_reads(l) && l->norm == RESIDUAL_NONE &&
		l->reads.normed)
		return "reads the stream without a norm, and so its mean, which would be removed: expected a "
			"norm before it";
	return NULL;
}

bool invariant_reads(const struct residual_layer *l)
{
	return l->columns == CHANNELS_RESIDUAL && !l->table;
}

bool invariant_changes_norm(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm)
{
	return changes_stream(t, at->stream) || norm->factor;
}

bool invariant_changes(const struct invariant *t, const struct residual_layer *l,
	const struct wide_norm *norm)
{
	return changes_stream(t, l->reads) || (l->rows == CHANNELS_RESIDUAL && changes_stream(t, l->adds)) ||
		(invariant_reads(l) && norm && norm->factor);
}

bool invariant_biased(const struct invariant *t, const struct residual_layer *l, const struct wide_norm *norm)
{
	return folds(t, l, norm) && norm->shift;
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
				bias[i] += w[i][j] * norm->shift[j % norm->n];
			w[i][j] *= norm->gain[j % norm->n];
		}
}

/* Multiplies columns by factors, which repeat every `each` columns. */
static void scale_columns(size_t each, const double factor[each], size_t m, size_t n, double w[m][n])
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			w[i][j] *= factor[j % each];
}

void invariant_scale(const double columns[], const double rows[], size_t m, size_t n, double w[m][n],
	double *bias)
{
	if (columns)
		scale_columns(n, columns, m, n, w);
	for (size_t i = 0; rows && i < m; i++)
		for (size_t j = 0; j < n; j++)
			w[i][j] /= rows[i];
	for (size_t i = 0; rows && bias && i < m; i++)
		bias[i] /= rows[i];
}

/* Subtracts the mean of each row. */
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

/* Subtracts the mean of each column, and of the bias. */
static void centre_columns(size_t m, size_t n, double w[m][n], double *bias)
{
	enum { COLUMNS = 64 };		/* at a time: a row of them is whole cache lines */

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

/* The rotation of the layer's columns; NULL: none. */
static const struct rotation *columns_rotation(const struct invariant *t, const struct residual_layer *l)
{
	return changes_stream(t, l->reads) ? rotations_of(t->rotations, l->columns, l->reads.index, l->in) :
		NULL;
}

/* Rotates columns, and rows from l->first on. */
static void rotate(const struct invariant *t, const struct residual_layer *l, size_t m, double w[m][l->in],
	double *bias)
{
	const struct stream to = l->rows == CHANNELS_RESIDUAL ? l->adds : l->reads;
	const struct rotation *columns = columns_rotation(t, l);
	const size_t n = l->rows == CHANNELS_OWN ? 0 : m - l->first;
	const struct rotation *rows = changes_stream(t, to) ?
		rotations_of(t->rotations, l->rows, to.index, n) : NULL;

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
	/* the output goes to a LayerNorm: one of the stream, or the one after the residual branch */
	const bool centred = t->centre && changes_stream(t, l->adds) &&
		(l->norm == RESIDUAL_NONE || invariant_reads(l) ? l->adds.normed : norm->kind == NORM_LAYER);

	if (folds(t, l, norm))
		fold(norm, m, l->in, w, bias);
	if (invariant_reads(l) && norm && norm->factor)
		scale_columns(norm->n, norm->factor, m, l->in, w);
	if (centred && l->table)
		centre_rows(m, l->in, w);
	if (centred && l->rows == CHANNELS_RESIDUAL)
		centre_columns(m, l->in, w, bias);
	if (t->rotations)
		rotate(t, l, m, w, bias);
}

size_t invariant_online(const struct invariant *t, const struct residual_layer *l)
{
	const struct rotation *r = columns_rotation(t, l);

	return r && l->columns == CHANNELS_INNER ? r->h.block : 0;
}

void invariant_norm(const struct invariant *t, const struct residual_norm *at, struct wide_norm *norm)
{
	for (size_t i = 0; norm->factor && i < norm->n; i++) {
		norm->gain[i] /= norm->factor[i];
		if (norm->shift)
			norm->shift[i] /= norm->factor[i];
	}
	if (!changes_stream(t, at->stream))
		return;
	if (t->centre)
		norm->kind = NORM_RMS;
	if (t->centre && at->use == NORM_BRANCH && at->stream.normed && norm->shift)
		centre_rows(1, norm->n, (double (*)[norm->n])norm->shift);
	if (t->rotations && at->use == NORM_BRANCH && norm->shift)
		rotation_rows(&t->rotations->residual[at->stream.index], 1, norm->n,
			(double (*)[norm->n])norm->shift);
	if (!t->fold || at->use != NORM_PRE)
		return;
	for (size_t i = 0; i < norm->n; i++)
		norm->gain[i] = 1;
	free(norm->shift);
	norm->shift = NULL;
}
