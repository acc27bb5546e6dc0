/* SPDX-License-Identifier: GPL-3.0-or-later */
/* help.c -- the output of --help; see help.h */
#include "base/help.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* " [128]", " [0.01, 0 to 1000000]", " [2 to 16M]": default and range */
static void print_values(const struct option_row *o)
{
	const char *value = o->default_value ? o->default_value : "";
	char *range = option_range(o);

	if (*value || range)
		printf(" [%s%s%s]", value, *value && range ? ", " : "", range ? range : "");
	free(range);
}

/* A line for each word of a choice. */
static void print_meanings(const struct option_row *o)
{
	for (size_t i = 0; o->meanings && o->words[i]; i++)
		printf("%30s%s: %s\n", "", o->words[i], o->meanings[i]);
}

static void print_rows(const struct option_row *rows)
{
	for (const struct option_row *o = rows; o->type != OPTION_END; o++) {
		char left[160];
		size_t n;

		if (o->type == OPTION_HEADING) {
			printf("\n%s:\n", o->help);
			continue;
		}
		n = (size_t)snprintf(left, sizeof left, "  %c%c%s --%s%s", o->key ? '-' : ' ',
			o->key ? o->key : ' ', o->key ? "," : " ", o->name,
			option_has_argument(o) ? "=" : "");
		if (o->words)
			for (const char *const *c = o->words; *c && n < sizeof left; c++)
				n += (size_t)snprintf(left + n, sizeof left - n, "%s%s",
					c == o->words ? "" : "|", *c);
		else if (option_has_argument(o))
			snprintf(left + n, sizeof left - n, "%s", o->arg);
		if (strlen(left) > 29)
			printf("%s\n%30s", left, "");
		else
			printf("%-30s", left);
		printf("%s", o->help);
		print_values(o);
		putchar('\n');
		print_meanings(o);
	}
}

/* Prints a paragraph in lines of at most 80 columns. */
static void print_wrapped(const char *text)
{
	size_t column = 0;

	for (const char *s = text; *s;) {
		size_t n = strcspn(s, " \n");

		if (column && column + 1 + n > 80) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%s%.*s", column ? " " : "", (int)n, s);
		s += n;
		s += strspn(s, " \n");
	}
	putchar('\n');
}

void help_print(const struct tool *t, const struct option_row *rows, const struct option_row *common)
{
	printf("usage: %s [OPTION]... %s\n%s\n", t->name, t->operands, t->brief);
	if (t->about) {
		putchar('\n');
		print_wrapped(t->about);
	}
	if (rows->type != OPTION_END && rows->type != OPTION_HEADING)
		printf("\nOptions:\n");
	print_rows(rows);
	print_rows(common);
	printf("\nWhole numbers may end in K, M or G: times 2^10, 2^20, 2^30.\n");
	if (t->examples)
		printf("\nExamples:\n%s\n", t->examples);
}
