/* SPDX-License-Identifier: GPL-3.0-or-later */
/* projection.c -- linear layers that share an input; see projection.h */
#include "forward/projection.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"

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

/* Prepares the weights of layers first .. first + n - 1; of all, if they need other memory than before. */
static void prepare(struct projection *s, size_t first, size_t n)
{
	size_t bytes = 0, end = 0;

	for (size_t i = 0; i < s->layers; i++)
		bytes += product_size(&s->product[i], s->layer[i].linear.out);
	if (s->bytes != bytes) {
		free(s->memory);
		s->memory = xalloc(bytes, 1);
		s->bytes = bytes;
		first = 0, n = s->layers;
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
	s->product[i] = product_choose(&s->layer[i].linear, s->type, s->rows);
	prepare(s, i, 1);
	set_bias(s, i);
}

/* One more layer, behind the others. */
static void add_layer(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const char *path, size_t out, bool bias)
{
	struct layer *l = &s->layer[s->layers];

	*l = layer_read(part, path, out, s->in);
	execution_layer(e, c, part, l);
	if (bias && !l->linear.bias)
		die("%s: %s/bias: is missing; this model's layers of the kind have one", part_name(part),
			path);
	if (s->layers && l->linear.online != s->layer->linear.online)
		die("%s: %s: attribute online_hadamard is %zu, expected %zu: %s has the same input",
			part_name(part), path, l->linear.online, s->layer->linear.online, s->layer->path);
	online_set(&s->online, s->in, l->linear.online);
	s->product[s->layers] = product_choose(&l->linear, s->type, s->rows);
	s->at[s->layers++] = s->out;
	s->out += l->linear.out;
}

static void begin(struct projection *s, const struct execution *e, size_t block, enum projection_name name,
	size_t in)
{
	s->name = name;
	s->block = block;
	s->type = e->compute_type;
	s->rows = e->rows;
	s->in = in;
}

void projection_layers(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e, const struct stack *stack, size_t index, enum projection_name name,
	size_t expert)
{
	begin(s, e, stack->first + index, name, stack_in(stack, name));
	for (const struct linear_row *row = stack->arch->linear; row->name; row++) {
		char *path;

		if (row->projection != name || !stack_has(stack, index, row))
			continue;
		path = stack_expert_path(stack, index, row->name, expert);
		add_layer(s, part, c, e, path, stack_out(stack, row->role), stack->bias[row->role]);
		free(path);
	}
}

void projection_patch(struct projection *s, const struct part *part, const struct config *c,
	const struct execution *e)
{
	const struct stack *encoder = config_encoder(c);

	begin(s, e, c->blocks, PROJECTION_PATCH, vision_numbers(&c->vision));
	add_layer(s, part, c, e, encoder->arch->embedding, encoder->hidden, encoder->arch->embedding_bias);
	projection_prepare(s);
}

void projection_prepare(struct projection *s)
{
	prepare(s, 0, s->layers);
	for (size_t i = 0; i < s->layers; i++)
		set_bias(s, i);
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
	for (size_t i = 0; i < s->layers; i++)
		layer_free(&s->layer[i]);
	free(s->bias);
	*s = (struct projection){ .bytes = s->bytes, .memory = s->memory, .online = s->online };
}

void projection_free(struct projection *s)
{
	projection_empty(s);
	online_free(&s->online);
	free(s->memory);
	*s = (struct projection){ 0 };
}

void *workspace_of(struct workspace *w, size_t bytes)
{
	if (w->bytes < bytes) {
		free(w->memory);
		w->memory = xalloc(bytes, 1);
		w->bytes = bytes;
	}
	return w->memory;
}

/* Layers from i on that are one product with it. */
static size_t joined(const struct projection *s, size_t i)
{
	size_t n = 1;

	while (i + n < s->layers && product_joins(&s->product[i], &s->product[i + n]))
		n++;
	return n;
}

/* Whether a layer before i multiplies the same, so that it is done. */
static bool is_done(const struct projection *s, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (product_input_same(&s->product[k], &s->product[i]))
			return true;
	return false;
}

/* Bytes of m rows that are turned, in front of what products need. */
static size_t bytes_rotated(const struct projection *s, size_t m)
{
	enum { LINE = 64 };

	return s->online.h.n ? ceil_div(m * s->in * sizeof(float), LINE) * LINE : 0;
}

/* m rows of x, turned, at the start of the workspace, which has room for `more` behind them. */
static const float *rotate(const struct projection *s, size_t m, const float *x, size_t more,
	struct workspace *workspace)
{
	float *y = workspace_of(workspace, bytes_rotated(s, m) + more);

	if (!s->online.h.n)
		return x;
	memcpy(y, x, m * s->in * sizeof *y);
	hadamard_product(&s->online.h, false, m, s->in, (float (*)[s->in])y);
	return y;
}

const float *projection_rotate(const struct projection *s, size_t m, const float *x,
	struct workspace *workspace)
{
	return rotate(s, m, x, 0, workspace);
}

void projection_show(const struct projection *s, const struct batch *batch, const float *x,
	struct workspace *workspace, const struct observer *observer)
{
	observe(observer, s->block, s->name, batch, s->in, projection_rotate(s, batch->rows, x, workspace));
}

void projection_apply(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	size_t stride, float y[m][stride], const float x[m][s->in], struct workspace *workspace,
	const struct observer *observer, bool add)
{
	const uint8_t *modality = batch->modality ? batch->modality + first : NULL;
	size_t more = 0;

	for (size_t i = 0; i < s->layers; i++)
		more = max(more, product_workspace(&s->product[i], m));
	x = (const float (*)[s->in])rotate(s, m, x[0], more, workspace);
	observe(observer, s->block, s->name, batch, s->in, x[0]);
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
			if (product_input_same(p, &s->product[j]))
				product_run(&s->product[j], 0, end - at, m, stride,
					(float (*)[stride])&y[0][at], input, bias, add);
		}
	}
}
