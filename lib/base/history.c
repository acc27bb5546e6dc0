/* SPDX-License-Identifier: GPL-3.0-or-later */
/* history.c -- see history.h */
#include "base/history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"

static const struct tool *tool;
static const struct option_row *rows;
static const char *const *values;
static char *line, *note;

void history_begin(const struct tool *t, const struct option_row *table, const char *const value[])
{
	tool = t;
	rows = table;
	values = value;
}

static void put_quoted(FILE *f, const char *s)
{
	if (*s && !s[strcspn(s, " \t\n\"'\\$&|;<>()*?#~`[]{}!")]) {
		fputs(s, f);
		return;
	}
	fputc('\'', f);
	for (; *s; s++)
		*s == '\'' ? fputs("'\\''", f) : fputc(*s, f);
	fputc('\'', f);
}

/* Numbers are written in one form: 2048 for 2K, 0.1 for 0.10. Words are written as given. */
static void put_value(FILE *f, const struct option_row *o, const char *s)
{
	char number[NUMBER_CHARS];

	if (o->type == OPTION_SIZE) {
		fprintf(f, "%zu", *o->var.size);
		return;
	}
	if (o->form) {
		char *text = o->form(o->var.parsed);

		put_quoted(f, text);
		free(text);
		return;
	}
	if (o->type != OPTION_REAL) {
		put_quoted(f, s);
		return;
	}
	fputs(number_text(*o->var.real, number), f);
}

/* Writes the options in table order. */
static void write_line(void)
{
	size_t n;
	FILE *f = open_memstream(&line, &n);

	if (!f)
		die("out of memory");
	fprintf(f, "%s %s", tool->name, PTQ_VERSION);
	for (size_t i = 0; rows[i].type != OPTION_END; i++) {
		const struct option_row *o = rows + i;

		if (!values[i] || o->neutral || o->type == OPTION_FILE)
			continue;
		if (o->type == OPTION_SELECTION) {
			const struct selection *l = o->var.selection;

			for (size_t k = 0; k < l->n; k++) {
				fprintf(f, " --%s ", o->name);
				put_quoted(f, l->pattern[k].text);
			}
			continue;
		}
		fprintf(f, " --%s", o->name);
		if (option_has_argument(o)) {
			fputc(' ', f);
			put_value(f, o, values[i]);
		}
	}
	if (note)
		fputs(note, f);
	if (ferror(f) || fclose(f) || !line)	/* NULL: fclose() could not shrink the buffer */
		die("out of memory");
}

const char *history_line(void)
{
	if (!line && tool)
		write_line();
	return line ? line : program;
}

void history_note(const char *name, const char *value)
{
	char *before = note;
	size_t n;
	FILE *f = open_memstream(&note, &n);

	if (!f)
		die("out of memory");
	fprintf(f, "%s %s:", before ? before : "", name);
	put_quoted(f, value);
	if (ferror(f) || fclose(f) || !note)
		die("out of memory");
	free(before);
}
