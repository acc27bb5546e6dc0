/* SPDX-License-Identifier: GPL-3.0-or-later */
/* part_list.c -- cuts a whole file into the parts of a stream; see tree.h and part.h */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/pattern.h"
#include "io/tree.h"

/* A list while it is made. */
struct listing {
	const struct part *part;
	struct part_list list;
	struct pattern *pattern;
	size_t patterns, *first;	/* first part of each pattern; the last element is the end */
};

static void add_path(struct part_paths *p, const char *path)
{
	p->path = xgrow(p->path, p->n + 1, sizeof *p->path);
	p->path[p->n++] = xformat("%s", path);
}

static void list_children(struct listing *l, const char *path, int depth);

/* Adds an object to the first part with a pattern that it matches. If it is above possible matches, adds
 * its children. */
static void list_object(struct listing *l, const char *path, int depth)
{
	enum pattern_match match = MATCH_NONE;
	const char *number = NULL;
	size_t i = 0, at, end;

	while (i < l->patterns && !(match = pattern_match(&l->pattern[i], path, &number)))
		i++;
	if (match == MATCH_LEADS) {
		list_children(l, path, depth + 1);
		return;
	}
	/* Objects without a match are added to the last part. Numbered children come in order, each to its
	 * own part. */
	at = match ? l->first[i] : l->list.parts - 1;
	end = match ? l->first[i + 1] : l->list.parts;
	while (number && at < end && l->list.part[at].n)
		at++;
	if (at == end)
		die("%s: %s: is listed but cannot be found; the file is damaged", l->part->name, path);
	add_path(&l->list.part[at], path);
}

static void list_children(struct listing *l, const char *path, int depth)
{
	size_t n;
	char **child = tree_children(l->part, path, &n);

	if (depth > TREE_DEPTH)
		die("%s: %s: is nested too deeply", l->part->name, path);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(path, "/") && tree_info(l->part, child[i]).type == H5O_TYPE_DATASET)
			add_path(&l->list.part[0], child[i]);
		else
			list_object(l, child[i], depth);
	tree_free_paths(child, n);
}

/* The number of parts of a pattern: one, or one for each numbered child of its group. */
static size_t count_parts(const struct part *part, const struct pattern *p)
{
	char *group = xformat("%.*s", (int)p->length, p->path), **child = NULL;
	const char *number;
	size_t n = 0, found = 0;

	if (p->kind != PATTERN_NUMBERED)
		found = 1;
	else if (part_has(part, group))
		child = tree_children(part, group, &n);
	for (size_t i = 0; i < n; i++)
		found += pattern_match(p, child[i], &number) == MATCH_WITHIN;
	tree_free_paths(child, n);
	free(group);
	return found;
}

struct part_list part_list_make(const struct part *part, part_layout *layout)
{
	char *config = part_config(part);
	const char **layout_of = layout ? layout(config) : NULL;
	struct listing l = { .part = part, .list = { .parts = 1 } };

	l.pattern = pattern_list(layout_of, &l.patterns);
	free(layout_of);
	free(config);
	l.first = xalloc(l.patterns + 1, sizeof *l.first);
	for (size_t i = 0; i < l.patterns; i++) {
		l.first[i] = l.list.parts;
		l.list.parts += count_parts(part, &l.pattern[i]);
	}
	l.first[l.patterns] = l.list.parts;
	l.list.part = xalloc(l.list.parts, sizeof *l.list.part);
	list_children(&l, "/", 0);
	free(l.first);
	free(l.pattern);
	return l.list;
}

void part_list_free(struct part_list *list)
{
	for (size_t i = 0; i < list->parts; i++)
		tree_free_paths(list->part[i].path, list->part[i].n);
	free(list->part);
	*list = (struct part_list){ 0 };
}
