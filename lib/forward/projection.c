/* SPDX-License-Identifier: GPL-3.0-or-later */
/* projection.c -- linear layers that share an input; see projection.h */
#include "forward/projection.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device_open.h"
#include "forward/projection_device.h"
#include "model/layer_ref.h"

enum { FEW_NUMBERS = 1 << 16 };	/* up to which one thread is faster */

static void set_bias(struct projection *s, size_t i)
{
	const struct linear *l = &s->layer[i].linear;

	if (l->bias && !s->bias)
		s->bias = xalloc(s->out, sizeof *s->bias);
	if (l->bias)
		memcpy(s->bias + s->at[i], l->bias, l->out * sizeof *l->bias);
	else if (s->bias)
		memset(s->bias + s->at[i], 0, l->out * sizeof *s->bias);
}

/* Prepares the weights of layers first .. first + n - 1, or of all layers if the size of the memory changes.
 */
static void prepare_weights(struct projection *s, size_t first, size_t n)
{
	size_t bytes = 0, end = 0;

	for (size_t i = 0; i < s->layers; i++)
		bytes += product_size(&s->product[i], s->layer[i].linear.out);
	if (s->bytes != bytes) {
		first = 0, n = s->layers;
		free(s->memory);
		s->memory = xalloc(bytes, 1);
		s->bytes = bytes;
	}
	for (size_t i = 0; i < s->layers; i++) {
		if (i >= first && i < first + n)
			product_make(&s->product[i], 0, s->layer[i].linear.out, (char *)s->memory + end);
		end += product_size(&s->product[i], s->layer[i].linear.out);
	}
}

void projection_set(struct projection *s, size_t i, const struct linear *l)
{
	s->layer[i].linear = *l;
	online_rotation(&s->online, s->in, &l->rotation_in);
	online_rotation(&s->after[i], l->out, &l->rotation_out);
	set_bias(s, i);
	if (s->device) {
		projection_upload(s, i, 1);
		return;
	}
	s->product[i] = product_choose(&s->layer[i].linear, s->type, s->rows);
	prepare_weights(s, i, 1);
}

/* The input is rotated once for all layers. */
static void check_rotation(const struct projection *s, const struct part *part, const struct layer *l)
{
	const struct linear_rotation *own = &l->linear.rotation_in, *first = &s->layer->linear.rotation_in;

	if (!s->layers)
		return;
	if (own->hadamard != first->hadamard)
		die("%s: %s: attribute online_hadamard is %zu, expected %zu: %s has the same input",
			part_name(part), l->path, own->hadamard, first->hadamard, s->layer->path);
	if (!linear_rotations_agree(s->in, own, first))
		die("%s: %s/input_signs: differ from those of %s, which has the same input",
			part_name(part), l->path, s->layer->path);
}

/* Appends a layer. */
static void projection_add(struct projection *s, const struct part *part, const struct execution *e,
	bool visual,
	const char *path, size_t out, bool bias)
{
	struct layer *l = &s->layer[s->layers];

	*l = layer_read(part, path, out, s->in);
	execution_layer(e, part, l, visual);
	if (bias && !l->linear.bias)
		die("%s: %s/bias: is missing; such layers of this model have a bias", part_name(part),
			path);
	check_rotation(s, part, l);
	online_rotation(&s->online, s->in, &l->linear.rotation_in);
	online_rotation(&s->after[s->layers], l->linear.out, &l->linear.rotation_out);
	s->product[s->layers] = product_choose(&l->linear, s->type, s->rows);
	s->at[s->layers++] = s->out;
	s->out += l->linear.out;
}

static void projection_begin(struct projection *s, const struct execution *e, size_t block,
	enum projection_name name,
	size_t in)
{
	s->name = name;
	s->block = block;
	s->type = e->compute_type;
	s->rows = e->rows;
	s->device = e->device;
	s->in = in;
}

void projection_layers(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert)
{
	projection_begin(s, e, stack->first + index, name, stack_in(stack, name));
	for (const struct linear_row *row = stack->arch->linear; row->name; row++) {
		char *path;

		if (row->projection != name || !stack_has(stack, index, row))
			continue;
		path = stack_expert_path(stack, index, row->name, expert);
		projection_add(s, part, e, stack != config_last(c), path, stack_out(stack, row->role),
			stack->bias[row->role]);
		free(path);
	}
}

void projection_patch(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e)
{
	const struct stack *encoder = config_encoder(c);

	projection_begin(s, e, c->blocks, PROJECTION_PATCH, vision_numbers(&c->vision));
	projection_add(s, part, e, true, encoder->arch->embedding, encoder->hidden,
		encoder->arch->embedding_bias);
	projection_prepare(s);
}

void projection_prepare(struct projection *s)
{
	if (!s->device)
		prepare_weights(s, 0, s->layers);
	for (size_t i = 0; i < s->layers; i++)
		set_bias(s, i);
	if (s->device)
		projection_upload(s, 0, s->layers);
}

void projection_read(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert)
{
	projection_layers(s, part, c, e, stack, index, name, expert);
	projection_prepare(s);
}

void projection_empty(struct projection *s)
{
	struct online after[LINEARS];

	projection_drop(s, false);
	for (size_t i = 0; i < s->layers; i++)
		layer_free(&s->layer[i]);
	free(s->bias);
	s->online.signs = NULL;
	for (size_t i = 0; i < LINEARS; i++)
		s->after[i].signs = NULL;
	memcpy(after, s->after, sizeof after);
	*s = (struct projection){ .bytes = s->bytes, .memory = s->memory, .online = s->online,
		.device = s->device, .on_device = s->on_device };
	memcpy(s->after, after, sizeof after);
}

void projection_free(struct projection *s)
{
	projection_empty(s);
	projection_drop(s, true);
	online_free(&s->online);
	for (size_t i = 0; i < LINEARS; i++)
		online_free(&s->after[i]);
	free(s->memory);
	*s = (struct projection){ 0 };
}

void *workspace_of(struct workspace *w, size_t bytes)
{
	if (w->bytes < bytes) {
		device_free(w->device, w->memory);
		w->memory = device_memory(w->device, bytes, 1);
		w->bytes = bytes;
	}
	return w->memory;
}

void workspace_free(struct workspace *w)
{
	device_free(w->device, w->memory);
	*w = (struct workspace){ 0 };
}

/* Number of layers from i on that are one product with layer i. */
static size_t joined(const struct projection *s, size_t i)
{
	size_t n = 1;

	while (i + n < s->layers && product_joins(&s->product[i], &s->product[i + n]) &&
			!online_rotates(&s->after[i]) && !online_rotates(&s->after[i + n]))
		n++;
	return n;
}

/* Whether layer i was multiplied already, with an earlier layer of the same input. */
static bool is_done(const struct projection *s, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (product_input_same(&s->product[k], &s->product[i]))
			return true;
	return false;
}

static size_t bytes_of_rows(size_t m, size_t n)
{
	enum { LINE = 64 };

	return ceil_div(m * n * sizeof(float), LINE) * LINE;
}

/* Parts of the workspace: rotated inputs, then workspace of the product, then outputs before the inverse
 * rotation. Bytes of the first: */
static size_t bytes_rotated(const struct projection *s, size_t m)
{
	return online_rotates(&s->online) ? bytes_of_rows(m, s->in) : 0;
}

/* Bytes of the third. */
static size_t bytes_after(const struct projection *s, size_t m)
{
	size_t n = 0;

	for (size_t i = 0; i < s->layers; i++)
		if (online_rotates(&s->after[i]))
			n = max(n, s->layer[i].linear.out);
	return bytes_of_rows(m, n);
}

/* Rotates m rows of x into the start of the workspace, and reserves `more` bytes after them. */
static const float *rotate(const struct projection *s, size_t m, const float *x, size_t more,
	struct workspace *workspace)
{
	float *y = workspace_of(workspace, bytes_rotated(s, m) + more);

	if (!online_rotates(&s->online))
		return x;
	memcpy(y, x, m * s->in * sizeof *y);
	online_apply(&s->online, s->in, m, (float (*)[s->in])y);
	return y;
}

const float *projection_observed(const struct projection *s, size_t m, const float *x,
	struct workspace *workspace)
{
	if (linear_own_rotation(&s->layer->linear.rotation_in))
		return x;
	if (s->device)
		return projection_device_rotate(s, m, x, workspace);
	return rotate(s, m, x, 0, workspace);
}

void projection_observe(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	const float *x, struct workspace *workspace, const struct observer *observer)
{
	x = projection_observed(s, m, x, workspace);
	if (s->device)
		projection_device_observe(s, batch, first, m, x, observer);
	else
		observe(observer, s->block, s->name, batch, first, m, s->in, x);
}

/* Computes layer i with a rotation of outputs. z: memory for the outputs before the inverse rotation. */
static void run_rotated(const struct projection *s, size_t i, size_t m, size_t stride, float y[m][stride],
	const void *input, void *z, bool add)
{
	const size_t n = s->layer[i].linear.out, at = s->at[i];
	float (*rows)[n] = z;

	product_run(&s->product[i], 0, n, m, n, rows, input, NULL, false);
	online_undo(&s->after[i], n, m, rows);
	#pragma omp parallel for num_threads(threads) if (m * n > FEW_NUMBERS) schedule(static)
	for (size_t t = 0; t < m; t++)
		for (size_t o = 0; o < n; o++) {
			const float v = rows[t][o] + (s->bias ? s->bias[at + o] : 0);

			y[t][at + o] = add ? y[t][at + o] + v : v;
		}
}

static void apply(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	size_t stride, float y[m][stride], const float x[m][s->in], struct workspace *workspace,
	const struct observer *observer, bool add)
{
	const uint8_t *modality = batch->modality ? batch->modality + first : NULL;
	const float *before = linear_own_rotation(&s->layer->linear.rotation_in) ? x[0] : NULL;
	size_t more = 0;

	for (size_t i = 0; i < s->layers; i++)
		more = max(more, product_workspace(&s->product[i], m));
	more = ceil_div(more, sizeof(float)) * sizeof(float);
	x = (const float (*)[s->in])rotate(s, m, x[0], more + bytes_after(s, m), workspace);
	observe(observer, s->block, s->name, batch, first, m, s->in, before ? before : x[0]);
	for (size_t i = 0; i < s->layers; i++) {
		const struct product *p = &s->product[i];
		const void *input;

		if (is_done(s, i))
			continue;
		input = product_input(p, m, (char *)workspace->memory + bytes_rotated(s, m), x, modality);
		for (size_t j = i, n; j < s->layers; j += n) {
			const size_t at = s->at[j];
			const float *bias = s->bias ? s->bias + at : NULL;
			size_t end;

			n = joined(s, j);
			end = j + n < s->layers ? s->at[j + n] : s->out;
			if (!product_input_same(p, &s->product[j]))
				continue;
			if (online_rotates(&s->after[j]))
				run_rotated(s, j, m, stride, y, input, (char *)workspace->memory +
					bytes_rotated(s, m) + more, add);
			else
				product_run(&s->product[j], 0, end - at, m, stride,
					(float (*)[stride])&y[0][at], input, bias, add);
		}
	}
}

/* apply() to one row, as the first of PRODUCT_APART rows. */
static void apply_padded(const struct projection *s, const struct batch *batch, size_t first, float y[s->out],
	const float x[s->in], struct workspace *workspace, bool add)
{
	float (*in)[s->in] = xalloc(PRODUCT_APART, sizeof *in);
	float (*out)[s->out] = xalloc(PRODUCT_APART, sizeof *out);
	const uint8_t modality[PRODUCT_APART] = { batch->modality ? batch->modality[first] : 0 };
	const struct batch padded = { .rows = PRODUCT_APART, .modality = modality };

	memcpy(in, x, sizeof *in);
	memcpy(out, y, sizeof *out);
	apply(s, &padded, 0, PRODUCT_APART, s->out, out, (const float (*)[s->in])in, workspace, NULL, add);
	memcpy(y, out, sizeof *out);
	free(in), free(out);
}

void projection_apply(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	size_t stride, float y[m][stride], const float x[m][s->in], struct workspace *workspace,
	const struct observer *observer, bool add)
{
	if (s->device) {
		const float *rotated = projection_device_rotate(s, m, x[0], workspace);

		projection_device_observe(s, batch, first, m,
			linear_own_rotation(&s->layer->linear.rotation_in) ? x[0] : rotated, observer);
		projection_device_apply(s, m, stride, y[0], rotated, add);
		return;
	}
	if (!batch->apart) {
		apply(s, batch, first, m, stride, y, x, workspace, observer, add);
		return;
	}
	assert(!observer);
	for (size_t t = 0, some; t < m; t += some) {
		some = min(PRODUCT_FEW, m - t);
		if (some < PRODUCT_APART)
			apply_padded(s, batch, first + t, y[t], x[t], workspace, add);
		else
			apply(s, batch, first + t, some, stride, y + t, x + t, workspace, NULL, add);
	}
}
