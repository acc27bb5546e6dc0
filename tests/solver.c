/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * solver -- the error-compensated solver against its equations in plain float64 loops (solver_reference.h)
 */
#include <lapacke.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "amx.h"
#include "base/thread.h"
#include "case.h"
#include "device/device_open.h"
#include "num/linalg.h"
#include "quant/linear.h"
#include "solver/order.h"
#include "solver/solver.h"
#include "solver_reference.h"

/* --- data: correlated activations with outlier channels, weights with outliers, dead channels --- */

static uint64_t state;

static double uniform(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return ((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(void)
{
	double u = uniform();

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * uniform());
}

static struct data make(size_t m, size_t n, size_t tokens, size_t dead)
{
	struct data d = { m, n, malloc(m * n * sizeof(float)), malloc(n * n * sizeof(float)) };
	double *sum = calloc(n * n, sizeof *sum), *x = malloc(n * sizeof *x),
		*gain = malloc(n * sizeof *gain);

	state = 1000 * n + m;
	for (size_t i = 0; i < n; i++)
		gain[i] = exp(normal() * 0.8);
	for (size_t i = 0; i < dead; i++)
		gain[(i * 37 + 5) % n] = 0;
	for (size_t t = 0; t < tokens; t++) {
		double common = normal(), last = 0;

		for (size_t i = 0; i < n; i++) {
			last = 0.6 * last + 0.8 * normal();
			x[i] = gain[i] * (last + 0.3 * common);
		}
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < n; k++)
				sum[i * n + k] += x[i] * x[k];
	}
	for (size_t i = 0; i < n * n; i++)
		d.h[i] = (float)sum[i];
	for (size_t i = 0; i < m * n; i++)
		d.w[i] = (float)(0.02 * normal() * (uniform() < 0.01 ? 5 : 1));
	free(sum);
	free(x);
	free(gain);
	return d;
}

static void drop(struct data *d)
{
	free(d->w);
	free(d->h);
}

/* --- the solver, and comparison of its result --- */

static const struct device *device;	/* of all layers; NULL: the processor */

static struct solver_layer layer_for(const struct solver *s, const struct data *d, const struct linear *l,
	const int32_t *order, struct result *a)
{
	a->made = solver_codes(s, d->m, d->n);
	codes_lay_out(&a->made, NULL);
	a->made.codes = a->codes, a->made.scale = a->scale;
	a->made.zero = s->storage.asymmetric ? a->zero : NULL;
	a->made.scale8 = s->compute.kind ? a->scale8 : NULL;
	a->made.group_index = a->index;
	return (struct solver_layer){ .weight = l, .settings = s, .h = d->h, .order = order,
		.device = device, .codes = &a->made };
}

static enum status solve(const struct solver *s, const struct data *d, const int32_t *order,
	struct result *a)
{
	const struct linear l = { .out = d->m, .in = d->n, .weight = d->w };
	struct solver_layer layer = layer_for(s, d, &l, order, a);
	size_t bytes = solver_workspace(1, &layer);
	void *work = malloc(bytes);

	memset(work, 0xff, bytes);	/* the result must not depend on old contents of memory */
	solver_run(1, &layer, work);
	free(work);
	a->report = layer.report;
	a->scale_tensor = a->made.scale_tensor;
	a->moved = a->made.needs_group_index;
	return layer.report.status;
}

static struct result run(const struct solver *s, const struct data *d, const int32_t *order)
{
	struct result a = result_new(s, d->m, d->n);

	assert_int_equal(solve(s, d, order, &a), STATUS_DONE);
	return a;
}

static struct linear layer_of(const struct solver *s, const struct data *d, const struct result *a)
{
	return (struct linear){
		.out = d->m, .in = d->n, .codes = a->codes, .scale = a->scale,
		.zero = s->storage.asymmetric ? a->zero : NULL, .storage = s->storage, .group = s->group,
		.groups = a->groups, .group_index = a->moved ? a->index : NULL, .compute = s->compute,
		.saturate = s->saturate, .scale8 = a->scale8, .scales8 = s->scale8_channel ? d->m : 1,
		.scale_tensor = s->storage.scales == SCALE_E4M3FN ? &a->scale_tensor : NULL,
	};
}

/* The report, computed again from the members of a file. */
static void check_report(const struct solver *s, const struct data *d, const struct result *a)
{
	const size_t m = d->m, n = d->n;
	const struct linear l = layer_of(s, d, a);
	float (*y)[n] = malloc(m * sizeof *y);
	double top = 0, bottom = 0, mse = 0;

	linear_weight(&l, 0, m, y);
	for (size_t r = 0; r < m; r++) {
		const float *w = d->w + r * n;

		for (size_t i = 0; i < n; i++) {
			double he = 0, hw = 0;

			for (size_t k = 0; k < n; k++) {
				he += (double)d->h[i * n + k] * ((double)w[k] - y[r][k]);
				hw += (double)d->h[i * n + k] * w[k];
			}
			top += he * ((double)w[i] - y[r][i]);
			bottom += hw * w[i];
			mse += ((double)w[i] - y[r][i]) * ((double)w[i] - y[r][i]);
		}
	}
	assert_true(fabs(a->report.error / (top / bottom) - 1) < 2e-3);
	assert_true(fabs(a->report.mse / (mse / (double)(m * n)) - 1) < 1e-4);
	free(y);
}

static double worst, total_equal, total_codes;
/* close: max relative difference of scales. far: max fraction of scales that differ by more although no
 * different code explains it. */
static struct { double close, far; } tolerance = { 1e-5, 0 };
static int cases;

/* The groups of a row whose columns, in the order of the sweep, end at or after the first different code. */
static void mark_after(bool *after, const struct data *d, const int32_t *order, const int32_t *index,
	const uint8_t *want, const uint8_t *got)
{
	bool differs = false;

	for (size_t i = 0; i < d->n; i++) {
		const size_t c = order ? (size_t)order[i] : i;

		if (d->h[c * d->n + c] == 0)
			continue;
		differs |= want[c] != got[c];
		if (differs)
			after[index[c]] = true;
	}
}

/* The groups whose weights, rounded to the compute format, are the same by both scales. */
static void mark_same(bool *same, const struct solver *s, const struct data *d, const struct result *want,
	const struct result *got)
{
	const size_t m = d->m, n = d->n;
	const struct linear a = layer_of(s, d, want), b = layer_of(s, d, got);
	float (*x)[n] = malloc(m * sizeof *x), (*y)[n] = malloc(m * sizeof *y);

	linear_weight(&a, 0, m, x);
	linear_weight(&b, 0, m, y);
	for (size_t i = 0; i < m * want->groups; i++)
		same[i] = true;
	for (size_t r = 0; r < m; r++)
		for (size_t c = 0; c < n; c++)
			same[r * want->groups + (size_t)want->index[c]] &= x[r][c] == y[r][c];
	free(x);
	free(y);
}

/*
 * A weight within rounding of a tie may get the other code, and BLAS rounds by its kernels. Later columns of
 * its row are then compensated for another error, by up to a step. Later groups have other weights and other
 * scales, and no bound holds for them except that on codes. The same is true for the group itself if the tie
 * was in its search. Scales before the first different code come from the same weights. They are equal except
 * for rounding, which at a tie of their type gives the next scale. Scales from which the compute format
 * rounds all codes of a group to the same values cost the same: which of them is taken depends on rounding.
 */
static void compare_scales(const char *what, const struct solver *s, const struct data *d,
	const int32_t *order, const struct result *want, const struct result *got)
{
	const size_t scales = s->group == -1 ? 1 : d->m * want->groups;
	const double step = s->storage.scales == SCALE_F32 ? 0 : scale_kinds[s->storage.scales].step;
	bool *after = calloc(scales, sizeof *after), *same = calloc(scales, sizeof *same);
	size_t excused = 0, next = 0, far = 0;

	for (size_t r = 0; s->group != -1 && r < d->m; r++)
		mark_after(after + r * want->groups, d, order, want->index, want->codes + r * d->n,
			got->codes + r * d->n);
	if (s->group != -1 && s->compute.kind)
		mark_same(same, s, d, want, got);
	for (size_t i = 0; i < scales; i++) {
		const double apart = fabs((double)got->scale[i] - want->scale[i]) / want->scale[i];

		if (apart < tolerance.close && (!s->storage.asymmetric || got->zero[i] == want->zero[i]))
			continue;
		if (after[i] || same[i])
			excused++;
		else if (apart < 1.001 * step)
			next++;
		else
			far++;
	}
	if (getenv("VERBOSE") || far)
		fprintf(stderr, "# %s: of %zu scales %zu are excused, %zu differ by a step, %zu by more\n",
			what, scales, excused, next, far);
	free(after);
	free(same);
	assert_true((double)far <= tolerance.far * (double)scales);
	assert_true((double)next <= 2e-3 * (double)scales + 1);
}

static void compare_results(const char *what, const struct solver *s, const struct data *d,
	const int32_t *order, const struct result *want, const struct result *got)
{
	size_t equal = 0, rows = 0, size = d->m * d->n;
	double rate;

	for (size_t i = 0; i < size; i++)
		equal += want->codes[i] == got->codes[i];
	for (size_t r = 0; r < d->m; r++)
		rows += memcmp(want->codes + r * d->n, got->codes + r * d->n, d->n) != 0;
	rate = 1 - (double)equal / (double)size;
	if (getenv("VERBOSE") || rate >= 1e-3)
		fprintf(stderr, "# %-60s %6zu of %zu codes differ\n", what, size - equal, size);
	worst = fmax(worst, rate);
	total_equal += (double)equal;
	total_codes += (double)size;
	cases++;
	/* A weight within rounding of a tie may get the other code, and then later columns of its row may
	 * differ. */
	assert_true(rate < 1e-3 || rows <= 1);
	compare_scales(what, s, d, order, want, got);
	assert_true(got->scale_tensor == want->scale_tensor);
	assert_int_equal(got->report.dead, want->report.dead);
	assert_int_equal(got->moved, want->moved);
	assert_true(s->compensate == COMPENSATE_NONE || got->report.lambda == want->report.lambda);
	assert_memory_equal(got->index, want->index, d->n * sizeof *got->index);
	if (s->compute.kind)
		for (size_t i = 0; i < (s->scale8_channel ? d->m : 1); i++)
			assert_true(got->scale8[i] == want->scale8[i]);
	check_report(s, d, got);
}

static void compare(const char *what, const struct solver *s, const struct data *d, const int32_t *order)
{
	struct result want = result_new(s, d->m, d->n), got;

	CASE("%s", what);
	assert_true(reference(s, d, order, &want));
	got = run(s, d, order);
	compare_results(what, s, d, order, &want, &got);
	result_free(&want);
	result_free(&got);
}

static struct solver setting(const char *storage, const char *compute, long group, enum recipe recipe)
{
	struct solver s = { .group = group, .damp = 0.01 };

	assert_true(format_parse(&s.storage, storage));
	if (compute)
		assert_true(format_parse(&s.compute, compute));
	solver_recipe(&s, recipe);
	return s;
}

/* Columns by descending diagonal element of H. */
static int32_t *ordered(const struct data *d, enum order_kind kind, enum order_key key, size_t group)
{
	int32_t *order = malloc(d->n * sizeof *order);
	float *diag = malloc(d->n * sizeof *diag);
	void *work = malloc(order_workspace(d->n));

	for (size_t i = 0; i < d->n; i++)
		diag[i] = d->h[i * d->n + i];
	assert_int_equal(order_columns(d->n, order, diag, kind, key, group, work), 0);
	free(diag);
	free(work);
	return order;
}

static const char *const computes[] = { NULL, "e4m3fn", "e4m3ieee" };

static void methods(void **unused)
{
	struct data d = make(96, 320, 400, 7);
	char what[128];

	(void)unused;
	for (size_t c = 0; c < 3; c++)
		for (int r = RECIPE_LATE; r <= RECIPE_INC; r++)
			for (int k = COMPENSATE_BOTH; k <= COMPENSATE_NONE; k++) {
				struct solver s = setting("uint4", computes[c], 128, (enum recipe)r);

				s.compensate = (enum compensate)k;
				sprintf(what, "compute %s recipe %s compensate %s",
					computes[c] ? computes[c] : "none", recipes[r], compensates[k]);
				compare(what, &s, &d, NULL);
			}
	drop(&d);
}

static void orders(void **unused)
{
	struct data d = make(64, 256, 400, 9);
	char what[128];

	(void)unused;
	for (size_t c = 0; c < 2; c++)
		for (int r = RECIPE_LATE; r <= RECIPE_INC; r++) {
			struct solver s = setting("uint4", computes[c], 32, (enum recipe)r);

			for (int key = ORDER_MAX; key <= ORDER_TOP10; key++) {
				int32_t *order = ordered(&d, ORDER_GAR, (enum order_key)key, 32);

				sprintf(what, "gar %s compute %zu recipe %s", order_keys[key], c, recipes[r]);
				compare(what, &s, &d, order);
				free(order);
			}
			for (int fixed = 0; fixed < 2; fixed++) {
				CASE("fixed %d", fixed);
				int32_t *order = ordered(&d, ORDER_FULL, ORDER_MAX, 0);

				s.static_groups = fixed;
				sprintf(what, "full%s compute %zu recipe %s", fixed ? " static" : "", c,
					recipes[r]);
				compare(what, &s, &d, order);
				free(order);
			}
		}
	drop(&d);
}

static void groups(void **unused)
{
	static const long sizes[] = { 32, 96, 128, 160, 48, 1000, 0, -1 };
	struct data d = make(64, 320, 500, 5);
	char what[128];

	(void)unused;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t c = 0; c < 3; c += 2)
			for (int view = VIEW_EXACT; view <= VIEW_ORIGINAL; view++)
				for (int kind = ORDER_NONE; kind <= ORDER_GAR; kind++) {
					struct solver s = setting("uint4", computes[c],
						sizes[i], RECIPE_LATE);
					int32_t *order = ordered(&d, (enum order_kind)kind, ORDER_MAX,
						sizes[i] > 0 ? (size_t)sizes[i] : 0);

					s.group_view = (enum group_view)view;
					s.search = view == VIEW_BLOCK ? SEARCH_MINMAX : SEARCH_MSE;
					sprintf(what, "group %ld compute %zu view %s order %s", sizes[i], c,
						group_views[view], order_kinds[kind]);
					compare(what, &s, &d, order);
					free(order);
				}
	drop(&d);
}

static void formats(void **unused)
{
	static const char *const names[] = {
		"uint1", "uint2", "uint3", "uint4", "uint5", "uint8", "int2", "int3", "int4", "int6", "int8"
	};
	struct data d = make(64, 256, 400, 3);
	char what[128];

	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t c = 0; c < 3; c++)
			for (int how = SEARCH_MINMAX; how <= SEARCH_MSE; how++)
				for (int first = 0; first < (c ? 2 : 1); first++) {
					struct solver s = setting(names[i], computes[c], 64, RECIPE_LATE);

					s.search = (enum search)how;
					s.round_first = first;
					sprintf(what, "%s compute %zu %s%s", names[i], c, searches[how],
						first ? " round first" : "");
					compare(what, &s, &d, NULL);
				}
	drop(&d);
}

static const char *const floats[] = { "e2m1", "e3m0", "e1m3", "e2m2", "e3m1", "e4m0", "e2m3", "e0m4", "e3m4",
	"nf4", "nf5" };
enum { FLOATS = sizeof floats / sizeof *floats };

/* Floats and quantiles: every group with every order, for both kinds of arithmetic. */
static void float_groups(void **unused)
{
	static const long sizes[] = { 32, 96, 0, -1 };
	struct data d = make(48, 256, 400, 5);
	char what[128];

	(void)unused;
	for (size_t f = 0; f < FLOATS; f++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			for (size_t c = 0; c < 2; c++)
				for (int how = 0; how < 4; how++) {
					CASE("sizes[%zu], how %d", i, how);
					static const enum order_kind kind[] = { ORDER_NONE, ORDER_GAR,
						ORDER_FULL, ORDER_FULL };
					struct solver s = setting(floats[f], computes[c],
						sizes[i], RECIPE_LATE);
					int32_t *order = ordered(&d, kind[how], ORDER_MAX,
						sizes[i] > 0 ? (size_t)sizes[i] : 0);

					s.static_groups = how == 3;
					s.search = (f + i + (size_t)how) % 2 ? SEARCH_MSE : SEARCH_MINMAX;
					sprintf(what, "%s group %ld compute %zu order %s%s %s",
						floats[f], sizes[i], c, order_kinds[kind[how]],
						how == 3 ? " static" : "", searches[s.search]);
					compare(what, &s, &d, order);
					free(order);
				}
	drop(&d);
}

/* ... with every recipe, every kind of compensation and view, and ties away from zero. */
static void float_methods(void **unused)
{
	struct data d = make(48, 256, 400, 5);
	char what[128];

	(void)unused;
	for (size_t f = 0; f < FLOATS; f++)
		for (int r = RECIPE_LATE; r <= RECIPE_INC; r++)
			for (int k = COMPENSATE_BOTH; k <= COMPENSATE_NONE; k++) {
				struct solver s = setting(floats[f], computes[(f + (size_t)k) % 3], 64,
					(enum recipe)r);

				s.compensate = (enum compensate)k;
				s.group_view = (enum group_view)((f + (size_t)r) % 3);
				format_ties(&s.storage, (f + (size_t)r + (size_t)k) % 2);
				sprintf(what, "%s compute %zu recipe %s compensate %s view %s ties %s",
					floats[f], (f + (size_t)k) % 3, recipes[r], compensates[k],
					group_views[s.group_view], s.storage.away ? "away" : "even");
				compare(what, &s, &d, NULL);
			}
	drop(&d);
}

/* Scales of every type: they are rounded before codes are chosen, and the search takes the rounding into
 * account. */
static void scale_types_of_all(void **unused)
{
	static const char *const names[] = { "mxfp4", "nvfp4", "e2m1", "uint4", "int4", "nf4" };
	static const long sizes[] = { 32, 16, 0, -1 };
	static const enum order_kind kind[] = { ORDER_NONE, ORDER_GAR, ORDER_FULL };
	struct data d = make(48, 256, 400, 40);
	char what[128];

	(void)unused;
	memset(d.w + 3 * d.n, 0, d.n * sizeof *d.w);
	for (size_t f = 0; f < sizeof names / sizeof *names; f++)
		for (int t = SCALE_BF16; t <= SCALE_U8; t++)
			for (size_t k = 0; k < 4; k++) {
				const size_t c = (f + k + (size_t)t) % 2;
				struct solver s = setting(names[f], computes[c], sizes[k], RECIPE_LATE);
				int32_t *order = ordered(&d, kind[(f + k) % 3], ORDER_MAX,
					s.group > 0 ? (size_t)s.group : 0);

				if ((f + 2 * k + (size_t)t) % 5 == 0)
					s.compensate = COMPENSATE_NONE;
				s.search = (f + k + (size_t)t) % 3 ? SEARCH_MSE : SEARCH_MINMAX;
				s.round_first = (f + (size_t)t) % 3 == 0;
				s.group_view = (f + k) % 4 ? VIEW_EXACT : VIEW_BLOCK;
				sprintf(what, "%s group %ld scales %s compute %zu %s order %s %s", names[f],
					s.group, scale_types[t], c, searches[s.search],
					order_kinds[kind[(f + k) % 3]], compensates[s.compensate]);
				if (format_scales(&s.storage, (enum scale_type)t))
					compare(what, &s, &d, order);
				free(order);
			}
	drop(&d);
}

/* Rows that the solver processes one by one have the same parameters as rows that it processes in panels. */
static void scales_of_rows(void **unused)
{
	struct data d = make(70, 96, 100, 0);

	(void)unused;
	for (int t = SCALE_F32; t <= SCALE_U8; t++) {
		CASE("%s", scale_types[t]);
		struct solver s = setting("e2m1", NULL, 32, RECIPE_LATE);
		struct result panel, row;

		assert_true(format_scales(&s.storage, (enum scale_type)t));
		s.compensate = COMPENSATE_NONE, s.search = SEARCH_MINMAX;
		panel = run(&s, &d, NULL);
		s.no_error = true;
		row = run(&s, &d, NULL);
		assert_memory_equal(panel.codes, row.codes, d.m * d.n);
		assert_memory_equal(panel.scale, row.scale, d.m * row.groups * sizeof *row.scale);
		assert_true(panel.scale_tensor == row.scale_tensor);
		assert_true(fabs(panel.report.mse / row.report.mse - 1) < 1e-6);
		for (size_t i = 0; i < d.m * row.groups; i++)
			assert_true(scale_nearest(&scale_kinds[t], row.scale[i]) == row.scale[i]);
		result_free(&panel);
		result_free(&row);
	}
	drop(&d);
}

/* Rows of normal weights; uniform ones; the ends of the range only; one end far from the other weights; one
 * sign; one weight per group; none. */
static void extreme_rows(const struct data *d)
{
	for (size_t r = 0; r < d->m; r++)
		for (size_t i = 0; i < d->n; i++) {
			const double u = 2 * uniform() - 1, unit = exp(8 * sin((double)r));
			const double x[] = { normal(), u, u < 0 ? -1 : 1, i % 128 ? fabs(u) / 20 : -1,
				i % 128 < 2 ? 1 - 2.0 * (double)(i % 2) : u, -fabs(u), i % 128 ? 0 : u,
				0 };

			d->w[r * d->n + i] = (float)(unit * x[r % (sizeof x / sizeof *x)]);
		}
}

/* W₈ = round(w/s₀); s and q of each group by QServe section 4.1. The zero point is that of format_fit().
 * Returns the largest |(q - z) s|, and sets the largest s. */
static int two_steps(const struct solver *s, const struct data *d, const struct result *a, float *widest)
{
	const struct linear l = layer_of(s, d, a);
	int most = 0;

	*widest = 0;
	for (size_t r = 0; r < d->m; r++)
		for (size_t g = 0; g < a->groups; g++) {
			const float *w = d->w + r * d->n + g * 128, scale = a->scale[r * a->groups + g];
			const int z = a->zero[r * a->groups + g];
			double w8[128], low = 0, high = 0;
			float units[128];

			CASE("row %zu, group %zu, %g", r, g, (double)s->z_max);
			linear_units(&l, r, g * 128, 128, units);
			for (size_t i = 0; i < 128; i++) {
				w8[i] = nearbyint(w[i] / (double)a->scale8[r]);
				low = fmin(low, w8[i]), high = fmax(high, w8[i]);
			}
			assert_true(fmax(-low, high) <= (double)s->z_max);
			if (s->search == SEARCH_MINMAX)
				assert_true(scale == fmax(1, nearbyint((high - low) / 15)));
			assert_true(scale == rintf(scale) && scale >= 1);
			*widest = fmaxf(*widest, scale);
			for (size_t i = 0; i < 128; i++) {
				const int q = a->codes[r * d->n + g * 128 + i], v = (q - z) * (int)scale;

				assert_int_equal(q, fmin(fmax(nearbyint(w8[i] / (double)scale) + z, 0), 15));
				assert_true(units[i] == (float)(v > 127 ? 127 : v < -127 ? -127 : v));
				most = abs(v) > most ? abs(v) : most;
			}
		}
	return most;
}

/* With integer scales and s₀ = max|W|/119, the second rounding changes no weight; with max|W|/127 it does.
 * A multiple of s that is nearest to a number up to 119 is at most 127 if s is at most 25. By minmax s is
 * at most 238/15. */
static void protective_range(void **unused)
{
	static const enum search how[] = { SEARCH_MINMAX, SEARCH_MSE, SEARCH_HESSIAN };
	struct data d = make(256, 512, 8, 0);

	(void)unused;
	extreme_rows(&d);
	for (int s = 1; s <= 25; s++)
		for (int x = 0; x <= 119; x++)
			assert_true((2 * x + s) / (2 * s) * s <= 127);
	for (size_t k = 0; k < 6; k++) {
		struct solver s = setting("uint4", "int8", 128, RECIPE_LATE);
		const bool refined = how[k / 2] == SEARCH_HESSIAN;
		struct result a;
		float widest;
		int most;

		assert_true(format_scales(&s.storage, SCALE_U8));
		s.compensate = COMPENSATE_NONE, s.search = how[k / 2];
		s.round_first = s.scale8_channel = true, s.pow2_scale = false;
		s.z_max = k % 2 ? 127 : 119;
		assert_true(s.saturate == 127);
		a = run(&s, &d, NULL);
		most = two_steps(&s, &d, &a, &widest);
		assert_true(k % 2 ? most > 127 : most > 119 && most <= 127);
		assert_true(refined ? k % 2 || widest <= 25 : widest == (k % 2 ? 17 : 16));
		result_free(&a);
	}
	drop(&d);
}

/* Weights halfway between two values of E2M2, and of int5 with the scale 1 that 15 gives: both rules for
 * ties. */
static void ties(void **unused)
{
	static const float x[2][8] = { { 14, 4.5f, 9, 13, -4.5f, -9, -13, 0.25f },
		{ 15, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0 } };
	static const float want[2][2][8] = {
		{ { 14, 4, 8, 12, -4, -8, -12, 0 }, { 14, 5, 10, 14, -5, -10, -14, 0.5f } },
		{ { 15, 0, 2, 2, 0, -2, -2, 0 }, { 15, 1, 2, 3, -1, -2, -3, 0 } },
	};

	(void)unused;
	for (int f = 0; f < 2; f++)
		for (int away = 0; away < 2; away++) {
			CASE("away %d", away);
			struct data d = { 1, 8, (float *)(uintptr_t)x[f], NULL };
			struct solver s = setting(f ? "int5" : "e2m2", NULL, 0, RECIPE_LATE);
			struct result a;
			struct linear l;
			float y[1][8];

			s.compensate = COMPENSATE_NONE;
			s.search = SEARCH_MINMAX;
			format_ties(&s.storage, away);
			a = run(&s, &d, NULL);
			l = layer_of(&s, &d, &a);
			linear_weight(&l, 0, 1, y);
			for (int i = 0; i < 8; i++)
				assert_true(y[0][i] == want[f][away][i]);
			result_free(&a);
		}
}

static void second_level(void **unused)
{
	struct data d = make(96, 256, 400, 3);
	char what[128];

	(void)unused;
	memset(d.w + 3 * d.n, 0, d.n * sizeof *d.w);
	for (size_t c = 1; c < 3; c++)
		for (int channel = 0; channel < 2; channel++)
			for (int power = 0; power < 2; power++)
				for (int r = RECIPE_LATE; r <= RECIPE_INC; r++)
					for (long g = -1; g < 128; g += 64) {
						struct solver s = setting("uint4", computes[c],
							g < 0 ? g : g + 1, (enum recipe)r);

						s.scale8_channel = channel;
						s.pow2_scale = power;
						sprintf(what, "compute %zu channel %d pow2 %d recipe %s "
							"group %ld", c, channel, power, recipes[r], s.group);
						compare(what, &s, &d, NULL);
					}
	drop(&d);
}

/* The ratio of the largest and the smallest eigenvalue of the damped H. */
static double condition(const struct data *d, double damp)
{
	const size_t n = d->n;
	double *a = malloc(n * n * sizeof *a), *value = malloc(n * sizeof *value), mean = 0, result;

	for (size_t i = 0; i < n; i++)
		mean += (double)d->h[i * n + i] / (double)n;
	for (size_t i = 0; i < n * n; i++)
		a[i] = (double)d->h[i] + (i % (n + 1) ? 0 : damp * mean);
	assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', (int)n, a, (int)n, value), 0);
	result = value[n - 1] / value[0];
	free(a);
	free(value);
	return result;
}

/*
 * Compensation of a span by earlier columns in split bf16 (num/bf16x2.h), at a condition number of 6300:
 * codes keep the bound of float. Scales belong to weights whose compensation, about as large as they are, has
 * an error of 2⁻¹⁵ of its terms.
 */
static void tiles(void **unused)
{
	struct data d = make(80, 650, 800, 3);
	int32_t *order = ordered(&d, ORDER_GAR, ORDER_MAX, 64);
	const double number = condition(&d, 0.01);

	(void)unused;
	if (!amx_on())
		return;
	fprintf(stderr, "# tiles: condition number %.0f\n", number);
	assert_true(number > 1000);
	tolerance.close = 0x1p-13;
	for (size_t c = 0; c < 2; c++)
		for (long group = 64; group <= 128; group += 64) {
			struct solver s = setting("uint4", computes[c], group, RECIPE_LATE);

			compare("tiles", &s, &d, NULL);
			if (group == 64)
				compare("tiles, in the order of GAR", &s, &d, order);
		}
	cpu_amx = false;
	tolerance.close = 1e-5;
	free(order);
	drop(&d);
}

/*
 * The search hessian: in GPTQ's sweep and on the Hessian, with every kind of format, order and scale. A code
 * within rounding of a tie in one of the rounds changes the next scale by up to a step over the sum of
 * squares.
 */
static void by_hessian(void **unused)
{
	static const char *const names[] = { "uint4", "uint2", "int3", "e2m1", "nf4", "mxfp4", "nvfp4",
		"uint3" };
	static const long sizes[] = { 32, 48, 0 };
	struct data d = make(32, 144, 300, 7);
	char what[160];

	(void)unused;
	tolerance.close = 1e-3, tolerance.far = 1e-2;
	memset(d.w + 3 * d.n, 0, d.n * sizeof *d.w);
	for (size_t f = 0; f < sizeof names / sizeof *names; f++)
		for (size_t k = f % 2; k < 3; k += 2)
			for (int how = COMPENSATE_BOTH; how <= COMPENSATE_NONE; how += COMPENSATE_NONE)
				for (int kind = ORDER_NONE; kind <= ORDER_GAR; kind++) {
					const size_t c = (f + k + (size_t)kind) % 2;
					struct solver s = setting(names[f], computes[c], sizes[k],
						RECIPE_LATE);
					int32_t *order = ordered(&d, (enum order_kind)kind, ORDER_MAX,
						sizes[k] > 0 ? (size_t)sizes[k] : 0);

					s.compensate = (enum compensate)how;
					s.search = SEARCH_HESSIAN;
					s.round_first = (f + (size_t)kind) % 3 == 0;
					s.static_groups = (f + k + (size_t)kind) % 4 == 0;
					s.group_view = (enum group_view)((f + (size_t)kind) % 3);
					if (f == 7)
						format_scales(&s.storage, k ? SCALE_F16 : SCALE_BF16);
					sprintf(what, "hessian: %s group %ld compute %zu %s %s%s %s%s",
						names[f],
						sizes[k], c, order_kinds[kind], compensates[how],
						s.static_groups ? " static" : "", group_views[s.group_view],
						s.round_first ? " round first" : "");
					compare(what, &s, &d, order);
					free(order);
				}
	tolerance.close = 1e-5, tolerance.far = 0;
	drop(&d);
}

/* Several paths: with every kind of format, order, group view and compute format; blocks and spans that begin
 * inside and between groups; more rows than a panel has. */
static void several_paths(void **unused)
{
	static const char *const names[] = { "uint4", "int3", "e2m1", "nf3", "uint2", "mxfp4", "e2m2" };
	static const long sizes[] = { 32, 160, 0, -1, 48 };
	struct data d = make(70, 400, 700, 9);
	size_t i = 0;
	char what[160];

	(void)unused;
	for (size_t k = 2; k <= SOLVER_PATHS; k *= 2)
		for (size_t f = 0; f < sizeof names / sizeof *names; f++, i++) {
			struct solver s = setting(names[f], computes[i % 3 == 1], sizes[i % 5],
				i % 3 == 1 ? (enum recipe)(i % 2) : RECIPE_LATE);
			int32_t *order = ordered(&d, (enum order_kind)(i % 3), ORDER_MAX,
				sizes[i % 5] > 0 ? (size_t)sizes[i % 5] : 0);

			s.paths = k;
			s.static_groups = i % 7 == 3;
			s.group_view = i % 11 == 5 ? VIEW_BLOCK : i % 11 == 8 ? VIEW_ORIGINAL : VIEW_EXACT;
			s.compensate = i % 6 == 4 ? COMPENSATE_STORAGE : COMPENSATE_BOTH;
			sprintf(what, "%zu paths: %s group %ld compute %d %s %s %s%s", k, names[f],
				sizes[i % 5], i % 3 == 1, order_kinds[i % 3], group_views[s.group_view],
				compensates[s.compensate], s.static_groups ? " static" : "");
			compare(what, &s, &d, order);
			free(order);
		}
	drop(&d);
}

/* Turns of scales and codes, with every kind of format, order, compute format and scales, and with paths. */
static void turns(void **unused)
{
	static const char *const names[] = { "uint4", "int3", "e2m1", "nf3", "uint2", "mxfp4", "nvfp4" };
	static const long sizes[] = { 32, 96, 0, 48 };
	struct data d = make(20, 208, 500, 5);
	char what[160];

	(void)unused;
	tolerance.close = 1e-3, tolerance.far = 1e-2;
	for (size_t i = 0; i < 28; i++) {
		const char *name = names[i % 7];
		const long size = sizes[i % 4];
		struct solver s = setting(name, computes[i % 3 == 1], size, RECIPE_LATE);
		int32_t *order = ordered(&d, (enum order_kind)(i / 3 % 3), ORDER_MAX,
			size > 0 ? (size_t)size : 0);

		s.turns = 1 + i % 3;
		s.paths = i % 5 == 2 ? 4 : 1;
		s.static_groups = i % 7 == 3;
		if (i % 4 == 1 && i % 7 < 5)
			format_scales(&s.storage, SCALE_F16);
		sprintf(what, "%zu turns: %s group %ld compute %d %s, %zu paths%s", s.turns, name, size,
			i % 3 == 1, order_kinds[i / 3 % 3], s.paths, s.static_groups ? " static" : "");
		compare(what, &s, &d, order);
		free(order);
	}
	tolerance.close = 1e-5, tolerance.far = 0;
	drop(&d);
}

/* More paths have a smaller error, with the same parameters. */
static void paths_gain(void **unused)
{
	struct data d = make(64, 256, 600, 0);
	double before = INFINITY;

	(void)unused;
	for (size_t k = 1; k <= SOLVER_PATHS; k *= 2) {
		CASE("%zu paths", k);
		struct solver s = setting("uint3", NULL, 64, RECIPE_LATE);
		struct result y;

		s.paths = k;
		s.static_groups = true;		/* the same parameters */
		y = run(&s, &d, NULL);
		check_report(&s, &d, &y);
		fprintf(stderr, "# %zu paths: %.5f\n", k, y.report.error);
		assert_true(y.report.error < before);
		before = y.report.error;
		result_free(&y);
	}
	drop(&d);
}

/* The search never costs more than its start, and the sweep as a whole gains. The learned search gains on
 * weights alone. */
static void searches_gain(void **unused)
{
	struct data d = make(64, 256, 600, 0);

	(void)unused;
	for (int how = COMPENSATE_BOTH; how <= COMPENSATE_NONE; how += COMPENSATE_NONE)
		for (int by = SEARCH_HESSIAN; by <= SEARCH_LEARNED; by++) {
			CASE("%s, %s", searches[by], compensates[how]);
			struct solver s = setting("uint3", NULL, 64, RECIPE_LATE);
			struct result before, after;

			s.compensate = (enum compensate)how;
			before = run(&s, &d, NULL);
			s.search = (enum search)by;
			after = run(&s, &d, NULL);
			check_report(&s, &d, &after);
			fprintf(stderr, "# %s, %s: %.5f, mse %.5f\n", searches[by], compensates[how],
				after.report.error, before.report.error);
			/* searched scales of uncompensated weights may cost more if errors are compensated,
			 * but not twice as much */
			assert_true(after.report.error < (by == SEARCH_LEARNED && how != COMPENSATE_NONE ? 2 :
				1) * before.report.error);
			result_free(&before);
			result_free(&after);
		}
	drop(&d);
}

static void agreement(void **unused)
{
	(void)unused;
	fprintf(stderr, "# %d settings, worst %.4f %%, all %.5f %% of codes differ\n", cases, 100 * worst,
		100 * (1 - total_equal / total_codes));
	assert_true(1 - total_equal / total_codes < 1e-4);
}

/* --- the rest --- */

static void any_threads(void **unused)
{
	struct data d = make(600, 200, 300, 4);
	static const long sizes[] = { 32, 0, -1 };

	(void)unused;
	for (size_t i = 0; i < 9; i++) {
		CASE("i %zu", i);
		if (i > 3 && sizes[i % 3] < 0)		/* a tensor has only minmax and mse */
			continue;
		struct solver s = setting("uint4", "e4m3fn", sizes[i % 3], RECIPE_LATE);
		struct result one;

		s.search = (enum search)(SEARCH_MSE + i / 3);
		one = run(&s, &d, NULL);

		for (threads = 2; threads <= 3; threads++) {
			struct result more = run(&s, &d, NULL);

			assert_memory_equal(one.codes, more.codes, d.m * d.n);
			assert_memory_equal(one.scale, more.scale, d.m * one.groups * sizeof *one.scale);
			assert_memory_equal(one.zero, more.zero, d.m * one.groups);
			one.report.seconds = more.report.seconds;
			assert_memory_equal(&one.report, &more.report, sizeof one.report);
			result_free(&more);
		}
		threads = 1;
		result_free(&one);
	}
	drop(&d);
}

/* Layers that are solved together, some with a common factor, some with other settings, give the same result
 * as alone. */
static void together(void **unused)
{
	struct data a = make(300, 200, 300, 4), b = make(70, 96, 300, 0);
	const struct solver shared = setting("uint4", "e4m3fn", 32, RECIPE_LATE);
	const struct solver other = setting("int5", NULL, -1, RECIPE_LATE);
	const struct solver *const settings[] = { &shared, &shared, &shared, &other, &other };
	int32_t *order = ordered(&a, ORDER_GAR, ORDER_MAX, 32), *same = ordered(&a, ORDER_GAR, ORDER_MAX, 32);
	const struct data half = { 150, 200, a.w, a.h };
	const struct data *const data[] = { &a, &half, &a, &b, &half };
	const int32_t *const orders_of[] = { order, same, NULL, NULL, NULL };
	enum { N = 5 };
	struct result alone[N], all[N];
	struct linear linear[N];
	struct solver_layer layer[N];

	(void)unused;
	for (threads = 1; threads <= 3; threads++) {
		CASE("%d threads", threads);
		for (size_t i = 0; i < N; i++) {
			alone[i] = run(settings[i], data[i], orders_of[i]);
			all[i] = result_new(settings[i], data[i]->m, data[i]->n);
			linear[i] = (struct linear){ .out = data[i]->m, .in = data[i]->n,
				.weight = data[i]->w };
			layer[i] = layer_for(settings[i], data[i], &linear[i], orders_of[i], &all[i]);
		}
		void *work = malloc(solver_workspace(N, layer));

		solver_run(N, layer, work);
		free(work);
		for (size_t i = 0; i < N; i++) {
			assert_int_equal(layer[i].report.status, STATUS_DONE);
			assert_memory_equal(all[i].codes, alone[i].codes, data[i]->m * data[i]->n);
			assert_memory_equal(all[i].scale, alone[i].scale, (settings[i]->group < 0 ? 1 :
				data[i]->m * alone[i].groups) * sizeof(float));
			assert_true(layer[i].report.error == alone[i].report.error);
			result_free(&alone[i]);
			result_free(&all[i]);
		}
	}
	threads = 1;
	free(order);
	free(same);
	drop(&a);
	drop(&b);
}

static void dead_channels(void **unused)
{
	struct data d = make(64, 128, 300, 0);
	struct solver s = setting("uint4", "e4m3fn", 32, RECIPE_LATE);
	struct result a;
	struct linear l;
	float (*y)[d.n] = malloc(d.m * sizeof *y);

	(void)unused;
	for (size_t i = 0; i < d.n; i++)
		for (size_t k = 0; k < d.n; k++)
			if ((k >= 40 && k < 64) || (i >= 40 && i < 64) || i >= 96 || k >= 96)
				d.h[i * d.n + k] = 0;
	for (size_t r = 0; r < d.m; r++)
		d.w[r * d.n + 50] = 100;	/* also without effect on s₈ */
	a = run(&s, &d, NULL);
	assert_int_equal(a.report.dead, 24 + 32);
	assert_true(a.scale8[0] < 0.01);
	l = layer_of(&s, &d, &a);
	linear_weight(&l, 0, d.m, y);
	for (size_t r = 0; r < d.m; r++)
		for (size_t i = 0; i < d.n; i++)
			assert_true((y[r][i] == 0) || !((i >= 40 && i < 64) || i >= 96));
	result_free(&a);

	s.compensate = COMPENSATE_NONE;		/* rounding to nearest keeps the weights */
	a = run(&s, &d, NULL);
	assert_int_equal(a.report.dead, 0);
	l = layer_of(&s, &d, &a);
	linear_weight(&l, 0, d.m, y);
	assert_true(y[0][50] > 90);
	result_free(&a);

	s.compensate = COMPENSATE_BOTH;		/* all channels are dead */
	memset(d.h, 0, d.n * d.n * sizeof *d.h);
	a = run(&s, &d, NULL);
	assert_int_equal(a.report.dead, d.n);
	assert_true(isnan(a.report.error));
	for (size_t i = 0; i < d.m * d.n; i++)
		assert_int_equal(a.codes[i], 0);
	result_free(&a);
	free(y);
	drop(&d);
}

static void damping_ladder(void **unused)
{
	struct data d = make(64, 64, 300, 0);
	struct solver s = setting("uint4", NULL, 32, RECIPE_LATE);
	size_t n = d.n;

	(void)unused;
	/* H = I - c vvᵀ has the eigenvalue 1 - c n. Damping λ (1 - c) helps if λ (1 - c) > c n - 1. */
	for (double lack = 0.005; lack < 0.9; lack *= 3) {
		CASE("lack %g", lack);
		double c = (1 + lack) / (double)n;
		struct result want = result_new(&s, d.m, n), got;

		for (size_t i = 0; i < n * n; i++)
			d.h[i] = (float)((i % (n + 1) == 0) - c);
		got = run(&s, &d, NULL);
		assert_true(reference(&s, &d, NULL, &want));
		assert_true(got.report.lambda == want.report.lambda);
		assert_true(got.report.lambda * (1 - c) > lack - 1e-5 &&
			(lack < 0.01 || got.report.lambda > 0.01));
		result_free(&want);
		result_free(&got);
	}
	drop(&d);
}

static enum status status(const struct solver *s, const struct data *d, const int32_t *order,
	size_t *index)
{
	struct result a = result_new(s, d->m, d->n);
	enum status result = solve(s, d, order, &a);

	*index = a.report.index;
	result_free(&a);
	return result;
}

static void bad_data(void **unused)
{
	struct data d = make(32, 64, 200, 0);
	struct solver s = setting("uint4", NULL, 32, RECIPE_LATE);
	int32_t *order = ordered(&d, ORDER_FULL, ORDER_MAX, 0);
	size_t n = d.n, at;
	float keep;

	(void)unused;
	keep = d.h[5 * n + 5];
	d.h[5 * n + 5] = -1;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_BAD_DIAGONAL);
	assert_int_equal(at, 5);
	d.h[5 * n + 5] = NAN;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_BAD_DIAGONAL);
	d.h[5 * n + 5] = INFINITY;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_BAD_DIAGONAL);
	d.h[5 * n + 5] = keep;
	keep = d.h[9 * n + 2];
	d.h[9 * n + 2] = NAN;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_BAD_HESSIAN);
	assert_int_equal(at, 9);
	d.h[9 * n + 2] = -INFINITY;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_BAD_HESSIAN);
	d.h[9 * n + 2] = keep;
	keep = d.w[7 * n + 60];
	d.w[7 * n + 60] = NAN;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_BAD_WEIGHT);
	assert_int_equal(at, 7);
	d.w[7 * n + 60] = keep;
	assert_int_equal(status(&s, &d, order, &at), STATUS_DONE);
	order[11] = order[10];
	assert_int_equal(status(&s, &d, order, &at), STATUS_BAD_ORDER);
	assert_int_equal(at, 11);
	order[11] = -1;
	assert_int_equal(status(&s, &d, order, &at), STATUS_BAD_ORDER);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			d.h[i * n + k] = i == k ? 1 : -1;
	assert_int_equal(status(&s, &d, NULL, &at), STATUS_NOT_POSITIVE);
	assert_true(strlen(status_text(STATUS_NOT_POSITIVE)) > 0);
	free(order);
	drop(&d);
}

static void all_zero(void **unused)
{
	static const char *const names[] = { "uint4", "int5", "e2m2", "e4m0", "nf5", "e4m3fn" };
	static const long sizes[] = { 32, 0, -1 };
	struct data d = make(70, 64, 200, 0);

	(void)unused;
	memset(d.w, 0, d.m * d.n * sizeof *d.w);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t k = 0; k < 3; k++) {
			CASE("%s, group %ld", names[i], (long)sizes[k]);
			struct solver s = setting(names[i], "e4m3ieee", sizes[k], RECIPE_LATE);
			struct result a = run(&s, &d, NULL);

			assert_true(a.scale8[0] == 1);
			for (size_t g = 0; g < (sizes[k] < 0 ? 1 : d.m * a.groups); g++)
				assert_true(a.scale[g] == 1 && a.zero[g] == 0);
			for (size_t c = 0; c < d.m * d.n; c++)
				assert_true(s.storage.grid[a.codes[c]] == 0);
			assert_true(a.report.mse == 0 && isnan(a.report.error));
			result_free(&a);
		}
	drop(&d);
}

/* Rounding to nearest needs no H; FP8 as the storage format (W8A8). */
static void no_hessian(void **unused)
{
	struct data d = make(64, 96, 200, 0);
	struct solver s = setting("e4m3fn", NULL, -1, RECIPE_LATE);
	struct result a;
	float *h = d.h, top = 0;

	(void)unused;
	s.compensate = COMPENSATE_NONE;
	s.search = SEARCH_MINMAX;
	d.h = NULL;
	a = run(&s, &d, NULL);
	assert_true(isnan(a.report.error) && a.report.lambda == 0);
	for (size_t i = 0; i < d.m * d.n; i++)
		top = fmaxf(top, fabsf(d.w[i]));
	assert_true(a.scale[0] == (float)(top / 448.0));
	for (size_t i = 0; i < d.m * d.n; i++)
		assert_true(s.storage.grid[a.codes[i]] == fp8(&s.storage,
			(float)(d.w[i] / (double)a.scale[0]), 1e9));
	result_free(&a);
	d.h = h;
	drop(&d);
}

/* A third of the codes differ between the views at g = 32; compensation reduces the error. */
static void sense(void **unused)
{
	struct data d = make(64, 256, 600, 0);
	struct solver s = setting("uint4", "e4m3fn", 32, RECIPE_LATE);
	struct result exact = run(&s, &d, NULL), block, none, storage;
	size_t differ = 0;

	(void)unused;
	s.group_view = VIEW_BLOCK;
	block = run(&s, &d, NULL);
	for (size_t i = 0; i < d.m * d.n; i++)
		differ += exact.codes[i] != block.codes[i];
	assert_true(differ > d.m * d.n / 10);
	s.group_view = VIEW_EXACT;
	s.compensate = COMPENSATE_STORAGE;
	storage = run(&s, &d, NULL);
	s.compensate = COMPENSATE_NONE;
	none = run(&s, &d, NULL);
	assert_true(exact.report.error < storage.report.error);
	assert_true(storage.report.error < none.report.error);
	result_free(&exact);
	result_free(&block);
	result_free(&storage);
	result_free(&none);
	drop(&d);
}

/* A symmetric group gives z = 7.5 → 8, also if the search has shrunk it. */
static void symmetric_groups(void **unused)
{
	struct data d = make(64, 64, 100, 0);
	struct solver s = setting("uint4", NULL, 32, RECIPE_LATE);
	struct result a;

	(void)unused;
	for (size_t i = 0; i < d.m * d.n; i += 2)
		d.w[i + 1] = -d.w[i];
	s.compensate = COMPENSATE_NONE;
	a = run(&s, &d, NULL);
	for (size_t i = 0; i < d.m * a.groups; i++)
		assert_int_equal(a.zero[i], 8);
	result_free(&a);
	drop(&d);
}

/* --- on a device: the same codes as on the processor, except for ties --- */

/* As tests/device.t: build/plain.so, or the device of PTQ_DEVICE. */
static const struct device *other_device(void)
{
	const char *build = getenv("PTQ_BUILD");
	char path[4096];

	if (getenv("PTQ_DEVICE"))
		return device_open(getenv("PTQ_DEVICE"));
	snprintf(path, sizeof path, "%s/plain.so", build ? build : "build");
	if (access(path, R_OK)) {
		fprintf(stderr, "# %s: is missing: make %s\n", path, path);
		return NULL;
	}
	return device_open(path);
}

/*
 * Products are summed in another order, in float. So d differs by about 1e-6 of itself, and a code only where
 * the weight is as near to a tie: one of a million. Later codes of such a row may differ too; the bounds are
 * those of the reference in double, which is as far away. Numbers of the report are sums over all weights. If
 * all codes are equal, they differ by the rounding of products in float.
 */
static void same_on_device(const char *what, const struct solver *s, const struct data *d,
	const int32_t *order)
{
	static const struct device *opened;
	struct result want, got;

	CASE("%s", what);
	assert_null(solver_off_device(s, d->n));
	opened = opened ? opened : other_device();
	want = run(s, d, order);
	device = opened;
	got = run(s, d, order);
	device = NULL;
	compare_results(what, s, d, order, &want, &got);
	if (!memcmp(want.codes, got.codes, d->m * d->n)) {
		assert_true(fabs(got.report.error / want.report.error - 1) < 1e-4);
		assert_true(fabs(got.report.mse / want.report.mse - 1) < 1e-5);
	}
	result_free(&want);
	result_free(&got);
}

static void device_methods(const struct data *d)
{
	char what[128];

	for (size_t c = 0; c < 3; c++)
		for (int r = RECIPE_LATE; r <= RECIPE_INC; r++)
			for (int k = COMPENSATE_BOTH; k < COMPENSATE_NONE; k++) {
				struct solver s = setting("uint4", computes[c], 32, (enum recipe)r);

				s.compensate = (enum compensate)k;
				s.scale8_channel = r == RECIPE_PAPER;
				sprintf(what, "device: compute %s recipe %s compensate %s",
					computes[c] ? computes[c] : "none", recipes[r], compensates[k]);
				same_on_device(what, &s, d, NULL);
			}
}

/* Groups of one block and of several, that dead columns shift, in all orders and views. */
static void device_orders(const struct data *d)
{
	static const long group[] = { 0, 16, 128, 160, 300 };
	char what[128];

	for (size_t g = 0; g < sizeof group / sizeof *group; g++)
		for (int kind = 0; kind < 3; kind++)
			for (int view = VIEW_EXACT; view <= VIEW_ORIGINAL; view++) {
				struct solver s = setting("int4", NULL, group[g], RECIPE_LATE);
				int32_t *order = kind == 0 ? NULL : kind == 1 && group[g] ?
					ordered(d, ORDER_GAR, ORDER_MAX, (size_t)group[g]) :
					ordered(d, ORDER_FULL, ORDER_MAX, 0);

				s.group_view = (enum group_view)view;
				s.search = view == VIEW_BLOCK ? SEARCH_MINMAX : SEARCH_MSE;
				s.static_groups = view == VIEW_ORIGINAL;
				sprintf(what, "device: group %ld order %d view %s", group[g], kind,
					group_views[view]);
				same_on_device(what, &s, d, order);
				free(order);
			}
}

static void device_formats(const struct data *d)
{
	static const struct { const char *name; enum scale_type scales; int bits; bool away; } row[] = {
		{ "uint2", SCALE_F16, 0, false }, { "uint8", SCALE_BF16, 0, true },
		{ "int3", SCALE_F32, 5, true }, { "int8", SCALE_E8M0, 0, false },
		{ "e2m1", SCALE_F16, 0, true }, { "e3m2", SCALE_F32, 0, false },
		{ "e2m3", SCALE_E4M3FN, 0, false }, { "nf4", SCALE_F32, 0, false },
		{ "nf3", SCALE_F16, 0, true }, { "mxfp4", SCALE_E8M0, 0, false },
		{ "nvfp4", SCALE_E4M3FN, 0, false }, { "e4m3fn", SCALE_F32, 0, false },
		{ "e5m2ieee", SCALE_F32, 0, false },
	};
	char what[128];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		for (size_t c = 0; c < 2; c++) {
			struct solver s = setting(row[i].name, computes[c], 32,
				c ? RECIPE_PAPER : RECIPE_LATE);

			format_ties(&s.storage, row[i].away);
			assert_true(format_scales(&s.storage, row[i].scales));
			s.storage.scale_bits = row[i].bits;
			s.saturate = c ? 300 : 0;
			sprintf(what, "device: %s scales %s compute %zu", row[i].name,
				scale_types[row[i].scales], c);
			same_on_device(what, &s, d, NULL);
		}
}

/* As damping_ladder() and bad_data(): what the device reports of data that it cannot use. */
static void device_status(const struct data *d)
{
	struct solver s = setting("uint4", NULL, 32, RECIPE_LATE);
	struct result want = result_new(&s, d->m, d->n), got = result_new(&s, d->m, d->n);
	float *const number[] = { &d->w[7 * d->n + 3], &d->h[5 * d->n + 2], &d->h[9 * d->n + 9], &d->h[1] };
	const float bad[] = { NAN, INFINITY, -1, 1e6f * d->h[0] };
	const enum status status[] = { STATUS_BAD_WEIGHT, STATUS_BAD_HESSIAN, STATUS_BAD_DIAGONAL,
		STATUS_NOT_POSITIVE };

	for (size_t i = 0; i < 4; i++) {
		const float kept = *number[i], mirrored = d->h[d->n];

		CASE("device: status %zu", i);
		*number[i] = bad[i];
		if (i == 3)
			d->h[d->n] = bad[i];
		device = NULL;
		assert_int_equal(solve(&s, d, NULL, &want), status[i]);
		device = other_device();
		assert_int_equal(solve(&s, d, NULL, &got), status[i]);
		device = NULL;
		assert_int_equal(got.report.index, want.report.index);
		*number[i] = kept;
		d->h[d->n] = mirrored;
	}
	result_free(&want);
	result_free(&got);
}

/* No live column, and no weight but 0. */
static void device_nothing(struct data *d)
{
	struct solver s = setting("uint4", "e4m3fn", 32, RECIPE_LATE);

	for (int live = 0; live < 2; live++) {
		struct result want, got;

		CASE("device: nothing %d", live);
		memset(live ? d->w : d->h, 0, (live ? d->m : d->n) * d->n * sizeof *d->w);
		for (size_t i = 0; live && i < d->n; i++)
			d->h[i * (d->n + 1)] = 1;
		want = run(&s, d, NULL);
		device = other_device();
		got = run(&s, d, NULL);
		device = NULL;
		assert_memory_equal(got.codes, want.codes, d->m * d->n);
		assert_memory_equal(got.zero, want.zero, d->m * want.groups);
		assert_memory_equal(got.scale, want.scale, d->m * want.groups * sizeof *got.scale);
		assert_int_equal(got.report.dead, want.report.dead);
		assert_int_equal(isnan(got.report.error), isnan(want.report.error));
		assert_true(fabs(got.report.mse - want.report.mse) <= 1e-6 * want.report.mse);
		result_free(&want);
		result_free(&got);
	}
}

/* Weights in half precision, of two layers that share H; and H that needs more damping. */
static void device_layers(struct data *d)
{
	struct solver s = setting("uint4", "e4m3fn", 32, RECIPE_LATE);
	const size_t n = d->m * d->n;
	uint16_t *half = malloc(n * sizeof *half);
	struct linear l = { .out = d->m, .in = d->n, .weight = half, .weight_type = HALF_F16 };
	struct result alone, a[2] = { result_new(&s, d->m, d->n), result_new(&s, d->m, d->n) };
	struct solver_layer layer[2];
	void *work;

	half_narrow(n, half, d->w, HALF_F16);
	half_widen(n, d->w, half, HALF_F16);
	device = other_device();
	alone = run(&s, d, NULL);
	for (size_t i = 0; i < 2; i++)
		layer[i] = layer_for(&s, d, &l, NULL, &a[i]);
	work = malloc(solver_workspace(2, layer));
	solver_run(2, layer, work);
	device = NULL;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(layer[i].report.status, STATUS_DONE);
		assert_memory_equal(a[i].codes, alone.codes, n);
		assert_true(layer[i].report.error == alone.report.error);
		result_free(&a[i]);
	}
	free(work);
	free(half);
	result_free(&alone);
	d->h[0] = d->h[d->n + 1] = d->h[1] = d->h[d->n] = 1e4f * d->h[0];
	d->h[1] = d->h[d->n] *= 1.001f;
	same_on_device("device: ladder", &s, d, NULL);
}

static void on_device(void **unused)
{
	struct data d;

	(void)unused;
	if (!other_device())
		skip();
	d = make(40, 416, 500, 7);
	device_orders(&d);
	drop(&d);
	d = make(48, 288, 400, 5);
	device_methods(&d);
	device_formats(&d);
	device_status(&d);
	device_layers(&d);
	device_nothing(&d);
	drop(&d);
}

static void recipe_rows(void **unused)
{
	struct solver s = setting("uint4", "e4m3ieee", 32, RECIPE_INC);

	(void)unused;
	assert_true(s.z_max == 224 && s.saturate == 224 && s.min_scale8 == 0x1p-16f);
	assert_int_equal(s.group_view, VIEW_ORIGINAL);
	assert_int_equal(s.search, SEARCH_MINMAX);
	solver_recipe(&s, RECIPE_PAPER);
	assert_true(s.z_max == 240 && s.round_first && s.pow2_scale && s.min_scale8 == 0);
	s = setting("uint4", "e4m3fn", 32, RECIPE_INC);
	assert_true(s.z_max == 416);
	solver_recipe(&s, RECIPE_LATE);
	assert_true(s.z_max == 448 && !s.round_first);
	assert_int_equal(s.search, SEARCH_MSE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recipe_rows), cmocka_unit_test(methods), cmocka_unit_test(orders),
		cmocka_unit_test(groups), cmocka_unit_test(formats), cmocka_unit_test(second_level),
		cmocka_unit_test(float_groups), cmocka_unit_test(float_methods), cmocka_unit_test(ties),
		cmocka_unit_test(scale_types_of_all), cmocka_unit_test(scales_of_rows),
		cmocka_unit_test(protective_range),
		cmocka_unit_test(tiles), cmocka_unit_test(several_paths), cmocka_unit_test(paths_gain),
		cmocka_unit_test(turns),
		cmocka_unit_test(by_hessian), cmocka_unit_test(searches_gain),
		cmocka_unit_test(agreement), cmocka_unit_test(any_threads),
		cmocka_unit_test(together), cmocka_unit_test(dead_channels),
		cmocka_unit_test(damping_ladder), cmocka_unit_test(bad_data),
		cmocka_unit_test(all_zero), cmocka_unit_test(no_hessian), cmocka_unit_test(sense),
		cmocka_unit_test(symmetric_groups), cmocka_unit_test(on_device),
	};

	cpu_amx = false;		/* except in tiles() */
	linalg_init();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
