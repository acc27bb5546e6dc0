/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection_upload.c -- weights of projections on a device; see projection_device.h
 *
 * Weights are uploaded as effective weights, in float or, if the model computes in bf16, in bf16. Plain
 * weights in 16 bits are uploaded as they are stored, and converted there. There are two exceptions:
 *
 * - Bytes, if the weights and the inputs of a layer are integers of 8 bits with one scale for each row, or,
 *   in bf16, numbers of FP8. Products of integers are exact. Those of FP8 have errors below those of bf16.
 * - Packed words as they are stored, for few rows of inputs.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device_codes.h"
#include "device/device_open.h"
#include "forward/projection_device_private.h"
#include "quant/pack.h"

enum { ROWS = 16, SLAB = 64 << 20 };	/* SLAB: bytes of weights that are uploaded at once */

static size_t size_of(enum device_type type)
{
	return type == DEVICE_F32 ? sizeof(float) : is_bytes(type) ? 1 : sizeof(uint16_t);
}

/* Whether a layer is multiplied as bytes of integers; as bytes of FP8. */
static bool are_integers(const struct linear *l)
{
	const struct format *w = &l->storage, *x = &l->input.format;

	return linear_has_grid(l) && !l->compute.kind && l->groups == 1 && w->integers &&
		w->max <= INT8_MAX && x->integers && !x->asymmetric && x->max <= INT8_MAX;
}

static bool are_fp8(const struct linear *l)
{
	return l->compute.kind && !strcmp(l->compute.name, "e4m3fn") &&
		!strcmp(l->input.format.name, "e4m3fn");
}

/* Whether its packed words are multiplied, by few rows of inputs. */
static bool are_words(const struct projection *s, const struct linear *l)
{
	return s->rows && s->rows <= PRODUCT_FEW && s->type == COMPUTE_F32 && l->packed && !l->compute.kind &&
		l->group >= 0 && !l->group_index && device_codes_fit(&l->storage, (size_t)l->group);
}

static enum device_type type_of_layer(const struct projection *s, const struct linear *l)
{
	const bool bytes = !l->weight && linear_rounds(l) && l->in % 16 == 0 && l->out % 16 == 0;

	if (bytes && are_integers(l))
		return DEVICE_INT8;
	return bytes && s->type == COMPUTE_BF16 && are_fp8(l) ? DEVICE_E4M3 : plain_type(s);
}

static void put_plain(const struct projection *s, void *to, const struct linear *l)
{
	static const enum device_type stored[] = {
		[HALF_NONE] = DEVICE_F32, [HALF_F16] = DEVICE_F16, [HALF_BF16] = DEVICE_BF16 };
	const enum device_type from = stored[l->weight_type];
	const size_t n = l->out * l->in, bytes = n * size_of(from);
	void *raw = from == plain_type(s) ? to : workspace_of(&s->on_device->raw, bytes);

	s->device->upload(raw, l->weight, bytes);
	if (raw != to)
		s->device->convert(n, to, plain_type(s), raw, from);
}

/* Rows of Ŵ, without the scales of rows if the layer is bytes. */
static void rebuild(const struct linear *l, size_t first, size_t n, float w[n][l->in], bool units)
{
	if (!units)
		linear_weight(l, first, n, w);
	for (size_t o = 0; units && o < n; o++)
		for (size_t i = 0; i < l->in; i += LINEAR_COLUMNS)
			linear_units(l, first + o, i, min(LINEAR_COLUMNS, l->in - i), w[o] + i);
}

/* Computes Ŵ in slabs of rows. */
static void put_rebuilt(const struct projection *s, enum device_type type, void *to, const struct linear *l)
{
	const size_t in = l->in, each = max(1, SLAB / (in * sizeof(float)));
	float (*slab)[in] = xalloc(min(each, l->out), sizeof *slab);

	for (size_t o = 0, n; o < l->out; o += n) {
		void *at = (char *)to + o * in * size_of(type);

		n = min(each, l->out - o);
		#pragma omp parallel for num_threads(threads) schedule(static)
		for (size_t i = 0; i < n; i += ROWS)
			rebuild(l, o + i, min(ROWS, n - i), slab + i, is_bytes(type));
		if (type == DEVICE_F32) {
			s->device->upload(at, slab, n * sizeof *slab);
			continue;
		}
		s->device->upload(workspace_of(&s->on_device->raw, n * sizeof *slab), slab, n * sizeof *slab);
		s->device->convert(n * in, at, type, s->on_device->raw.memory, DEVICE_F32);
	}
	free(slab);
}

static void put_weight(const struct projection *s, enum device_type type, void *to, const struct linear *l)
{
	if (l->weight)
		put_plain(s, to, l);
	else
		put_rebuilt(s, type, to, l);
}

static void put_scales(const struct projection *s, float *to, const struct linear *l)
{
	float *scale = xalloc(l->out, sizeof *scale);

	for (size_t o = 0; o < l->out; o++)
		scale[o] = linear_unit_scale(l, o, 0);
	s->device->upload(to, scale, l->out * sizeof *scale);
	free(scale);
}

/* Uploads packed words, scales and zeros. */
static void put_words(const struct device *d, struct device_packed *p, const struct linear *l)
{
	const size_t scales = linear_scales(l), words = l->out * pack_words(l->storage.bits, l->in);
	float *scale = xalloc(scales, sizeof *scale);

	for (size_t i = 0; i < scales; i++)
		scale[i] = l->scale_tensor ? l->scale[i] / *l->scale_tensor : l->scale[i];
	*p = (struct device_packed){ .out = l->out, .in = l->in, .group = (size_t)l->group };
	device_codes(d, &l->storage, p);
	p->packed = device_copy(d, l->packed, words * sizeof *p->packed);
	p->scale = device_copy(d, scale, scales * sizeof *scale);
	p->zero = device_copy(d, l->zero, scales);
	free(scale);
}

static void free_words(const struct device *d, struct device_packed *p)
{
	device_free(d, (void *)(uintptr_t)p->table), device_free(d, (void *)(uintptr_t)p->packed);
	device_free(d, (void *)(uintptr_t)p->scale), device_free(d, (void *)(uintptr_t)p->zero);
	*p = (struct device_packed){ 0 };
}

static void *new_weight(const struct projection *s, const struct linear *l)
{
	void *to = device_memory(s->device, l->out * l->in, size_of(plain_type(s)));

	put_weight(s, plain_type(s), to, l);
	return to;
}

static void put_branch(const struct projection *s, struct device_layer *y, const struct linear *l)
{
	device_free(s->device, y->a);
	device_free(s->device, y->b);
	y->a = y->b = NULL;
	if (!l->branch_a)
		return;
	y->a = new_weight(s, l->branch_a);
	y->b = new_weight(s, l->branch_b);
	if (linear_rounds(l->branch_a))
		y->format_a = device_format(&l->branch_a->input.format);
	if (linear_rounds(l->branch_b))
		y->format_b = device_format(&l->branch_b->input.format);
}

/* Divides the memory of weights among the layers. Returns whether all have to be uploaded again. */
static bool lay_out(const struct projection *s, struct device_projection *y)
{
	size_t bytes = 0;
	bool moved = false;

	for (size_t i = 0; i < s->layers; i++) {
		const struct linear *l = &s->layer[i].linear;
		struct device_layer *own = &y->layer[i];

		moved |= own->at != bytes;
		own->at = bytes;
		own->type = type_of_layer(s, l);
		own->words = are_words(s, l);
		bytes += own->words ? 0 : l->out * l->in * size_of(own->type);
	}
	if (y->bytes == bytes)
		return moved;
	device_free(s->device, y->weight);
	y->weight = device_memory(s->device, bytes, 1);
	y->bytes = bytes;
	return true;
}

static void put_layer(const struct projection *s, size_t i)
{
	const struct linear *l = &s->layer[i].linear;
	const struct device *d = s->device;
	struct device_projection *y = s->on_device;
	struct device_layer *own = &y->layer[i];

	free_words(d, &own->packed);
	if (own->words)
		put_words(d, &own->packed, l);
	else
		put_weight(s, own->type, (char *)y->weight + own->at, l);
	if (is_bytes(own->type))
		put_scales(s, y->scale + s->at[i], l);
	put_branch(s, own, l);
	online_upload(&s->after[i], d, l->out, true, &own->after);
	if (linear_rounds(l))
		own->format = device_format(&l->input.format);
}

void projection_upload(struct projection *s, size_t first, size_t n)
{
	const struct device *d = s->device;
	struct device_projection *y;

	if (!s->layers)
		return;
	y = s->on_device = s->on_device ? s->on_device : xalloc(1, sizeof *s->on_device);
	y->raw.device = y->rounded.device = y->low.device = y->after.device = y->rows.device = d;
	if (lay_out(s, y))
		first = 0, n = s->layers;
	y->scale = y->scale ? y->scale : device_memory(d, s->out, sizeof *y->scale);
	for (size_t i = first; i < first + n; i++)
		put_layer(s, i);
	online_upload(&s->online, d, s->in, false, &y->before);
	device_free(d, y->bias);
	y->bias = device_copy(d, s->bias, s->out * sizeof *s->bias);
}

void projection_drop(struct projection *s, bool all)
{
	struct device_projection *y = s->on_device;

	if (!y)
		return;
	for (size_t i = 0; i < LINEARS; i++) {
		device_free(s->device, y->layer[i].a);
		device_free(s->device, y->layer[i].b);
		y->layer[i].a = y->layer[i].b = NULL;
		free_words(s->device, &y->layer[i].packed);
		if (all)
			online_release(&y->layer[i].after, s->device);
	}
	device_free(s->device, y->bias), device_free(s->device, y->scale);
	y->bias = y->scale = NULL;
	if (!all)
		return;
	online_release(&y->before, s->device);
	device_free(s->device, y->weight);
	workspace_free(&y->raw), workspace_free(&y->rounded), workspace_free(&y->low);
	workspace_free(&y->after), workspace_free(&y->rows);
	free(y);
	s->on_device = NULL;
}
