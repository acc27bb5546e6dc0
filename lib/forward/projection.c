/* SPDX-License-Identifier: GPL-3.0-or-later */
/* projection.c -- linear layers that share an input; see projection.h */
#include "forward/projection.h"
#include "base/error.h"
#include "forward/weight.h"
#include <stdlib.h>
#include <string.h>

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

/* Products in bfloat16 are not made of packed words. */
static bool takes_packed(struct projection *s, size_t i)
{
	return s->few && s->type != COMPUTE_BF16 &&
		product_make(&s->product[i], &s->layer[i].linear, PRODUCT_BEST, s->type == COMPUTE_INT16);
}

/* Room for the weights of all layers that are not packed, and the weights in it. */
static void make_weights(struct projection *s)
{
	size_t bytes = 0, end = 0;

	for (size_t i = 0; i < s->layers; i++)
		bytes += s->packed[i] ? 0 : weight_size(s->type, s->layer[i].linear.out, s->in);
	if (s->bytes != bytes) {
		free(s->memory);
		s->memory = bytes ? xalloc(bytes, 1) : NULL;
	}
	s->bytes = bytes;
	for (size_t i = 0; i < s->layers; i++) {
		const struct linear *l = &s->layer[i].linear;

		if (s->packed[i])
			continue;
		s->weight[i] = (char *)s->memory + end;
		end += weight_size(s->type, l->out, s->in);
		weight_make(s->type, l, 0, l->out, s->weight[i]);
	}
}

void projection_set(struct projection *s, size_t i, const struct linear *l)
{
	const bool was = s->packed[i];

	s->layer[i].linear = *l;
	s->packed[i] = was && takes_packed(s, i);
	if (was && !s->packed[i])
		make_weights(s);
	else if (!was)
		weight_make(s->type, l, 0, l->out, s->weight[i]);
	set_bias(s, i);
}

void projection_read(struct projection *s, const struct image *image, const struct config *c, size_t index, enum projection_name projection)
{
	s->type = c->compute_type;
	s->few = c->few;
	s->in = config_in(c, projection);
	for (const struct linear_row *row = c->arch->linear; row->name; row++) {
		struct layer *l = &s->layer[s->layers];
		char *path;

		if (row->projection != projection)
			continue;
		path = config_path(c, index, row->name);
		*l = layer_read(image, path, config_out(c, row->role), s->in);
		layer_runs(image, l);
		if (c->bias[row->role] && !l->linear.bias)
			die("%s: %s/bias: is missing; this model's layers of the kind have one", image_name(image), path);
		s->at[s->layers] = s->out;
		s->packed[s->layers] = takes_packed(s, s->layers);
		s->layers++;
		s->out += l->linear.out;
		free(path);
	}
	make_weights(s);
	for (size_t i = 0; i < s->layers; i++)
		set_bias(s, i);
}

void projection_empty(struct projection *s)
{
	for (size_t i = 0; i < s->layers; i++)
		layer_free(&s->layer[i]);
	free(s->bias);
	*s = (struct projection){ .bytes = s->bytes, .memory = s->memory };
}

void projection_free(struct projection *s)
{
	projection_empty(s);
	free(s->memory);
	*s = (struct projection){ 0 };
}

static void *room_of(struct room *room, size_t bytes)
{
	if (room->bytes < bytes) {
		free(room->y);
		room->y = xalloc(bytes, 1);
		room->bytes = bytes;
	}
	return room->y;
}

static const void *input_of(const struct projection *s, const struct linear *l, size_t m, const float x[m][s->in], struct room *room)
{
	void *y;

	if (input_same(s->type, l))
		return x;
	y = room_of(room, input_size(s->type, m, s->in));
	input_make(s->type, l, m, y, x);
	return y;
}

static void apply_packed(const struct projection *s, size_t i, size_t m, size_t stride, float y[m][stride], const float x[m][s->in],
	struct room *room, bool add)
{
	for (size_t t = 0, n; t < m; t += n) {
		size_t parts = (m - t + PRODUCT_FEW - 1) / PRODUCT_FEW;

		n = (m - t + parts - 1) / parts;
		product_apply(&s->product[i], n, stride, (float (*)[stride])&y[t][s->at[i]], &x[t],
			room_of(room, product_room(n, s->in)), s->layer[i].linear.bias, add);
	}
}

/* Whether two layers can be one product of one input. */
static bool together(const struct projection *s, size_t i, size_t j)
{
	return s->type != COMPUTE_BF16 && !s->packed[i] && !s->packed[j] && s->layer[i].linear.input.mode == INPUT_AS_IS &&
		s->layer[j].linear.input.mode == INPUT_AS_IS;
}

void projection_apply(const struct projection *s, size_t m, size_t stride, float y[m][stride], const float x[m][s->in], struct room *room,
	bool add)
{
	const void *input = NULL;

	for (size_t i = 0, j; i < s->layers; i = j) {
		const struct linear *l = &s->layer[i].linear;
		size_t at = s->at[i];

		for (j = i + 1; j < s->layers && together(s, i, j); j++)
			;
		if (s->packed[i]) {
			apply_packed(s, i, m, stride, y, x, room, add);
			input = NULL;
			continue;
		}
		if (!input || l->input.mode != INPUT_AS_IS || s->layer[i - 1].linear.input.mode != INPUT_AS_IS)
			input = input_of(s, l, m, x, room);
		weight_product(s->type, m, (j < s->layers ? s->at[j] : s->out) - at, s->in, stride, (float (*)[stride])&y[0][at],
			input, s->weight[i], s->bias ? s->bias + at : NULL, add);
	}
}
