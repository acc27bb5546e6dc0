/* SPDX-License-Identifier: GPL-3.0-or-later */
/* parts.c -- how a whole file is cut into the parts of a stream; see image_layout in image.h */
#include "io/hdf5.h"
#include "base/error.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void add_member(struct part_list *plan, size_t part, const char *path)
{
	size_t n = plan->members[part]++;
	char **m = realloc(plan->member[part], (n + 1) * sizeof *m);

	if (!m)
		die("out of memory");
	m[n] = xformat("%s", path);
	plan->member[part] = m;
}

static bool all_digits(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

/* Does path match pattern: 0 no, 1 it is a folder on the way there, 2 whole. *number: what stands for '#'. */
static int match(const char *pattern, const char *path, const char **number)
{
	size_t n = strlen(pattern), l = strlen(path);

	if (n > 1 && pattern[n - 1] == '#') {
		if (!strncmp(path, pattern, n - 1) && all_digits(path + n - 1)) {
			*number = path + n - 1;
			return 2;
		}
		n -= 2;		/* without "/#" */
		return l <= n && !strncmp(pattern, path, l) && (pattern[l] == '/' || l == n);
	}
	if (!strcmp(pattern, path))
		return 2;
	return l < n && !strncmp(pattern, path, l) && pattern[l] == '/';
}

struct planner {
	const struct image *image;
	struct part_list *plan;
	const char *const *pattern;
	size_t patterns, *first, rest;	/* first part of each pattern; the part of "*" */
};

static void plan_children(struct planner *p, const char *path, int depth);

/* Where an object goes: a part of a pattern, the rest, or deeper. */
static void plan_object(struct planner *p, const char *path, int depth)
{
	const char *number = NULL;

	for (size_t i = 0; i < p->patterns; i++) {
		int m = match(p->pattern[i], path, &number);

		if (m == 1) {
			plan_children(p, path, depth + 1);
			return;
		}
		if (m == 2) {
			size_t at = p->first[i], end = i + 1 < p->patterns ? p->first[i + 1] : p->plan->parts;

			if (number)	/* its place among its brothers */
				while (at < end && p->plan->members[at])
					at++;
			if (at == end)
				die("%s: %s: is listed but cannot be found; the file is damaged", p->image->name, path);
			add_member(p->plan, at, path);
			return;
		}
	}
	add_member(p->plan, p->rest, path);
}

static void plan_children(struct planner *p, const char *path, int depth)
{
	size_t n;
	char **name = hdf5_children(p->image, path, &n);

	if (depth > IMAGE_DEPTH)
		die("%s: %s: is nested too deeply", p->image->name, path);
	for (size_t i = 0; i < n; i++) {
		char *child = hdf5_join(path, name[i]);

		if (!strcmp(path, "/") && hdf5_info(p->image, child).type == H5O_TYPE_DATASET)
			add_member(p->plan, 0, child);
		else
			plan_object(p, child, depth);
		free(child);
	}
	hdf5_free_names(name, n);
}

/* How many numbered children the group before "/#" has. */
static size_t count_numbered(const struct image *image, const char *pattern)
{
	char *group = xformat("%.*s", (int)(strlen(pattern) - 2), pattern);
	size_t n = 0, found = 0;

	if (image_has(image, group)) {
		char **name = hdf5_children(image, group, &n);

		for (size_t i = 0; i < n; i++)
			found += all_digits(name[i]);
		hdf5_free_names(name, n);
	}
	free(group);
	return found;
}

void part_list_make(struct part_list *plan, const struct image *image, image_layout *layout)
{
	char *config = image_config(image);
	const char *const *pattern = layout ? layout(config) : NULL;
	struct planner p = { .image = image, .plan = plan, .pattern = pattern };

	free(config);
	while (pattern && pattern[p.patterns])
		p.patterns++;
	p.first = xalloc(p.patterns + 1, sizeof *p.first);
	plan->parts = 1;
	for (size_t i = 0; i < p.patterns; i++) {
		p.first[i] = plan->parts;
		plan->parts += pattern[i][strlen(pattern[i]) - 1] == '#' ? count_numbered(image, pattern[i]) : 1;
	}
	if (p.patterns)
		p.rest = plan->parts - 1;	/* "*" is the last pattern */
	plan->member = xalloc(plan->parts, sizeof *plan->member);
	plan->members = xalloc(plan->parts, sizeof *plan->members);
	plan_children(&p, "/", 0);
	free(p.first);
}

void part_list_free(struct part_list *plan)
{
	for (size_t i = 0; i < plan->parts; i++)
		hdf5_free_names(plan->member[i], plan->members[i]);
	free(plan->member);
	free(plan->members);
	*plan = (struct part_list){ 0 };
}
