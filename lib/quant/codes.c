/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codes.c -- see codes.h */
#include "quant/codes.h"
#include <string.h>
#include "base/cut.h"
#include "num/code_form.h"

struct codes codes_make(size_t out, size_t in, const struct format *storage, long group)
{
	return (struct codes){ .out = out, .in = in, .storage = *storage, .group = group };
}

static size_t bytes_of(const struct codes *c)
{
	return code_rows(&c->storage, c->out) * code_columns(&c->storage, c->in);
}

size_t codes_lay_out(struct codes *c, void *memory)
{
	size_t bytes = 0;

	c->memory = memory;
	c->groups = linear_groups(c->in, c->group);
	c->scales = code_has_scales(&c->storage) ? 0 : c->group < 0 ? 1 : c->out * c->groups;
	c->codes = cut(memory, &bytes, bytes_of(c), 1);
	c->scale = cut(memory, &bytes, c->scales, sizeof *c->scale);
	c->zero = cut(memory, &bytes, c->storage.asymmetric ? c->scales : 0, 1);
	c->scale8 = cut(memory, &bytes, c->scales8, sizeof *c->scale8);
	c->group_index = cut(memory, &bytes, c->in, sizeof *c->group_index);
	return bytes;
}

void codes_view(const struct codes *c, struct linear *l)
{
	l->weight = NULL;
	l->packed = NULL;
	l->codes = c->codes;
	l->scale = c->scale;
	l->scale_tensor = scale_kinds[c->storage.scales].divided ? &c->scale_tensor : NULL;
	l->zero = c->zero;
	l->storage = c->storage;
	l->group = c->group;
	l->groups = c->groups;
	l->group_index = c->needs_group_index ? c->group_index : NULL;
	l->compute = c->compute;
	l->saturate = c->saturate;
	l->scale8 = c->scale8;
	l->scales8 = c->scales8;
}

void codes_copy(struct codes *to, const struct codes *from)
{
	memcpy(to->codes, from->codes, bytes_of(from));
	if (from->scales)
		memcpy(to->scale, from->scale, from->scales * sizeof *to->scale);
	to->scale_tensor = from->scale_tensor;
	if (from->zero)
		memcpy(to->zero, from->zero, from->scales);
	if (from->scale8)
		memcpy(to->scale8, from->scale8, from->scales8 * sizeof *to->scale8);
	to->needs_group_index = from->needs_group_index;
	if (from->needs_group_index)
		memcpy(to->group_index, from->group_index, from->in * sizeof *to->group_index);
}
