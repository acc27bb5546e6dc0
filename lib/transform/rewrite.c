/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rewrite.c -- see rewrite.h */
#include "transform/rewrite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/check.h"
#include "forward/norm.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/layer.h"

enum { ROWS = 1024 };		/* at a time, of a layer that can be changed by rows */

const char *const rewrite_types[] = { [HALF_NONE] = "f32", [HALF_F16] = "f16", [HALF_BF16] = "bf16", NULL };

struct filter rewrite_open(const char *path, const char *output)
{
	struct filter f = filter_open(path, "model", output, "model");

	filter_config(&f);
	if (!f.config)
		die("%s: /config: is missing; it determines which layers are changed", input_name(f.in));
	return f;
}

void rewrite_exclude_encoder(struct rewrite *r, const struct filter *f, bool encoder)
{
	option_without_effect(1, &(struct option_without_effect){ encoder && !f->config->vision.class,
		"language", "the model reads no images" });
	r->change.unchanged[0] |= encoder && f->config->vision.class;
}

static double *widen_vector(size_t n, const float *x)
{
	double *y = x ? xalloc(n, sizeof *y) : NULL;

	for (size_t i = 0; x && i < n; i++)
		y[i] = (double)x[i];
	return y;
}

static struct wide_norm read_norm(const struct part *part, const struct residual_norm *at)
{
	struct norm norm = norm_read(part, at->path, at->stack, at->stack->hidden);
	struct wide_norm y = { .kind = norm.kind, .n = norm.n, .gain = widen_vector(norm.n, norm.gain),
		.shift = widen_vector(norm.n, norm.shift) };

	norm_free(&norm);
	return y;
}

static void write_vector(struct output *out, const char *path, const char *name, size_t n, const double x[n])
{
	float *y = xalloc(n, sizeof *y);

	half_narrow_double(n, y, x, HALF_NONE);
	layer_put(out, path, name, tensor_1d(TENSOR_F32, y, n));
	free(y);
}

static void write_norm(struct output *out, const struct part *part, const struct residual_norm *at,
	struct wide_norm *norm)
{
	static const char *const kinds[] = { [NORM_RMS] = "rms", [NORM_LAYER] = "layer" };
	static const char *const ours[] = { "weight", "bias", NULL };

	output_copy(out, part, at->path, ours);
	for (size_t i = 0; i < norm->n; i++)
		norm->gain[i] -= (double)at->stack->arch->norm_offset;
	write_vector(out, at->path, "weight", norm->n, norm->gain);
	if (norm->shift)
		write_vector(out, at->path, "bias", norm->n, norm->shift);
	if (norm->kind != at->stack->arch->norm_kind)
		output_text(out, at->path, "norm", kinds[norm->kind]);
}

static void check_layer(const struct rewrite *r, const struct part *part, const struct layer *l)
{
	const enum input_mode mode = l->linear.input.mode;

	if (!l->linear.weight)
		die("%s: %s: is quantized already, expected a plain weight: run %s first", part_name(part),
			l->path, program);
	if (l->linear.rotation_in.hadamard && r->change.rotations)
		die("%s: %s: has an online Hadamard already, expected a model that is not rotated",
			part_name(part), l->path);
	if (linear_two_sided(&l->linear))
		die("%s: %s: has %s, expected a layer without", part_name(part), l->path,
			linear_two_sided(&l->linear));
	if (l->linear.splits)
		die("%s: %s: has split columns, expected a layer before rms-suppress", part_name(part),
			l->path);
	if (l->linear.branch_a)
		die("%s: %s: has a branch, which reads the same input, expected a layer before fbq-run",
			part_name(part), l->path);
	if (r->settings && (mode == INPUT_STATIC_TENSOR || mode == INPUT_STATIC_MODALITY))
		die("%s: %s/act_scale: would not fit the inputs, which change; calibrate the "
			"result", part_name(part), l->path);
}

/* A layer and its changes: its norm, and the factors between it and another layer. */
struct change {
	const struct residual_layer *at;
	const struct wide_norm *norm;	/* NULL: none */
	const double *columns, *rows;	/* [in], [out - at->first] of the last rows; NULL: none */
	double *outputs;		/* [out]; NULL: none */
	bool finish;
};

static void scale(const struct change *c, size_t first, size_t m, double w[m][c->at->in], double *bias)
{
	const size_t own = c->rows && first < c->at->first ? min(c->at->first - first, m) : 0;
	const double *rows = c->rows ? c->rows + (first + own - c->at->first) : NULL;

	invariant_scale(c->columns, NULL, own, c->at->in, w, NULL);
	invariant_scale(c->columns, rows, m - own, c->at->in, w + own, bias ? bias + own : NULL);
	invariant_scale(NULL, c->outputs ? c->outputs + first : NULL, m, c->at->in, w, bias);
}

/* Changes rows [first, first + m) of the layer, and writes them to the same rows of y. */
static void change_rows(const struct rewrite *r, const struct filter *f, const struct change *c,
	const struct linear *l, size_t first, size_t m, void *y, double *bias)
{
	const struct residual_layer *at = c->at;
	const size_t n = l->in;
	double *w = xalloc(m * n, sizeof *w);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < m; i++) {
		float *row = xalloc(n, sizeof *row);

		half_widen(n, row, (const char *)l->weight + (first + i) * n * half_size(l->weight_type),
			l->weight_type);
		for (size_t j = 0; j < n; j++)
			w[i * n + j] = (double)row[j];
		free(row);
	}
	invariant_layer(&r->change, at, c->norm, m, (double (*)[n])w, bias ? bias + first : NULL);
	scale(c, first, m, (double (*)[n])w, bias ? bias + first : NULL);
	if (c->finish)
		r->finish(r->arg, f->part, at, &(struct rewrite_factors){ c->columns ? c->columns :
			invariant_reads(at) && c->norm ? c->norm->factor : NULL, c->rows },
			(double (*)[n])w);
	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < m; i++)
		half_narrow_double(n, (char *)y + (first + i) * n * half_size(r->dtype), w + i * n,
			r->dtype);
	free(w);
}

/* Changes a layer that is a single row (vector). */
static void change_vector(const struct rewrite *r, const struct filter *f, const struct change *c)
{
	const struct residual_layer *at = c->at;
	float *x = layer_vector(f->part, at->path, at->in), *y;
	double *w = widen_vector(at->in, x);

	if (!x)
		die("%s: %s: is missing", part_name(f->part), at->path);
	invariant_layer(&r->change, at, c->norm, 1, (double (*)[at->in])w, NULL);
	half_narrow_double(at->in, y = xalloc(at->in, sizeof *y), w, HALF_NONE);
	output_write(f->out, at->path, tensor_1d(TENSOR_F32, y, at->in));
	free(x), free(w), free(y);
}

static void change_layer(const struct rewrite *r, const struct filter *f, const struct change *c)
{
	static const char *const ours[] = { "weight", "bias", NULL };
	const struct residual_layer *at = c->at;
	struct layer layer = layer_read(f->part, at->path, at->out, at->in);
	struct linear *l = &layer.linear;
	const size_t out = l->out, tile = invariant_by_rows(at) && !c->finish ? min(ROWS, out) : out;
	void *y = xalloc(out * l->in, half_size(r->dtype));
	double *bias = widen_vector(out, l->bias);
	float *rounded = NULL;

	check_layer(r, f->part, &layer);
	if (!bias && invariant_biased(&r->change, at, c->norm))
		bias = xalloc(out, sizeof *bias);
	for (size_t i = 0; i < out; i += tile)
		change_rows(r, f, c, l, i, min(tile, out - i), y, bias);
	if (bias)
		half_narrow_double(out, rounded = xalloc(out, sizeof *rounded), bias, HALF_NONE);
	l->weight = y;
	l->weight_type = r->dtype;
	l->bias = rounded;
	if (r->change.rotations)
		l->rotation_in.hadamard = invariant_online(&r->change, at);
	if (!half_finite(out * l->in, y, r->dtype) || (bias && !half_finite(out, rounded, HALF_NONE)))
		die("%s: %s: overflows %s", part_name(f->part), at->path, rewrite_types[r->dtype]);
	output_copy(f->out, f->part, at->path, ours);
	layer_write(f->out, NULL, at->path, l);
	free(y), free(bias), free(rounded);
	layer_free(&layer);
}

/* Steps of a part, for the progress. Norms and sources count if their functions are set. */
static size_t steps(const struct rewrite *r, const struct residual *here)
{
	return (r->norm ? here->norms : 0) + (r->source ? 2 : 1) * here->layers;
}

/* Reads the part's norms and their factors. A norm that makes the change impossible is a fatal error. */
static struct wide_norm *read_norms(const struct rewrite *r, const struct filter *f,
	const struct residual *here)
{
	struct wide_norm *norm = xalloc(here->norms, sizeof *norm);

	for (size_t i = 0; i < here->norms; i++) {
		const char *why;

		if (r->norm)
			progress_part(here->norm[i].path, part_index(f->part), part_count(f->part), i,
				steps(r, here));
		norm[i] = read_norm(f->part, &here->norm[i]);
		why = invariant_refusal(&r->change, &here->norm[i], &norm[i]);
		if (why)
			die("%s: %s: %s", part_name(f->part), here->norm[i].path, why);
		if (r->norm && here->norm[i].use == NORM_PRE)
			r->norm(r->arg, f->part, here, i, &norm[i]);
	}
	return norm;
}

/* The new basis depends on the settings and on the streams that are not changed. */
static void write_basis(const struct rewrite *r, const struct filter *f)
{
	char *before, *after, *settings;

	if (!r->settings) {
		basis_copy(f->out, f->part);
		return;
	}
	before = basis_of(f->part);
	settings = xformat("%s leave=%d,%d %s", program, r->change.unchanged[0],
		r->change.unchanged[f->config->stacks - 1], r->settings);
	after = basis_change(before, settings, r->second);
	basis_write(f->out, after);
	free(before), free(after), free(settings);
}

/* Begins a part of the result. The first part gets the attributes of the change. */
static void begin_part(const struct rewrite *r, const struct filter *f)
{
	char *rotated = part_index(f->part) ? NULL : part_text(f->part, "/", "rotated");

	if (r->rotated && rotated)
		die("%s: is rotated already (%s), expected a model before rotation", part_name(f->part),
			rotated);
	free(rotated);
	output_begin(f->out, f->part);
	if (part_index(f->part))
		return;
	write_basis(r, f);
	calibrated_write(f->out, 2, (const struct part *[]){ f->part, r->second }, r->calibration);
	if (r->second)
		output_history(f->out, r->second_name, r->second);
	if (r->rotated)
		output_text(f->out, "/", "rotated", r->rotated);
}

/* A part without layers and norms. */
static void pass_part(const struct rewrite *r, const struct filter *f)
{
	if (part_index(f->part)) {
		output_pass(f->out, f->part);
		return;
	}
	begin_part(r, f);
	output_rest(f->out, f->part, NULL);
	output_end(f->out);
}

/* Writes the attribute kv_hadamard of the attention of the part's blocks. */
static void rotate_keys(const struct filter *f, const struct residual *here, size_t order)
{
	for (const struct residual_layer *l = here->layer; l < here->layer + here->layers; l++) {
		const bool cached = l->rows == CHANNELS_VALUE && !l->stack->arch->bidirectional;
		char *path = cached ? xformat("%s", l->path) : NULL;

		if (path) {
			*strrchr(path, '/') = 0;
			output_integer(f->out, path, "kv_hadamard", (int64_t)order);
		}
		free(path);
	}
}

/* The divisors of the outputs of each layer's source; NULL: none. */
static double **read_sources(const struct rewrite *r, const struct filter *f, const struct residual *here)
{
	double **factor = xalloc(here->layers, sizeof *factor);

	for (size_t i = 0; r->source && i < here->layers; i++) {
		progress_part(here->layer[i].path, part_index(f->part), part_count(f->part),
			here->norms + i, steps(r, here));
		if (here->layer[i].source != RESIDUAL_NONE)
			factor[i] = r->source(r->arg, f->part, here, i);
	}
	return factor;
}

/* The divisors of the layer's inputs. */
static double *input_divisors(const struct residual_layer *l, const double output[])
{
	double *y = xalloc(l->in, sizeof *y);

	for (size_t j = 0; j < l->in; j++)
		y[j] = output[residual_channel(l, j)];
	return y;
}

static void change_layers(const struct rewrite *r, const struct filter *f, const struct residual *here,
	const struct wide_norm *norm)
{
	double **divisor = read_sources(r, f, here), **columns = xalloc(here->layers, sizeof *columns);
	const double **rows = xalloc(here->layers, sizeof *rows);

	for (size_t i = 0; i < here->layers; i++)
		if (divisor[i]) {
			rows[here->layer[i].source] = divisor[i];
			columns[i] = input_divisors(&here->layer[i], divisor[i]);
		}
	for (size_t i = 0; i < here->layers; i++) {
		const struct residual_layer *l = &here->layer[i];
		const struct change c = { l, l->norm < 0 ? NULL : &norm[l->norm], columns[i], rows[i],
			r->outputs ? r->outputs(r->arg, f->part, here, i) : NULL,
			r->finish && r->needs_finish(r->arg, l) };

		progress_part(l->path, part_index(f->part), part_count(f->part),
			steps(r, here) - here->layers + i, steps(r, here));
		const char *why = invariant_layer_refusal(&r->change, l);

		if (why)
			die("%s: %s: %s", part_name(f->part), l->path, why);
		if (c.columns || c.rows || c.outputs || c.finish || invariant_changes(&r->change, l, c.norm))
			(l->vector ? change_vector : change_layer)(r, f, &c);
		free(c.outputs);
	}
	for (size_t i = 0; i < here->layers; i++)
		free(divisor[i]), free(columns[i]);
	free(divisor), free(columns), free(rows);
}

static void change_part(const struct rewrite *r, const struct filter *f, const struct residual *here)
{
	struct wide_norm *norm;

	if (r->begin)
		r->begin(r->arg, f, here);
	norm = read_norms(r, f, here);
	begin_part(r, f);
	change_layers(r, f, here, norm);
	for (size_t i = 0; i < here->norms; i++) {
		const bool changes = invariant_changes_norm(&r->change, &here->norm[i],
			&norm[i]);

		invariant_norm(&r->change, &here->norm[i], &norm[i]);
		if (changes)
			write_norm(f->out, f->part, &here->norm[i], &norm[i]);
		free(norm[i].gain), free(norm[i].shift), free(norm[i].factor);
	}
	output_rest(f->out, f->part, NULL);
	if (r->change.rotations && r->change.rotations->keys)
		rotate_keys(f, here, r->change.rotations->keys);
	output_end(f->out);
	free(norm);
}

static void rewrite_part(void *arg, const struct filter *f)
{
	struct residual here = residual_of(f->part, f->config);

	if (here.layers || here.norms)
		change_part(arg, f, &here);
	else
		pass_part(arg, f);
	residual_free(&here);
}

void rewrite_filter(const struct rewrite *r, struct filter *f, bool check)
{
	struct rewrite own = *r;

	check_filter(f, rewrite_part, &own, check,
		r->dtype == HALF_NONE && !r->finish ? CHECK_MAX : INFINITY);
}
