/* SPDX-License-Identifier: GPL-3.0-or-later */
/* suppress.c -- see suppress.h */
#include "transform/suppress.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/online.h"
#include "model/layer.h"
#include "model/layer_list.h"

enum { TILE = 16, INT8 = 127 };

const char *const suppress_bits[] = { [SUPPRESS_16] = "16", [SUPPRESS_8] = "8", NULL };

static const struct report_column columns[] = {
	{ "before", REPORT_MAX }, { "after", REPORT_MAX }, { "mean", REPORT_MAX }, { "split", REPORT_SUM },
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table table = { .column = columns, .columns = COLUMNS };

/* The sides of eq. 13. before: largest |w| before the rotation. after: of each channel after it. mean:
 * √n·|mean| of rows, by blocks of the Hadamard, which is the paper's left side. */
struct sides { double before, mean, *after; };

/* Adds rows [first, first + m) of the layer to s. */
static void measure_rows(const struct linear *l, const struct hadamard *h, size_t first, size_t m,
	struct sides *s)
{
	const size_t n = l->in;
	float *row = xalloc(n, sizeof *row);
	double *w = xalloc(m * n, sizeof *w);

	for (size_t i = 0; i < m; i++) {
		linear_weight(l, first + i, 1, (float (*)[n])row);
		for (size_t j = 0; j < n; j++) {
			w[i * n + j] = (double)row[j];
			s->after[j] = fmax(s->after[j], fabs(w[i * n + j]));
		}
	}
	hadamard_product_double(h, true, m, n, (double (*)[n])w);
	for (size_t i = 0; i < m * n; i += h->block) {
		double sum = 0;

		for (size_t j = i; j < i + h->block; j++) {
			s->before = fmax(s->before, fabs(w[j]));
			sum += w[j];
		}
		s->mean = fmax(s->mean, fabs(sum) / sqrt((double)h->block));
	}
	free(row), free(w);
}

/* after: [in], zeroed. */
static struct sides measure(const struct linear *l, double *after)
{
	struct sides y = { .after = after };
	struct online online = { 0 };

	online_set(&online, l->in, l->rotation_in.hadamard);
	#pragma omp parallel num_threads(threads)
	{
		struct sides own = { .after = xalloc(l->in, sizeof *own.after) };

		#pragma omp for schedule(static)
		for (size_t i = 0; i < l->out; i += TILE)
			measure_rows(l, &online.h, i, min(TILE, l->out - i), &own);
		#pragma omp critical
		{
			y.before = fmax(y.before, own.before);
			y.mean = fmax(y.mean, own.mean);
			for (size_t j = 0; j < l->in; j++)
				after[j] = fmax(after[j], own.after[j]);
		}
		free(own.after);
	}
	online_free(&online);
	return y;
}

/* Rounds the split column k to its stored form. */
static void keep_column(const struct suppress *s, struct linear *l, size_t k, float *weight, float *scale,
	float max)
{
	const size_t n = l->splits;
	uint16_t narrow;

	if (s->bits == SUPPRESS_8)
		scale[k] = max / INT8;
	for (size_t o = 0; o < l->out; o++) {
		float *x = &weight[o * n + k];

		if (s->bits == SUPPRESS_8)
			*x = rintf(*x / scale[k]);
		else {
			half_narrow(1, &narrow, x, HALF_F16);
			half_widen(1, x, &narrow, HALF_F16);
		}
	}
}

/* Splits channels of the layer and writes it. after: largest weight of each channel. */
static void split_layer(const struct suppress *s, const struct filter *f, struct layer *layer, size_t splits,
	double before, const double *after)
{
	struct linear *l = &layer->linear;
	const size_t n = l->in, size = half_size(l->weight_type);
	int32_t *index = xalloc(splits, sizeof *index);
	float *weight = xalloc(l->out * splits, sizeof *weight), *scale = xalloc(splits, sizeof *scale);
	char *rest = memcpy(xalloc(l->out * n, size), l->weight, l->out * n * size);

	l->splits = splits;
	for (size_t i = 0, k = 0; i < n; i++) {
		if (!(after[i] > before))
			continue;
		for (size_t o = 0; o < l->out; o++) {
			half_widen(1, &weight[o * splits + k], rest + (o * n + i) * size, l->weight_type);
			memset(rest + (o * n + i) * size, 0, size);
		}
		keep_column(s, l, k, weight, scale, (float)after[i]);
		index[k++] = (int32_t)i;
	}
	if (!half_finite(l->out * splits, weight, HALF_NONE))
		die("%s: %s: a split channel overflows f16; --bits 8 has scales",
			part_name(f->part), layer->path);
	l->weight = rest;
	l->split_index = index;
	l->split_weight = weight;
	l->split_scale = s->bits == SUPPRESS_8 ? scale : NULL;
	layer_write(f->out, f->part, layer->path, l);
	free(index), free(weight), free(scale), free(rest);
}

static void check_unsplit(const struct part *part, const struct layer *l)
{
	if (!l->linear.weight)
		die("%s: %s: is quantized already, expected a plain weight: run %s first", part_name(part),
			l->path, program);
	if (l->linear.splits)
		die("%s: %s: has split columns already", part_name(part), l->path);
	if (linear_two_sided(&l->linear))
		die("%s: %s: has %s, expected a layer with an online Hadamard alone", part_name(part),
			l->path, linear_two_sided(&l->linear));
	if (l->linear.branch_a)
		die("%s: %s: has a branch, expected a layer before fbq-run", part_name(part), l->path);
}

static void suppress_layer(struct suppress *s, const struct filter *f, struct layer *layer)
{
	const struct linear *l = &layer->linear;
	double *after = xalloc(l->in, sizeof *after), largest = 0;
	struct sides sides;
	size_t splits = 0;

	check_unsplit(f->part, layer);
	sides = measure(l, after);
	for (size_t i = 0; i < l->in; i++) {
		largest = fmax(largest, after[i]);
		splits += after[i] > sides.before;
	}
	report_row(f->report, &table, layer->path,
		(double[COLUMNS]){ sides.before, largest, sides.mean, (double)splits });
	if (splits)
		split_layer(s, f, layer, splits, sides.before, after);
	s->done++;
	s->split += splits;
	free(after);
}

void suppress_part(void *arg, const struct filter *f)
{
	struct suppress *s = arg;
	struct layer_list list = layer_list(f->part, f->config, s->layers);

	output_begin(f->out, f->part);
	for (size_t i = 0; i < list.n; i++) {
		struct layer layer = layer_read(f->part, list.layer[i].path, 0, 0);

		progress_part(list.layer[i].path, part_index(f->part), part_count(f->part), i, list.n);
		if (layer.linear.rotation_in.hadamard)
			suppress_layer(s, f, &layer);
		layer_free(&layer);
	}
	output_rest(f->out, f->part, NULL);
	output_end(f->out);
	layer_list_free(&list);
}
