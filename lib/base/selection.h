/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * selection.h -- selection of paths by patterns, --layers GLOB and --layers '!GLOB'
 *
 * Without a pattern every path is selected. A leading '/' in a GLOB is optional, and '*' matches '/' too.
 */
#ifndef BASE_SELECTION_H
#define BASE_SELECTION_H
#include <stdbool.h>
#include <stddef.h>

struct selection {
	size_t n;
	struct selection_pattern {
		const char *text;	/* as given */
		const char *glob;	/* the part of `text` after '!' and '/' */
		bool exclude;
		bool matched;		/* a path that was asked for */
	} *pattern;
};

/* text, borrowed: "GLOB" or "!GLOB". */
void selection_add(struct selection *s, const char *text);
void selection_free(struct selection *s);
/* Whether the path is selected: a GLOB matches it, or no GLOB exists, and no !GLOB matches it. */
bool selection_has(const struct selection *s, const char *path);
/* Whether a GLOB matches the path. */
bool selection_names(const struct selection *s, const char *path);
/* Warns of patterns of `option`, as layers, that matched none of the paths asked for. name: of the file. */
void selection_warn(const struct selection *s, const char *option, const char *name);
/* " that --layers selects", or "" without patterns: for messages that no layer was found. */
const char *selection_text(const struct selection *s);
#endif
