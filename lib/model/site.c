/* SPDX-License-Identifier: GPL-3.0-or-later */
/* site.c -- linear layers that share an input; see site.h */
#include "model/site.h"
#include "base/error.h"
#include "model/weight.h"
#include <stdlib.h>
#include <string.h>

void site_set(struct site *s, size_t i, const struct linear *l)
{
	s->layer[i].linear = *l;
	weight_make(s->type, l, 0, l->out, s->weight[i]);
	if (l->bias && !s->bias)
		s->bias = xalloc(s->out, sizeof *s->bias);
	if (l->bias)
		memcpy(s->bias + s->at[i], l->bias, l->out * sizeof *l->bias);
}

void site_read(struct site *s, const struct image *image, const struct config *c, size_t index, enum site_name site)
{
	void *memory = s->weight[0];
	size_t bytes = 0, end = 0;

	s->type = c->compute_type;
	s->in = config_in(c, site);
	for (const struct linear_row *row = c->arch->linear; row->name; row++) {
		struct layer *l = &s->layer[s->layers];
		char *path;

		if (row->site != site)
			continue;
		path = config_path(c, index, row->name);
		*l = layer_read(image, path, config_out(c, row->role), s->in);
		if (c->bias[row->role] && !l->linear.bias)
			die("%s: %s/bias: is missing; this model's layers of the kind have one", image_name(image), path);
		s->at[s->layers++] = s->out;
		s->out += l->linear.out;
		bytes += weight_size(s->type, l->linear.out, s->in);
		free(path);
	}
	if (!memory || s->bytes != bytes) {
		free(memory);
		memory = xalloc(bytes, 1);
	}
	s->bytes = bytes;
	for (size_t i = 0; i < s->layers; end += weight_size(s->type, s->layer[i++].linear.out, s->in))
		s->weight[i] = (char *)memory + end;
	for (size_t i = 0; i < s->layers; i++)
		site_set(s, i, &s->layer[i].linear);
}

void site_empty(struct site *s)
{
	for (size_t i = 0; i < s->layers; i++)
		layer_free(&s->layer[i]);
	free(s->bias);
	*s = (struct site){ .bytes = s->bytes, .weight = { s->weight[0] } };
}

void site_free(struct site *s)
{
	site_empty(s);
	free(s->weight[0]);
	*s = (struct site){ 0 };
}

static const void *input_of(const struct site *s, const struct linear *l, size_t m, const float x[m][s->in], struct room *room)
{
	if (input_same(s->type, l))
		return x;
	if (room->bytes < input_size(s->type, m, s->in)) {
		free(room->y);
		room->bytes = input_size(s->type, m, s->in);
		room->y = xalloc(room->bytes, 1);
	}
	input_make(s->type, l, m, room->y, x);
	return room->y;
}

void site_apply(const struct site *s, size_t m, size_t stride, float y[m][stride], const float x[m][s->in], struct room *room,
	bool add)
{
	const void *input = NULL;

	for (size_t i = 0, j; i < s->layers; i = j) {
		const struct linear *l = &s->layer[i].linear;
		size_t at = s->at[i];
		bool plain = l->act_mode == ACT_NONE, same = i && plain && s->layer[i - 1].linear.act_mode == ACT_NONE;

		if (!same)
			input = input_of(s, l, m, x, room);
		for (j = i + 1; s->type == COMPUTE_F32 && plain && j < s->layers && s->layer[j].linear.act_mode == ACT_NONE; j++)
			;
		weight_product(s->type, m, (j < s->layers ? s->at[j] : s->out) - at, s->in, stride, (float (*)[stride])&y[0][at],
			input, s->weight[i], s->bias ? s->bias + at : NULL, add);
	}
}
