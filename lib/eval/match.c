/* SPDX-License-Identifier: GPL-3.0-or-later */
/* match.c -- see match.h */
#include "eval/match.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/names.h"
#include "text/regex.h"
#include "text/strip.h"

/* The harness takes a group of its patterns; here the whole match is that group. */
#define NUMBER "-?[0-9.,]+"
#define LAST_NUMBER "-?[$0-9.,]{2,}|-?[0-9]+"

static const struct match matches[] = {
	{ "gsm8k", { "#### \\K" NUMBER, LAST_NUMBER }, { false, true }, .numbers = true },
	{ "gsm8k-cot", { "The answer is \\K" NUMBER "(?=[^\\n])", LAST_NUMBER }, { false, true },
		.numbers = true },
	{ "exact", .tokens = true },
	{ NULL },
};

const char *const match_filters[MATCH_FILTERS] = { [MATCH_STRICT] = "strict", [MATCH_FLEXIBLE] = "flexible" };

const struct match *match_of(const char *name)
{
	for (const struct match *m = matches; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

char *match_names(void)
{
	return names_of_rows(matches, sizeof *matches);
}

/* Numbers in their form (match.h), by the steps of the harness in its order. */
static void form_number(char *text)
{
	char *to = text, *mark = NULL;
	size_t n;

	for (const char *s = text; *s; s++)
		if (*s != ',' && *s != '$')
			*to++ = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
	*to = '\0';
	for (char *at = text; (at = strstr(at, "#### ")); at++)
		mark = at + strlen("#### ");
	if (mark)
		memmove(text, mark, strlen(mark) + 1);
	n = strlen(text);
	if (n && text[n - 1] == '.')
		text[n - 1] = '\0';
	else if (n > 1 && text[n - 1] == '\n' && text[n - 2] == '.')
		text[n - 2] = '\n', text[n - 1] = '\0';
}

char *match_form(const struct match *m, const char *text)
{
	char *y = m->numbers ? xformat("%s", text) : strip(text);

	if (m->numbers)
		form_number(y);
	return y;
}

char *match_take(const struct match *m, enum match_filter filter, const char *text)
{
	const size_t n = strlen(text);
	struct regex_place at = { 0 };
	size_t begin, end, from = 0, to = 0;
	struct regex *r;
	char *taken, *y;
	bool found = false;

	if (!m->pattern[filter])
		return match_form(m, text);
	r = regex_make(m->name, m->pattern[filter], DIALECT_PCRE2);
	while ((!found || m->last[filter]) && regex_next(r, n, text, &at, &begin, &end))
		found = true, from = begin, to = end;
	regex_free(r);
	taken = found ? xformat("%.*s", (int)(to - from), text + from) : xformat("[invalid]");
	y = match_form(m, taken);
	free(taken);
	return y;
}
