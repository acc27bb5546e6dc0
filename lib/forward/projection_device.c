/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection_device.c -- products of projections on a device; see projection_device.h
 *
 * Layers that follow each other, whose inputs are rounded in the same way, are one product. A product of
 * packed words adds the branch.
 */
#include <stdlib.h>
#include "base/error.h"
#include "device/device_open.h"
#include "forward/projection_device_private.h"

const float *projection_device_rotate(const struct projection *s, size_t m, const float *x,
	struct workspace *workspace)
{
	const struct device_rotation *r = s->on_device ? &s->on_device->before : NULL;
	const struct device *d = s->device;
	const size_t n = s->in;
	float *y, *signed_x;

	if (!r || (!r->order && !r->signs))
		return x;
	y = workspace_of(workspace, 2 * m * n * sizeof *y);
	signed_x = r->order ? y + m * n : y;
	if (r->signs) {
		d->add(m, n, n, signed_x, x, true);
		d->multiply_signs(m, n, signed_x, r->signs);
		x = signed_x;
	}
	if (r->order)
		d->rotate(m, n, n, r->order, y, x, r->matrix);
	return y;
}

void projection_device_observe(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	const float *x, const struct observer *observer)
{
	float *copy;

	if (!observer || !observer->on_input || observer->on_device) {
		observe(observer, s->block, s->name, batch, first, m, s->in, x);
		return;
	}
	copy = xalloc(m, s->in * sizeof *copy);
	s->device->download(copy, x, m * s->in * sizeof *copy);
	observe(observer, s->block, s->name, batch, first, m, s->in, copy);
	free(copy);
}

static struct device_rounding rounding_of(const struct linear *l, const struct device_format *f)
{
	return (struct device_rounding){ f, l->input.mode == INPUT_DYNAMIC_TOKEN ? 0 : *l->input.scale,
		l->input.clip };
}

/* x rounded as the layer specifies. */
static const float *rounded(const struct projection *s, const struct linear *l, const struct device_format *f,
	size_t m, const float *x, struct workspace *workspace)
{
	struct device_rounding r;
	float *y;

	if (!linear_rounds(l))
		return x;
	r = rounding_of(l, f);
	y = workspace_of(workspace, m * l->in * sizeof *y);
	s->device->round(&r, m, l->in, y, x);
	return y;
}

/* A x of layer i. */
static const float *low_rank(const struct projection *s, size_t i, size_t m, const float *x)
{
	struct device_projection *p = s->on_device;
	const struct device_layer *own = &p->layer[i];
	const struct linear *l = &s->layer[i].linear;
	const float *input = rounded(s, l->branch_a, &own->format_a, m, x, &p->rounded);
	float *ax = workspace_of(&p->low, m * l->rank * sizeof *ax);

	s->device->product(&(struct device_product){ m, l->rank, s->in, l->rank, plain_type(s), ax, input,
		own->a, false });
	return ax;
}

/* Whether the product of the layer adds the branch. */
static bool is_fused(const struct projection *s, size_t i)
{
	const struct linear *l = &s->layer[i].linear;

	return s->on_device->layer[i].words && l->branch_a && !linear_rounds(l->branch_b);
}

static void add_branch(const struct projection *s, size_t i, size_t m, size_t stride, float *y,
	const float *x)
{
	const struct linear *l = &s->layer[i].linear;
	struct device_projection *p = s->on_device;
	const struct device_layer *own = &p->layer[i];
	const size_t rank = l->rank;
	const float *ax, *input;

	if (!l->branch_a || is_fused(s, i))
		return;
	ax = low_rank(s, i, m, x);
	input = rounded(s, l->branch_b, &own->format_b, m, ax, &p->rounded);
	s->device->product(&(struct device_product){ m, l->out, rank, stride, plain_type(s), y, input, own->b,
		true });
}

/* The product of layers from i on that have n outputs together. */
static void multiply(const struct projection *s, size_t i, size_t m, size_t n, size_t stride, float *y,
	const float *x, bool add)
{
	struct device_projection *p = s->on_device;
	const struct device_layer *own = &p->layer[i];
	const struct linear *l = &s->layer[i].linear;
	const void *w = (char *)p->weight + own->at;

	if (own->words) {
		struct device_packed packed = own->packed;

		if (is_fused(s, i)) {
			packed.ax = low_rank(s, i, m, x);
			packed.rank = l->rank, packed.b = own->b, packed.type = plain_type(s);
		}
		packed.m = m, packed.stride = stride, packed.add = add;
		packed.y = y;
		packed.x = rounded(s, l, &own->format, m, x, &p->rounded);
		s->device->packed(&packed);
		return;
	}
	if (is_bytes(own->type)) {
		const struct device_rounding r = rounding_of(l, &own->format);
		void *bytes = workspace_of(&p->rounded, m * s->in);
		float *row = workspace_of(&p->rows, m * sizeof *row);

		s->device->quantize(&r, m, s->in, bytes, own->type, row, x);
		s->device->bytes(&(struct device_bytes){ m, n, s->in, stride, own->type, y, bytes, w, row,
			p->scale + s->at[i], add });
		return;
	}
	s->device->product(&(struct device_product){ m, n, s->in, stride, own->type, y,
		rounded(s, l, &own->format, m, x, &p->rounded), w, add });
}

/* Computes layer i, whose outputs are rotated, and adds it to y or puts it there. */
static void run_rotated(const struct projection *s, size_t i, size_t m, size_t stride, float *y,
	const float *x, bool add)
{
	struct device_projection *p = s->on_device;
	const struct device_rotation *r = &p->layer[i].after;
	const size_t n = s->layer[i].linear.out;
	float *z = workspace_of(&p->after, 2 * m * n * sizeof *z), *undone = r->order ? z + m * n : z;

	multiply(s, i, m, n, n, z, x, false);
	add_branch(s, i, m, n, z, x);
	if (r->order)
		s->device->rotate(m, n, n, r->order, undone, z, r->matrix);
	if (r->signs)
		s->device->multiply_signs(m, n, undone, r->signs);
	s->device->add(m, n, stride, y, undone, !add);
}

/* Whether layer i is one product with the layer after it. */
static bool joins(const struct projection *s, size_t i)
{
	const struct device_layer *own = &s->on_device->layer[i];
	const struct linear *a = &s->layer[i].linear, *b;

	if (i + 1 == s->layers)
		return false;
	b = &s->layer[i + 1].linear;
	return own[0].type == own[1].type && !own[0].words && !own[1].words && linear_inputs_agree(a, b) &&
		!a->branch_a && !b->branch_a && !online_rotates(&s->after[i]) &&
		!online_rotates(&s->after[i + 1]);
}

void projection_device_apply(const struct projection *s, size_t m, size_t stride, float *y, const float *x,
	bool add)
{
	const struct device_projection *p = s->on_device;

	for (size_t i = 0, last; i < s->layers; i = last + 1) {
		size_t end;

		for (last = i; joins(s, last); last++)
			;
		end = last + 1 < s->layers ? s->at[last + 1] : s->out;
		if (online_rotates(&s->after[i])) {
			run_rotated(s, i, m, stride, y + s->at[i], x, add);
			continue;
		}
		multiply(s, i, m, end - s->at[i], stride, y + s->at[i], x, add);
		add_branch(s, i, m, stride, y + s->at[i], x);
	}
	if (p->bias)
		s->device->add_bias(m, s->out, stride, y, p->bias);
}
