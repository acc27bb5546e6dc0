/* SPDX-License-Identifier: GPL-3.0-or-later */
/* norm.c -- see norm.h */
#include "forward/norm.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "device/device_open.h"
#include "model/layer.h"
#include "num/vector.h"

struct norm norm_read(const struct part *part, const char *path, const struct stack *s, size_t width)
{
	struct norm y = { .kind = s->arch->norm_kind, .n = width, .eps = s->eps };
	char *kind = part_text(part, path, "norm");
	char *gain = xformat("%s/weight", path), *shift = xformat("%s/bias", path);

	if (kind && !strcmp(kind, "rms"))
		y.kind = NORM_RMS;
	else if (kind && !strcmp(kind, "layer"))
		y.kind = NORM_LAYER;
	else if (kind)
		die("%s: %s: attribute norm is '%s', expected rms or layer", part_name(part), path, kind);
	y.gain = layer_vector(part, gain, width);
	if (!y.gain)
		die("%s: %s: is missing", part_name(part), gain);
	for (size_t i = 0; i < width; i++)
		y.gain[i] += s->arch->norm_offset;
	y.shift = layer_vector(part, shift, width);
	if (!kind && y.kind == NORM_LAYER && !y.shift)
		die("%s: %s: is missing", part_name(part), shift);
	free(kind);
	free(gain);
	free(shift);
	return y;
}

void norm_free(struct norm *n)
{
	device_free(n->device, n->gain);
	device_free(n->device, n->shift);
	*n = (struct norm){ 0 };
}

void norm_move(struct norm *n, const struct device *d)
{
	float *gain = n->gain, *shift = n->shift;

	if (!d || !n->n)
		return;
	n->device = d;
	n->gain = device_copy(d, gain, n->n * sizeof *gain);
	n->shift = device_copy(d, shift, n->n * sizeof *shift);
	free(gain), free(shift);
}

void norm_vectors(const struct norm *n, struct device_rows r, float *y, const float *x)
{
	n->device->norm(&(struct device_norm){ n->kind == NORM_LAYER, n->eps, n->gain, n->shift }, r, y, x);
}

void norm_apply(const struct norm *n, size_t m, float y[m][n->n], const float x[m][n->n])
{
	if (n->device)
		norm_vectors(n, (struct device_rows){ m, 1, n->n, n->n }, y[0], x[0]);
	else if (n->kind == NORM_RMS)
		vector_rmsnorm(m, n->n, y, x, n->gain, n->shift, n->eps);
	else
		vector_layernorm(m, n->n, y, x, n->gain, n->shift, n->eps);
}
