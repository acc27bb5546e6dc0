/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * selection.h -- the paths that patterns select, as --layers GLOB and --layers '!GLOB' give them
 *
 * Without a pattern everything is selected. A leading '/' in a GLOB is optional, and '*' matches '/' too.
 */
#ifndef BASE_SELECTION_H
#define BASE_SELECTION_H
#include <stdbool.h>
#include <stddef.h>

struct selection {
	size_t n;
	struct selection_pattern {
		const char *text;	/* as it was given */
		const char *glob;	/* in it, without '!' and '/' */
		bool exclude;
	} *pattern;
};

/* text, borrowed: "GLOB" or "!GLOB". */
void selection_add(struct selection *s, const char *text);
void selection_free(struct selection *s);
/* Whether some GLOB, or there is none, and no !GLOB matches the path. */
bool selection_has(const struct selection *s, const char *path);
/* Whether some GLOB matches the path. */
bool selection_names(const struct selection *s, const char *path);
/* " that --layers selects", or nothing where everything is: for messages that there is no such layer. */
const char *selection_text(const struct selection *s);
#endif
