/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * projection_device.c -- projections on a device; see projection_device.h
 *
 * Weights are uploaded as effective weights, in float or, if the model computes in bf16, in bf16. Plain
 * weights in 16 bits are uploaded as they are stored, and converted there. If the weights and the inputs of
 * a layer are integers of 8 bits with one scale for each row, or, in bf16, numbers of FP8, the bytes are
 * multiplied: integers exactly, FP8 with errors below those of bf16. For few rows of inputs, packed words
 * are multiplied as they are stored, and the branch is added by the same pass. Layers that follow each
 * other, whose inputs are rounded in the same way, are one product.
 */
#include "forward/projection_device.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device_codes.h"
#include "device/device_open.h"
#include "quant/pack.h"

enum { ROWS = 16, SLAB = 64 << 20 };	/* SLAB: bytes of weights that are uploaded at once */

struct device_layer {
	enum device_type type;
	size_t at;			/* bytes before its weights */
	void *a, *b;			/* of the branch */
	bool few;			/* its packed words are multiplied */
	struct device_packed packed;
	struct device_rotation after;
	struct device_format format, format_a, format_b;	/* of rounded inputs */
};

struct device_projection {
	size_t bytes;
	void *weight;			/* of all layers, in their order */
	float *bias;
	float *scale;			/* [out] of layers that are bytes */
	struct device_rotation before;
	struct device_layer layer[LINEARS];
	struct workspace raw, rounded, low, after, rows;
};

static enum device_type type_of(const struct projection *s)
{
	return s->type == COMPUTE_BF16 ? DEVICE_BF16 : DEVICE_F32;
}

static bool is_bytes(enum device_type type)
{
	return type == DEVICE_INT8 || type == DEVICE_E4M3;
}

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

/* Whether its packed words are multiplied by few rows of inputs. */
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
	return bytes && s->type == COMPUTE_BF16 && are_fp8(l) ? DEVICE_E4M3 : type_of(s);
}

/* ---- uploads ---- */

static void put_plain(const struct projection *s, void *to, const struct linear *l)
{
	static const enum device_type stored[] = {
		[HALF_NONE] = DEVICE_F32, [HALF_F16] = DEVICE_F16, [HALF_BF16] = DEVICE_BF16 };
	const enum device_type from = stored[l->weight_type];
	const size_t n = l->out * l->in, bytes = n * size_of(from);
	void *raw = from == type_of(s) ? to : workspace_of(&s->on_device->raw, bytes);

	s->device->upload(raw, l->weight, bytes);
	if (raw != to)
		s->device->convert(n, to, type_of(s), raw, from);
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
	void *to = device_memory(s->device, l->out * l->in, size_of(type_of(s)));

	put_weight(s, type_of(s), to, l);
	return to;
}

static void require(const struct projection *s, const struct layer *l)
{
	const struct linear *x = &l->linear;

	if (s->type == COMPUTE_INT16)
		die("%s: --compute-type int16 runs on the processor only (--device cpu)", s->device->name);
	if (x->splits)
		die("%s: %s: split columns run on the processor only (--device cpu)", s->device->name,
			l->path);
	if (x->input.mode == INPUT_STATIC_MODALITY && x->input.modalities > 1)
		die("%s: %s: input scales of several modalities run on the processor only (--device cpu)",
			s->device->name, l->path);
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

void projection_upload(struct projection *s, size_t first, size_t n)
{
	const struct device *d = s->device;
	struct device_projection *y;
	size_t bytes = 0;
	bool moved = false;

	if (!s->layers)
		return;
	y = s->on_device = s->on_device ? s->on_device : xalloc(1, sizeof *s->on_device);
	y->raw.device = y->rounded.device = y->low.device = y->after.device = y->rows.device = d;
	for (size_t i = 0; i < s->layers; i++) {
		const struct linear *l = &s->layer[i].linear;

		moved |= y->layer[i].at != bytes;
		y->layer[i].at = bytes;
		y->layer[i].type = type_of_layer(s, l);
		y->layer[i].few = are_words(s, l);
		bytes += y->layer[i].few ? 0 : l->out * l->in * size_of(y->layer[i].type);
	}
	if (y->bytes != bytes) {
		device_free(d, y->weight);
		y->weight = device_memory(d, bytes, 1);
		y->bytes = bytes;
		moved = true;
	}
	if (moved)
		first = 0, n = s->layers;
	y->scale = y->scale ? y->scale : device_memory(d, s->out, sizeof *y->scale);
	for (size_t i = first; i < first + n; i++) {
		const struct linear *l = &s->layer[i].linear;

		require(s, &s->layer[i]);
		free_words(d, &y->layer[i].packed);
		if (y->layer[i].few)
			put_words(d, &y->layer[i].packed, l);
		else
			put_weight(s, y->layer[i].type, (char *)y->weight + y->layer[i].at, l);
		if (is_bytes(y->layer[i].type))
			put_scales(s, y->scale + s->at[i], l);
		put_branch(s, &y->layer[i], l);
		online_upload(&s->after[i], d, l->out, true, &y->layer[i].after);
		if (linear_rounds(l))
			y->layer[i].format = device_format(&l->input.format);
	}
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

/* ---- products ---- */

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

	s->device->product(&(struct device_product){ m, l->rank, s->in, l->rank, type_of(s), ax, input,
		own->a, false });
	return ax;
}

/* Whether the product of the layer adds the branch. */
static bool is_fused(const struct projection *s, size_t i)
{
	const struct linear *l = &s->layer[i].linear;

	return s->on_device->layer[i].few && l->branch_a && !linear_rounds(l->branch_b);
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
	s->device->product(&(struct device_product){ m, l->out, rank, stride, type_of(s), y, input, own->b,
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

	if (own->few) {
		struct device_packed packed = own->packed;

		if (is_fused(s, i)) {
			packed.ax = low_rank(s, i, m, x);
			packed.rank = l->rank, packed.b = own->b, packed.type = type_of(s);
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
	return own[0].type == own[1].type && !own[0].few && !own[1].few && linear_inputs_agree(a, b) &&
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
