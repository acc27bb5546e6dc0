/* SPDX-License-Identifier: GPL-3.0-or-later */
/* source_layer.c -- see source_layer.h */
#include "import/source_layer.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

struct source_layer source_layer_make(size_t out, size_t in, const struct format *storage, long group)
{
	struct source_layer y = { .codes = codes_make(out, in, storage, group) };

	codes_lay_out(&y.codes, xalloc(codes_lay_out(&y.codes, NULL), 1));
	y.codes.scale_tensor = 1;
	return y;
}

void source_layer_free(struct source_layer *y)
{
	free(y->codes.memory);
	y->codes.memory = NULL;
}

void source_layer_view(const struct source_layer *y, struct linear *l)
{
	const bool is_static = y->input.mode == INPUT_STATIC_TENSOR;

	*l = (struct linear){ .out = y->codes.out, .in = y->codes.in, .input = y->input };
	codes_view(&y->codes, l);
	if (is_static)
		l->input.scale = &y->input_scale;
	l->input.modalities = is_static;
}

/* Rows of n bytes each. */
static void copy_rows(struct row_slice p, size_t n, void *to, const void *from)
{
	for (size_t g = 0; g < p.groups; g++)
		memcpy((char *)to + g * p.each * n,
			(const char *)from + (g * (p.rows / p.groups) + p.before) * n, p.each * n);
}

struct source_layer source_layer_rows(const struct source_layer *y, struct row_slice p)
{
	const struct codes *from = &y->codes;
	struct source_layer part = source_layer_make(p.groups * p.each, from->in, &from->storage,
		from->group);
	struct codes *to = &part.codes;
	const bool tensor = from->group < 0;
	const struct row_slice scales = tensor ? (struct row_slice){ 1, 1, 0, 1 } : p;
	const size_t groups = tensor ? 1 : from->groups;

	copy_rows(p, from->in, to->codes, from->codes);
	copy_rows(scales, groups * sizeof *to->scale, to->scale, from->scale);
	if (from->zero)
		copy_rows(scales, groups, to->zero, from->zero);
	memcpy(to->group_index, from->group_index, from->in * sizeof *to->group_index);
	to->needs_group_index = from->needs_group_index;
	to->scale_tensor = from->scale_tensor;
	part.input = y->input;
	part.input_scale = y->input_scale;
	return part;
}

bool source_layer_is_valid(const struct source_layer *y, const char **member, char why[MEMBER_WHY])
{
	struct linear l;

	source_layer_view(y, &l);
	for (const struct member *m = members; m->name; m++) {
		size_t dim[2] = { 1, 1 };
		const void *field = member_field(&l, m->view), *x = field;

		if (!m->is_valid || !member_is_present(m, &l, FORM_CODES))
			continue;
		for (int i = member_extents(m, &l, dim); i < 2; i++)
			dim[i] = 1;
		if (member_is_dataset(m))
			memcpy(&x, field, sizeof x);
		*member = m->name;
		if (!m->is_valid(&l, dim[0] * dim[1], x, why))
			return false;
	}
	return true;
}
