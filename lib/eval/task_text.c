/* SPDX-License-Identifier: GPL-3.0-or-later */
/* task_text.c -- see task_text.h */
#include "eval/task_text.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/capitalize.h"
#include "text/json_lines.h"
#include "text/regex.h"
#include "text/strip.h"

static char *blanks(const char *s)
{
	char *y = xformat("%s", s);

	for (char *at = y; *at; at++)
		if (*at == '_')
			*at = ' ';
	return y;
}

static const struct filter { const char *name; char *(*run)(const char *); } filters[] = {
	{ "strip", strip }, { "capitalize", capitalize }, { "blanks", blanks },
};

/* The text of "NAME" or "NAME:FILTER", which has n bytes; free() it. */
static char *field(size_t n, const char *what, const json_t *item)
{
	char *name = xformat("%.*s", (int)n, what), *filter = strchr(name, ':'), *y = NULL;
	const char *text;

	if (filter)
		*filter++ = '\0';
	text = json_member_text(item, name);
	for (size_t i = 0; filter && i < sizeof filters / sizeof *filters; i++)
		if (!strcmp(filter, filters[i].name))
			y = filters[i].run(text);
	if (filter && !y)
		die("no filter '%s' of '%s'", filter, name);
	if (!y)
		y = xformat("%s", text);
	free(name);
	return y;
}

char *task_fill(const char *template, const json_t *item)
{
	char *y, *text;
	size_t n;
	FILE *to = open_memstream(&y, &n);

	if (!to)
		die("not enough memory");
	for (const char *s = template; *s;) {
		const size_t plain = strcspn(s, "{");

		fwrite(s, 1, plain, to);
		s += plain;
		if (!*s)
			break;
		text = field(strcspn(s + 1, "}"), s + 1, item);
		fputs(text, to);
		free(text);
		s = strchr(s, '}') + 1;
	}
	if (fclose(to))
		die("not enough memory");
	return y;
}

/* Replaces each match; free() it. */
static char *replace_all(const char *s, const char *pattern, enum dialect dialect, const char *by)
{
	struct regex *r = regex_make("clean-up", pattern, dialect);
	struct regex_place at = { 0 };
	const size_t n = strlen(s), by_n = strlen(by);
	char *y = xalloc(n * (by_n + 1) + 1, 1);	/* no match is empty */
	size_t from = 0, length = 0, begin, end;

	while (regex_next(r, n, s, &at, &begin, &end)) {
		memcpy(y + length, s + from, begin - from);
		length += begin - from;
		memcpy(y + length, by, by_n);
		length += by_n;
		from = end;
	}
	memcpy(y + length, s + from, n - from);
	regex_free(r);
	return y;
}

char *task_clean_wikihow(const char *s)
{
	static const struct { const char *pattern, *by; enum dialect dialect; } steps[] = {
		{ " [title]", ". ", DIALECT_LITERAL },
		{ "\\[.*?\\]", "", DIALECT_PCRE2 },
		{ "  ", " ", DIALECT_LITERAL },
	};
	char *y = strip(s);

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		char *before = y;

		y = replace_all(before, steps[i].pattern, steps[i].dialect, steps[i].by);
		free(before);
	}
	return y;
}
