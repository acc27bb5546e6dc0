/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer.c -- see layer.h */
#include "model/layer.h"
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"

char *layer_member(const char *group, const char *name)
{
	return xformat("%s%s%s", group, group[strlen(group) - 1] == '/' ? "" : "/", name);
}

bool layer_has(const struct part *part, const char *group, const char *name)
{
	char *path = layer_member(group, name);
	const bool has = part_has(part, path);

	free(path);
	return has;
}

bool layer_find(const struct part *part, const char *group, const char *name, enum tensor_type type, int rank,
	const size_t dim[], struct tensor *t)
{
	char *path = layer_member(group, name);
	const bool found = part_find(part, path, type, rank, dim, t);

	free(path);
	return found;
}

static bool layer_shape(const struct part *part, const char *group, const char *name, struct tensor *t)
{
	char *path = layer_member(group, name);
	const bool found = part_shape(part, path, TENSOR_ANY, -1, NULL, t);

	free(path);
	return found;
}

void layer_put(struct output *out, const char *group, const char *name, struct tensor t)
{
	char *path = layer_member(group, name);

	output_write(out, path, t);
	free(path);
}

enum half_type tensor_half(enum tensor_type type)
{
	return type == TENSOR_F16 ? HALF_F16 : type == TENSOR_BF16 ? HALF_BF16 : HALF_NONE;
}

enum half_type layer_half(const struct part *part, const char *path, enum tensor_type type)
{
	if (type != TENSOR_F32 && tensor_half(type) == HALF_NONE)
		die("%s: %s: is %s, expected f32, f16 or bf16", part_name(part), path, tensor_name(type));
	return tensor_half(type);
}

float *layer_vector(const struct part *part, const char *path, size_t n)
{
	struct tensor t;
	enum half_type type;
	float *y;

	if (!part_find(part, path, TENSOR_ANY, 1, &n, &t))
		return NULL;
	type = layer_half(part, path, t.type);
	if (!half_finite(t.dim[0], t.data, type))
		die("%s: %s: holds infinite or undefined numbers (NaN)", part_name(part), path);
	y = xalloc(t.dim[0], sizeof *y);
	half_widen(t.dim[0], y, t.data, type);
	return y;
}

/* --- members of a group, by a table --- */

/* A group of a file, and the layer that it is read into. outline: without data. name: what the group has
 * (part_names()). */
struct member_place {
	const struct part *part;
	const char *path;
	struct linear *l;
	bool outline;
	char **name;
	size_t names;
};

static struct member_place place_of(const struct part *part, const char *path, struct linear *l, bool outline)
{
	struct member_place g = { part, path, l, outline, NULL, 0 };

	g.name = part_names(part, path, &g.names);
	return g;
}

static void free_place(const struct member_place *g)
{
	part_free_names(g->name, g->names);
}

/* MEMBER_FLOAT, MEMBER_WIDE and MEMBER_SHORT have several possible types. */
static const enum tensor_type types[] = {
	[MEMBER_F32] = TENSOR_F32, [MEMBER_U8] = TENSOR_U8, [MEMBER_I8] = TENSOR_I8,
	[MEMBER_I32] = TENSOR_I32,
	[MEMBER_U32] = TENSOR_U32, [MEMBER_FLOAT] = TENSOR_ANY, [MEMBER_WIDE] = TENSOR_ANY,
	[MEMBER_SHORT] = TENSOR_ANY,
};
static const enum tensor_type floats[] = {
	[HALF_NONE] = TENSOR_F32, [HALF_F16] = TENSOR_F16, [HALF_BF16] = TENSOR_BF16,
};

/* The path of the object that has an attribute; the caller frees it. */
static char *bearer(const char *path, const struct member *m)
{
	return m->of ? layer_member(path, m->of) : xformat("%s", path);
}

/* Fatal error: FILE: PATH/member: ..., or FILE: PATH: attribute member ... */
static _Noreturn void refuse_member(const struct member_place *g, const struct member *m, const char *fmt,
	...)
{
	char *what = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	if (!member_is_attribute(m))
		die("%s: %s: %s", part_name(g->part), layer_member(g->path, m->name), what);
	die("%s: %s: attribute %s %s", part_name(g->part), bearer(g->path, m), m->name, what);
}

static bool is_text(const struct member *m)
{
	return m->type == MEMBER_FORMAT || m->type == MEMBER_WORD;
}

static bool is_present(const struct member_place *g, const struct member *m)
{
	const bool attribute = member_is_attribute(m);
	char **name = g->name, *at;
	size_t names = g->names;
	bool is = false;

	if (m->of) {
		at = bearer(g->path, m);
		name = part_names(g->part, at, &names);
		free(at);
	}
	for (size_t i = 0; i < names && !is; i++)
		is = attribute == (*name[i] == '/') && !strcmp(name[i] + attribute, m->name);
	if (m->of)
		part_free_names(name, names);
	return is;
}

static void read_text(const struct member_place *g, const struct member *m)
{
	char *at = bearer(g->path, m), *text = part_text(g->part, at, m->name);

	if (m->type == MEMBER_WORD) {
		int i = !m->words[0];	/* 0 may have no name */

		while (m->words[i] && strcmp(m->words[i], text))
			i++;
		if (!m->words[i])
			refuse_member(g, m, "'%s' is not known, expected one of %s", text, m->meaning);
		*(int *)member_fill(g->l, m->view) = i;
	} else if ((!m->optional || strcmp(text, "none")) && !format_parse(member_fill(g->l, m->view), text))
		refuse_member(g, m, "'%s' is not a number format, expected one of %s", text,
			format_list(false));
	free(at), free(text);
}

static void set_number(const struct member *m, struct linear *l, double v)
{
	void *x = member_fill(l, m->view);

	switch (m->type) {
	case MEMBER_INT:	*(int *)x = (int)v; break;
	case MEMBER_LONG:	*(long *)x = (long)v; break;
	case MEMBER_SIZE:	*(size_t *)x = (size_t)v; break;
	default:		*(float *)x = (float)v;
	}
}

/* A value that is known before must be equal. */
static void read_number(const struct member_place *g, const struct member *m)
{
	char *at = bearer(g->path, m);
	const double v = part_number(g->part, at, m->name, 0), known = member_number(m, g->l);

	free(at);
	if (known > 0 && (v < known || v > known))
		refuse_member(g, m, "must be %s, %g, not %g", m->meaning, known, v);
	if (!(v >= m->min && v <= m->max) || (m->type != MEMBER_REAL && v != floor(v)))
		refuse_member(g, m, "must be %s, not %g", m->meaning, v);
	set_number(m, g->l, v);
}

static void check_attribute(const struct member_place *g, const struct member *m)
{
	char why[MEMBER_WHY];

	if (m->is_valid && !m->is_valid(g->l, 1, member_field(g->l, m->view), why))
		refuse_member(g, m, "%s", why);
}

static void read_attribute(const struct member_place *g, const struct member *m)
{
	if (is_text(m))
		read_text(g, m);
	else
		read_number(g, m);
	check_attribute(g, m);
}

/* Converts numbers of 16 bits, or int8 if `wanted` is that, to floats. */
static void *widen(const struct member_place *g, const char *at, const struct tensor *t,
	enum tensor_type wanted)
{
	const size_t n = tensor_count(t);
	float *y;

	if (t->type == TENSOR_F32)
		return t->data;
	y = part_keep(g->part, xalloc(n, sizeof *y));
	for (size_t i = 0; wanted == TENSOR_I8 && i < n; i++)
		y[i] = ((const int8_t *)t->data)[i];
	if (wanted != TENSOR_I8)
		half_widen(n, y, t->data, layer_half(g->part, at, t->type));
	return y;
}

/* The stored type: int8 if the member has a scale. */
static enum tensor_type stored_type(const struct member *m, const struct linear *l)
{
	const void *scale = NULL;

	if (m->type == MEMBER_SHORT)
		memcpy(&scale, member_field(l, m->scaled), sizeof scale);
	return scale ? TENSOR_I8 : types[m->type];
}

/* In an outline, every dataset that is present has this address, which is not read. */
static const char outlined[1];

static void read_dataset(const struct member_place *g, const struct member *m)
{
	char *at = layer_member(g->path, m->name);
	char why[MEMBER_WHY];
	size_t dim[2] = { 0 };
	const int rank = member_extents(m, g->l, dim);
	const enum tensor_type wanted = stored_type(m, g->l);
	struct tensor t;

	if (!g->outline)
		t = part_tensor(g->part, at, wanted, rank ? rank : -1, rank ? dim : NULL);
	else if (!part_shape(g->part, at, wanted, rank ? rank : -1, rank ? dim : NULL, &t))
		die("%s: %s: is missing", part_name(g->part), at);
	if (!rank && tensor_count(&t) != 1)
		refuse_member(g, m, "must be one value for a scale per tensor");
	for (int i = 0; i < rank; i++)
		member_set_extent(m, g->l, i, t.dim[i]);
	if (m->type == MEMBER_FLOAT)
		*(enum half_type *)member_fill(g->l, m->half) = layer_half(g->part, at, t.type);
	if (g->outline)
		t.data = (void *)(uintptr_t)outlined;
	else if (m->type == MEMBER_WIDE || m->type == MEMBER_SHORT)
		t.data = widen(g, at, &t, wanted);
	memcpy(member_fill(g->l, m->view), &t.data, sizeof t.data);
	if (!g->outline && m->is_valid && !m->is_valid(g->l, tensor_count(&t), t.data, why))
		refuse_member(g, m, "%s", why);
	free(at);
}

static void read_members(const struct member_place *g, const struct member rows[]);

/* Reads a low-rank branch, a layer in a group below. It must not have a branch, a bias, split columns or a
 * rotation. */
static void read_linear(const struct member_place *g, const struct member *m)
{
	char *path = layer_member(g->path, m->name);
	struct linear *l = part_keep(g->part, xalloc(1, sizeof *l));
	size_t dim[2];

	for (const struct member *below = members; below->name; below++)
		if (below->type == MEMBER_LINEAR && layer_has(g->part, path, below->name))
			die("%s: %s: has a %s, expected a branch that has none itself", part_name(g->part),
				path, below->name);
	member_extents(m, g->l, dim);
	*l = (struct linear){ .out = dim[0], .in = dim[1] };
	const struct member_place below_it = place_of(g->part, path, l, g->outline);

	read_members(&below_it, members);
	free_place(&below_it);
	if (l->rotation_in.hadamard || linear_two_sided(l) || l->splits || l->bias)
		die("%s: %s: has %s, expected a branch without", part_name(g->part), path, l->bias ?
			"a bias" : l->splits ? "split columns" : linear_two_sided(l) ?
			linear_two_sided(l) : "an online Hadamard");
	*(size_t *)member_fill(g->l, m->extent[0]) = l->out;
	*(size_t *)member_fill(g->l, m->extent[1]) = l->in;
	if (g->l->rank > min(g->l->in, g->l->out))
		die("%s: %s: is of rank %zu, expected at most %zu", part_name(g->part), path, g->l->rank,
			min(g->l->in, g->l->out));
	memcpy(member_fill(g->l, m->view), &l, sizeof l);
	free(path);
}

/* The member in which the weight is stored; NULL: none. */
static const struct member *stored(const struct member_place *g, const struct member rows[])
{
	const struct member *first = NULL;

	for (const struct member *m = rows; m->name; m++) {
		if (m->role != MEMBER_WEIGHT || !is_present(g, m))
			continue;
		if (first)
			die("%s: %s: has both %s and %s, expected one of them", part_name(g->part),
				g->path, first->name, m->name);
		first = m;
	}
	return first;
}

/* Fatal error if a forbidden member is present, or a required one is absent. */
static void check_presence(const struct member_place *g, const struct member *m, int form)
{
	const bool may = !m->is_allowed || m->is_allowed(g->l);

	if (!(m->forms & form))
		return;
	if (m->requires && is_present(g, m) && !layer_has(g->part, g->path, m->requires))
		refuse_member(g, m, "is present, but no %s", m->requires);
	if (!may && is_present(g, m))
		refuse_member(g, m, "is present, but %s", m->absent_because);
	if (may && !m->optional && !is_present(g, m))
		refuse_member(g, m, "is missing");
}

static void read_members(const struct member_place *g, const struct member rows[])
{
	const struct member *weight = stored(g, rows), *m;
	struct linear *l = g->l;

	if (!weight)
		die("%s: %s: has neither weight nor codes: not a linear layer", part_name(g->part), g->path);
	for (m = rows; m->name; m++)
		if (m->forms & weight->forms && member_is_attribute(m) && is_present(g, m))
			read_attribute(g, m);
	for (m = rows; m->name; m++)
		check_presence(g, m, weight->forms);
	read_dataset(g, weight);
	if (!l->out || !l->in)
		die("%s: %s: has no rows or no columns", part_name(g->part), g->path);
	for (m = rows; m->name; m++)	/* check again, with known extents */
		if (m->forms & weight->forms && member_is_attribute(m) && is_present(g, m))
			check_attribute(g, m);
	l->groups = linear_groups(l->in, l->group);
	for (m = rows; m->name; m++)
		if (m->forms & weight->forms && m != weight && !member_is_attribute(m) && is_present(g, m))
			(member_is_dataset(m) ? read_dataset : read_linear)(g, m);
}

void layer_read_members(const struct part *part, const char *path, const struct member rows[],
	struct linear *l)
{
	const struct member_place g = place_of(part, path, l, false);

	read_members(&g, rows);
	free_place(&g);
}

/* Writes floats that represent int8 or 16-bit numbers, in that type. */
static void write_short(struct output *out, const char *at, const struct member *m, const struct linear *l,
	struct tensor t)
{
	const size_t n = tensor_count(&t);
	const float *x = t.data;
	int8_t *y = xalloc(n, sizeof(uint16_t));

	t.type = stored_type(m, l) == TENSOR_I8 ? TENSOR_I8 : TENSOR_F16;
	for (size_t i = 0; t.type == TENSOR_I8 && i < n; i++)
		y[i] = (int8_t)x[i];
	if (t.type == TENSOR_F16)
		half_narrow(n, (uint16_t *)y, x, HALF_F16);
	t.data = y;
	output_write(out, at, t);
	free(y);
}

static void write_dataset(struct output *out, const char *path, const struct member *m,
	const struct linear *l)
{
	size_t dim[2] = { 1 };
	const int rank = member_extents(m, l, dim);
	struct tensor t = tensor_of(types[m->type], NULL, rank ? rank : 1, rank ? dim : (size_t[]){ 1 });
	char *at = layer_member(path, m->name);

	memcpy(&t.data, member_field(l, m->view), sizeof t.data);
	if (m->type == MEMBER_WIDE)
		t.type = TENSOR_F32;
	if (m->type == MEMBER_FLOAT)
		t.type = floats[*(const enum half_type *)member_field(l, m->half)];
	if (m->type == MEMBER_SHORT)
		write_short(out, at, m, l, t);
	else
		output_write(out, at, t);
	free(at);
}

static void write_attribute(struct output *out, const char *path, const struct member *m,
	const struct linear *l)
{
	char *at = bearer(path, m);
	const void *x = member_field(l, m->view);
	const char *name = m->type == MEMBER_FORMAT ? ((const struct format *)x)->name : NULL;

	switch (m->type) {
	case MEMBER_FORMAT:	output_text(out, at, m->name, *name ? name : "none"); break;
	case MEMBER_WORD:	output_text(out, at, m->name, m->words[*(const int *)x]); break;
	case MEMBER_REAL:	output_number(out, at, m->name, member_number(m, l)); break;
	default:		output_integer(out, at, m->name, (int64_t)member_number(m, l));
	}
	free(at);
}

static void write_linear(struct output *out, const char *path, const struct member *m, const struct linear *l)
{
	char *below = layer_member(path, m->name);
	const struct linear *branch;

	memcpy(&branch, member_field(l, m->view), sizeof branch);
	layer_write(out, NULL, below, branch);
	free(below);
}

/* Copies the members of the group, except those that are written. */
static void copy_others(struct output *out, const struct part *from, const char *path,
	const struct member rows[])
{
	const char **ours = xalloc(1, sizeof *ours);
	size_t n = 0;

	for (const struct member *m = rows; m->name; m++) {
		if (m->of || (m->role != MEMBER_WEIGHT && m->role != MEMBER_PARAMETER))
			continue;
		ours = xgrow(ours, n + 2, sizeof *ours);
		ours[n++] = m->name;
		ours[n] = NULL;
	}
	output_copy(out, from, path, ours);
	free(ours);
}

void layer_write_members(struct output *out, const struct part *from, const char *path,
	const struct member rows[], const struct linear *l)
{
	const int form = member_weight(rows, l)->forms;

	if (from)
		copy_others(out, from, path, rows);
	for (const struct member *m = rows; m->name; m++) {
		if (!member_is_present(m, l, form) || (from && m->role == MEMBER_TERM))
			continue;
		if (m->type == MEMBER_LINEAR)
			write_linear(out, path, m, l);
		else
			(member_is_attribute(m) ? write_attribute : write_dataset)(out, path, m, l);
	}
}

/* --- a layer --- */

struct layer layer_read(const struct part *part, const char *path, size_t out, size_t in)
{
	struct layer y = { part_name(part), xformat("%s", path), { .out = out, .in = in } };

	layer_read_members(part, path, members, &y.linear);
	return y;
}

struct layer layer_outline(const struct part *part, const char *path)
{
	struct layer y = { .file = part_name(part), .path = xformat("%s", path) };
	const struct member_place g = place_of(part, path, &y.linear, true);

	read_members(&g, members);
	free_place(&g);
	return y;
}

void layer_require_plain(const struct part *part, const struct layer *l)
{
	const char *rotated = linear_two_sided(&l->linear);

	if (l->linear.rotation_in.hadamard || rotated || l->linear.splits || l->linear.branch_a)
		die("%s: %s: %s is only allowed in layers of blocks", part_name(part), l->path,
			l->linear.splits ? "split_weight" : l->linear.branch_a ? "branch_a" :
			rotated ? rotated : "attribute online_hadamard");
}

void layer_free(struct layer *l)
{
	free(l->path);
	l->path = NULL;
}

void layer_write(struct output *out, const struct part *from, const char *path, const struct linear *l)
{
	layer_write_members(out, from, path, members, l);
}

bool layer_quantized(const struct part *part, const char *path)
{
	const struct member_place g = place_of(part, path, NULL, false);
	const struct member *m = stored(&g, members);

	free_place(&g);
	return m && m->forms & FORM_QUANTIZED;
}

bool layer_exists(const struct part *part, const char *path)
{
	struct tensor t;

	return layer_quantized(part, path) ||
		(layer_shape(part, path, "weight", &t) && t.rank == 2);
}

bool layer_is_branch(const struct part *part, const char *path)
{
	char *parent = xformat("%s", path), *name = strrchr(parent, '/');
	bool is = false;

	if (name && name > parent) {
		*name++ = 0;
		for (const struct member *m = members; m->name && !is; m++)
			is = m->type == MEMBER_LINEAR && !strcmp(m->name, name) && layer_exists(part, parent);
	}
	free(parent);
	return is;
}
