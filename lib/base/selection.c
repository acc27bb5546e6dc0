/* SPDX-License-Identifier: GPL-3.0-or-later */
/* selection.c -- see selection.h */
#include "base/selection.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

void selection_add(struct selection *s, const char *text)
{
	const bool exclude = *text == '!';
	const char *glob = text + exclude;

	s->pattern = xgrow(s->pattern, s->n + 1, sizeof *s->pattern);
	s->pattern[s->n++] = (struct selection_pattern){ text, glob + (*glob == '/'), exclude, false };
}

void selection_free(struct selection *s)
{
	free(s->pattern);
	*s = (struct selection){ 0 };
}

/* Whether a pattern of this kind matches the path; path NULL: whether a pattern of this kind exists. */
static bool matches(const struct selection *s, const char *path, bool exclude)
{
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		struct selection_pattern *p = &s->pattern[i];
		const bool match = p->exclude == exclude &&
			(!path || !fnmatch(p->glob, path + (*path == '/'), 0));

		any |= match;
		if (path && match)
			p->matched = true;
	}
	return any;
}

bool selection_names(const struct selection *s, const char *path)
{
	return matches(s, path, false);
}

bool selection_has(const struct selection *s, const char *path)
{
	const bool excluded = matches(s, path, true), named = matches(s, path, false);

	return !excluded && (named || !matches(s, NULL, false));
}

void selection_warn(const struct selection *s, const char *option, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->pattern[i].matched)
			warn("%s: --%s '%s' matches no %.*s", name, option, s->pattern[i].text,
				(int)strlen(option) - 1, option);
}

const char *selection_text(const struct selection *s)
{
	return s->n ? " that --layers selects" : "";
}
