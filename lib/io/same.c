/* SPDX-License-Identifier: GPL-3.0-or-later */
/* same.c -- see same.h */
#include "io/same.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/tree.h"

struct objects { const struct part *part; char **path; size_t n; };

static void list(struct objects *o, const char *path, int depth)
{
	char **child;
	size_t n;

	if (depth > TREE_DEPTH)
		die("%s: %s: is nested too deeply", o->part->name, path);
	if (o->n > o->part->length / 4 + 1000)	/* as in tree.c */
		die("%s: %s: has more paths than its file can need; links are damaged", o->part->name, path);
	o->path = xgrow(o->path, o->n + 1, sizeof *o->path);
	o->path[o->n++] = xformat("%s", path);
	if (tree_info(o->part, path).type != H5O_TYPE_GROUP)
		return;
	child = tree_children(o->part, path, &n);
	for (size_t i = 0; i < n; i++)
		list(o, child[i], depth + 1);
	tree_free_paths(child, n);
}

char **same_objects(const struct part *part, size_t *n)
{
	struct objects o = { .part = part };

	for (size_t i = 0; i < part->members; i++)
		list(&o, part->member[i], 0);
	*n = o.n;
	return o.path;
}

/* The bytes of an attribute that is not text; the caller frees them. */
static void *bytes_of(const struct part *part, const char *path, hid_t a, hid_t type, size_t *n)
{
	hid_t s = hdf5_id(H5Aget_space(a), part->name, path);
	const hssize_t points = H5Sget_simple_extent_npoints(s);
	const size_t size = H5Tget_size(type);
	void *y;

	if (points < 0 || !size || (size_t)points > part->length / size + 1)
		die("%s: %s: an attribute is damaged", part->name, path);
	*n = (size_t)points * size;
	y = xalloc((size_t)points, size);
	if (H5Aread(a, type, y) < 0)
		die("%s: %s: an attribute cannot be read; the file is damaged", part->name, path);
	H5Sclose(s);
	return y;
}

static bool same_texts(char *a, char *b)
{
	const bool same = a && b && !strcmp(a, b);

	free(a), free(b);
	return same;
}

/* The argument of same_attribute(). */
struct pair { const struct part *a, *b; const char *path; bool same; };

/* Iterator: sets p->same to whether b has an equal attribute; returns 1, which stops, if it has not. tied_to
 * is skipped. */
static herr_t same_attribute(hid_t object, const char *name, const H5A_info_t *info, void *arg)
{
	struct pair *p = arg;
	hid_t of_b = hdf5_id(H5Oopen(p->b->file, p->path, H5P_DEFAULT), p->b->name, p->path), x, y, t, u;
	size_t m, n;

	(void)info;
	if (!strcmp(name, "tied_to")) {
		H5Oclose(of_b);
		return 0;
	}
	p->same = hdf5_true(H5Aexists(of_b, name), p->b->name, p->path);
	if (p->same) {
		x = hdf5_id(H5Aopen(object, name, H5P_DEFAULT), p->a->name, p->path);
		y = hdf5_id(H5Aopen(of_b, name, H5P_DEFAULT), p->b->name, p->path);
		t = hdf5_id(H5Aget_type(x), p->a->name, p->path);
		u = hdf5_id(H5Aget_type(y), p->b->name, p->path);
		if (H5Tget_class(t) == H5T_STRING || H5Tget_class(u) == H5T_STRING)
			p->same = H5Tget_class(t) == H5Tget_class(u) && same_texts(
				part_text(p->a, p->path, name), part_text(p->b, p->path, name));
		else {
			void *a = bytes_of(p->a, p->path, x, t, &m), *b = bytes_of(p->b, p->path, y, u, &n);

			p->same = hdf5_true(H5Tequal(t, u), p->a->name, p->path) && m == n &&
				!memcmp(a, b, n);
			free(a), free(b);
		}
		H5Tclose(t), H5Tclose(u), H5Aclose(x), H5Aclose(y);
	}
	H5Oclose(of_b);
	return !p->same;
}

/* Whether b has all attributes of a, with equal values. */
static bool has_attributes(const struct part *a, const struct part *b, const char *path)
{
	struct pair p = { a, b, path, true };
	hid_t o = hdf5_id(H5Oopen(a->file, path, H5P_DEFAULT), a->name, path);

	if (H5Aiterate2(o, H5_INDEX_NAME, H5_ITER_INC, NULL, same_attribute, &p) < 0)
		die("%s: %s: its attributes cannot be read; the file is damaged", a->name, path);
	H5Oclose(o);
	return p.same;
}

bool same_attributes(const struct part *a, const struct part *b, const char *path)
{
	return has_attributes(a, b, path) && has_attributes(b, a, path);
}

/* The class of a dataset, its size, and whether it is numbers of a tensor type. */
static H5T_class_t class_of(const struct part *part, const char *path, bool *numbers, size_t *bytes)
{
	hid_t d = hdf5_id(H5Dopen2(part->file, path, H5P_DEFAULT), part->name, path);
	hid_t t = hdf5_id(H5Dget_type(d), part->name, path);
	const H5T_class_t y = H5Tget_class(t);
	bool exact;

	*numbers = hdf5_type_of(t, &exact, part->name, path) != TENSOR_ANY;
	*bytes = (size_t)H5Dget_storage_size(d);
	H5Tclose(t), H5Dclose(d);
	return y;
}

static bool same_dataset(const struct part *a, const struct part *b, const char *path)
{
	bool numbers_a, numbers_b;
	size_t m, n;
	const H5T_class_t x = class_of(a, path, &numbers_a, &m), y = class_of(b, path, &numbers_b, &n);
	struct tensor t, u;

	if (x == H5T_STRING && y == H5T_STRING)
		return same_texts(part_string(a, path), part_string(b, path));
	if (!numbers_a || !numbers_b)
		return x == y && m == n;
	t = part_tensor(a, path, TENSOR_ANY, -1, NULL);
	u = part_tensor(b, path, TENSOR_ANY, -1, NULL);
	return t.type == u.type && t.rank == u.rank &&
		!memcmp(t.dim, u.dim, (size_t)t.rank * sizeof *t.dim) &&
		!memcmp(t.data, u.data, tensor_count(&t) * tensor_size(t.type));
}

bool same_object(const struct part *a, const struct part *b, const char *path)
{
	char **child, **other;
	size_t m, n;
	bool same;
	H5O_type_t type;

	if (!part_has(a, path) || !part_has(b, path))
		return false;
	type = tree_info(a, path).type;
	if (tree_info(b, path).type != type || !same_attributes(a, b, path))
		return false;
	if (type == H5O_TYPE_DATASET)
		return same_dataset(a, b, path);
	child = tree_children(a, path, &m);
	other = tree_children(b, path, &n);
	same = m == n;
	for (size_t i = 0; same && i < m; i++)
		same = same_object(a, b, child[i]);
	tree_free_paths(child, m), tree_free_paths(other, n);
	return same;
}
