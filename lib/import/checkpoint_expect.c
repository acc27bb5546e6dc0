/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * checkpoint_expect.c -- check that all tensors of a class are present with their shapes; see
 * checkpoint_private.h
 */
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "import/checkpoint_private.h"
#include "import/class_members.h"
#include "model/layer.h"

static _Noreturn void missing(const struct checkpoint *k, const char *group, const char *member)
{
	char *path = xformat("%s/%s", group, member);

	for (char *p = path; *p; p++)
		*p = *p == '/' ? '.' : *p;
	die("%s: %s: is missing, a %s needs it", k->source->path, path + 1, config_class(k->config));
}

/* Whether the shape is that of a convolution over patches: [rows, channels, (frames,) patch, patch]. */
static bool is_convolution(const struct tensor *t, const struct vision *v, size_t rows)
{
	const size_t dim[] = { rows, CHANNELS, v->frames, v->patch, v->patch };
	const size_t skip = t->rank == 4 && v->frames == 1;
	const size_t rank = (size_t)t->rank;
	bool same = rank + skip == 5;

	for (size_t i = 0; same && i < rank; i++)
		same = t->dim[i] == dim[i + (i > 1 ? skip : 0)];
	return same;
}

/* Marks the entry as known and checks its shape. */
static void expect(const struct checkpoint *k, const struct class_member *m, struct entry *e)
{
	const struct source_tensor *t = e->source;
	size_t rows = m->rows, columns = m->columns;

	e->known = true;
	e->patches |= m->patches;
	if (t->shape.type == TENSOR_ANY)
		k->source->kind->read(k->source, t->name);	/* exits with the reason */
	if (e->patches && is_convolution(&t->shape, &k->config->vision, rows))
		return;
	if (t->packed && e->row && e->row->order == ROWS_TRANSPOSED) {	/* packed: never transposed */
		rows = m->columns;
		columns = m->rows;
	}
	if (columns && (t->shape.rank != 2 || t->shape.dim[0] != rows || t->shape.dim[1] != columns))
		die("%s: %s: its shape is not the [%zu, %zu] of config.json", t->file, t->name, rows,
			columns);
	if (!columns && (t->shape.rank != 1 || t->shape.dim[0] != rows))
		die("%s: %s: its shape is not the [%zu] of config.json", t->file, t->name, rows);
}

static void visit(void *arg, const struct class_member *m)
{
	const struct checkpoint *k = arg;
	struct entry *e = checkpoint_member(k, m->group, m->member);

	if (m->wanted && (!e || (m->from && !e->row)))
		missing(k, m->from ? m->from : m->group, m->member);
	if (m->wanted)
		expect(k, m, e);
	else if (e)
		e->known = e->unused = true;
}

void checkpoint_expect(const struct checkpoint *k)
{
	class_members(k->config, visit, (void *)(uintptr_t)k);
}
