/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tree.c -- see tree.h */
#include "io/tree.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

void links_add(struct links *l, haddr_t address, const char *path, size_t part)
{
	l->item = xgrow(l->item, l->n + 1, sizeof *l->item);
	l->item[l->n++] = (struct link){ address, xformat("%s", path), part };
}

void links_free(struct links *l)
{
	while (l->n)
		free(l->item[--l->n].path);
	free(l->item);
	l->item = NULL;
}

/* Compares paths; a run of digits is compared as a number. */
static int natural_compare(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	while (*a && *b) {
		size_t m = strspn(a, digits), n = strspn(b, digits);
		int c = (unsigned char)*a - (unsigned char)*b;

		if (m && n) {
			for (; m > 1 && *a == '0'; m--)
				a++;
			for (; n > 1 && *b == '0'; n--)
				b++;
			c = m < n ? -1 : m > n ? 1 : strncmp(a, b, m);
		} else
			m = n = 1;
		if (c)
			return c;
		a += m, b += n;
	}
	return (*a != 0) - (*b != 0);
}

static int compare_paths(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int c = natural_compare(x, y);

	return c ? c : strcmp(x, y);
}

/* Collects the paths of a group's members. */
struct members { const char *group; char **path; size_t n; };

static herr_t list_one(hid_t group, const char *name, const H5L_info_t *info, void *arg)
{
	struct members *m = arg;
	char *path = xformat("%s/%s", strcmp(m->group, "/") ? m->group : "", name);

	(void)group, (void)info;
	m->path = xgrow(m->path, m->n + 1, sizeof *m->path);
	m->path[m->n++] = path;
	return 0;
}

char **tree_children(const struct part *part, const char *path, size_t *n)
{
	struct members m = { .group = path };
	hid_t group = hdf5_id(H5Gopen2(part->file, path, H5P_DEFAULT), part->name, path);

	if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, list_one, &m) < 0)
		die("%s: %s: cannot list this group; the file is damaged", part->name, path);
	H5Gclose(group);
	if (m.n)
		qsort(m.path, m.n, sizeof *m.path, compare_paths);
	*n = m.n;
	return m.path;
}

void tree_free_paths(char **path, size_t n)
{
	while (n)
		free(path[--n]);
	free(path);
}

H5O_info_t tree_info(const struct part *part, const char *path)
{
	H5O_info_t info;

	if (H5Oget_info_by_name(part->file, path, &info, H5P_DEFAULT) < 0)
		die("%s: %s: cannot be opened; the file is damaged", part->name, path);
	return info;
}

void tree_free_cache(struct part *part)
{
	while (part->copies)
		free(part->copy[--part->copies]);
	free(part->copy);
	for (size_t i = 0; i < part->groups; i++)
		free(part->group[i].path);
	free(part->group);
	part->copy = NULL;
	part->group = NULL;
	part->groups = 0;
	part->listed = false;
}

/* A walk over one part of the chain that begins with head: it records links, lists groups with datasets, or
 * visits datasets. */
enum tree_purpose { TREE_LINKS, TREE_GROUPS, TREE_DATASETS };
struct tree_walk {
	struct part *head, *part;
	enum tree_purpose purpose;
	size_t paths;
	void (*visit)(void *arg, const char *path, const char *type, int rank, const size_t dim[]);
	void *arg;
};

static void note_link(const struct part *part, const char *path, haddr_t address)
{
	for (size_t i = 0; i < part->links->n; i++)
		if (part->links->item[i].address == address)
			return;
	links_add(part->links, address, path, part->part);
}

static void visit_dataset(const struct tree_walk *w, const char *path)
{
	const char *file = w->part->name;
	hid_t d = hdf5_id(H5Dopen2(w->part->file, path, H5P_DEFAULT), file, path);
	hid_t t = hdf5_id(H5Dget_type(d), file, path), s = hdf5_id(H5Dget_space(d), file, path);
	const bool empty = H5Sget_simple_extent_type(s) == H5S_NULL;
	bool exact;
	const enum tensor_type type = hdf5_type_of(t, &exact, file, path);
	hsize_t extent[H5S_MAX_RANK];
	size_t dim[H5S_MAX_RANK];
	const int rank = empty ? -1 : H5Sget_simple_extent_dims(s, extent, NULL);

	for (int i = 0; i < rank; i++)
		dim[i] = (size_t)extent[i];
	w->visit(w->arg, path, type != TENSOR_ANY ? tensor_name(type) :
		H5Tget_class(t) == H5T_STRING ? "string" : "other", rank, dim);
	H5Sclose(s), H5Tclose(t), H5Dclose(d);
}

static void list(struct tree_walk *w, const char *path, const H5O_info_t *info)
{
	struct part *head = w->head;

	head->group = xgrow(head->group, head->groups + 1, sizeof *head->group);
	head->group[head->groups++] = (struct group){ xformat("%s", path), info->addr, w->part,
		info->type == H5O_TYPE_DATASET };
}

static void walk(struct tree_walk *w, const char *path, int depth)
{
	H5O_info_t info = tree_info(w->part, path);
	char **child;
	size_t n;

	if (depth > TREE_DEPTH)
		die("%s: %s: is nested too deeply", w->part->name, path);
	/* A chain of 32 groups, each with two links to the next, has 2^32 paths. */
	if (++w->paths > w->part->length / 4 + 1000)
		die("%s: %s: has more paths than its file can need; links are damaged", w->part->name, path);
	if (w->purpose == TREE_LINKS && info.rc > 1)
		note_link(w->part, path, info.addr);
	if (w->purpose == TREE_DATASETS && info.type == H5O_TYPE_DATASET)
		visit_dataset(w, path);
	if (w->purpose == TREE_GROUPS && info.type == H5O_TYPE_DATASET && info.rc > 1)
		list(w, path, &info);
	if (info.type != H5O_TYPE_GROUP)
		return;
	child = tree_children(w->part, path, &n);
	for (size_t i = 0; i < n && w->purpose == TREE_GROUPS; i++)
		if (tree_info(w->part, child[i]).type == H5O_TYPE_DATASET) {
			list(w, path, &info);
			break;
		}
	for (size_t i = 0; i < n; i++)
		walk(w, child[i], depth + 1);
	tree_free_paths(child, n);
}

char *part_tied(const struct part *part, const char *path)
{
	const H5O_info_t info = tree_info(part, path);
	const struct links none = { 0 }, *l = info.rc > 1 && part->links ? part->links : &none;

	for (size_t i = 0; i < l->n; i++)
		if (l->item[i].address == info.addr && l->item[i].part < part->part)
			return xformat("%s", l->item[i].path);
	return part_text(part, path, "tied_to");
}

void tree_note_links(struct part *part)
{
	struct tree_walk w = { part, part, TREE_LINKS, 0, NULL, NULL };

	for (size_t i = 0; i < part->members; i++)
		walk(&w, part->member[i], 0);
}

static void list_groups(const struct part *from)
{
	struct part *head = (struct part *)(uintptr_t)from;

	if (head->listed)
		return;
	for (struct part *i = head; i; i = i->also) {
		struct tree_walk w = { head, i, TREE_GROUPS, 0, NULL, NULL };

		for (size_t m = 0; m < i->members; m++)
			walk(&w, i->member[m], 0);
	}
	head->listed = true;
}

void part_groups(const struct part *part, void (*visit)(void *arg, const char *group), void *arg)
{
	list_groups(part);
	for (size_t i = 0; i < part->groups; i++)
		if (!part->group[i].dataset)
			visit(arg, part->group[i].path);
}

void part_datasets(const struct part *part, void (*visit)(void *arg, const char *path, const char *type,
	int rank, const size_t dim[]), void *arg)
{
	struct part *head = (struct part *)(uintptr_t)part;

	for (struct part *i = head; i; i = i->also) {
		struct tree_walk w = { head, i, TREE_DATASETS, 0, visit, arg };

		for (size_t m = 0; m < i->members; m++)
			walk(&w, i->member[m], 0);
	}
}

char *part_same(const struct part *part, const char *path)
{
	list_groups(part);
	for (size_t i = 0; i < part->groups; i++)
		if (!strcmp(part->group[i].path, path))
			for (const struct group *g = part->group, *us = g + i; g < us; g++)
				if (g->address == us->address && g->owner == us->owner)
					return xformat("%s", g->path);
	return xformat("%s", path);
}
