/* SPDX-License-Identifier: GPL-3.0-or-later */
/* random_scale.c -- see random_scale.h */
#include "transform/random_scale.h"
#include <math.h>
#include "base/error.h"
#include "base/random.h"
#include "model/layer.h"

static const struct report_column columns[] = {
	{ "smallest", REPORT_NONE }, { "largest", REPORT_NONE },
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const struct report_table table = { .column = columns, .columns = COLUMNS };

static double *draw(const struct random_scale *r, const char *path, size_t n)
{
	const struct random_stream stream = random_open(r->seed, path);
	double *factor = xalloc(n, sizeof *factor), smallest = INFINITY, largest = 0;

	for (size_t j = 0; j < n; j++) {
		factor[j] = exp2(random_uniform(&stream, j) / 2);
		smallest = fmin(smallest, factor[j]);
		largest = fmax(largest, factor[j]);
	}
	report_row(r->report, &table, path, (double[COLUMNS]){ smallest, largest });
	return factor;
}

void random_scale_norm(void *arg, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm)
{
	bool read = false;

	(void)part;
	for (const struct residual_layer *l = here->layer; l < here->layer + here->layers; l++)
		read |= invariant_reads(l) && l->norm == (int64_t)i && l->role != ROLES;
	if (read)
		norm->factor = draw(arg, here->norm[i].path, norm->n);
}

double *random_scale_source(void *arg, const struct part *part, const struct residual *here, size_t i)
{
	const struct residual_layer *l = &here->layer[i];
	struct layer layer = layer_read(part, l->path, l->out, l->in);
	const bool fits = !layer.linear.rotation_in.hadamard;

	layer_free(&layer);
	return fits ? draw(arg, l->path, l->in / l->shared) : NULL;
}
