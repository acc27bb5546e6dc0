/* SPDX-License-Identifier: GPL-3.0-or-later */
/* info_print.c -- facts as text; see info.h */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "eval/info_private.h"

/* A copy of a text on one line, with ? for control characters and for marks that are not visible, as of
 * direction; the caller frees it. */
static char *one_line(const char *text)
{
	/* ranges in UTF-8, which has the order of the code points */
	static const struct { const char *first, *last; } hidden[] = {
		{ "\x01", "\x1f" }, { "\x7f", "\x7f" }, { "\xc2\x80", "\xc2\x9f" }, { "\u061c", "\u061c" },
		{ "\u200b", "\u200f" }, { "\u2028", "\u202e" }, { "\u2060", "\u206f" },
		{ "\ufeff", "\ufeff" },
	};
	char *y = xformat("%s", text), *to = y;

	for (size_t n; *text; text += n) {
		n = 0;
		for (size_t i = 0; i < sizeof hidden / sizeof *hidden && !n; i++) {
			const size_t length = strlen(hidden[i].first);

			if (strncmp(text, hidden[i].first, length) >= 0 &&
			    strncmp(text, hidden[i].last, length) <= 0)
				n = length;
		}
		*to++ = n ? '?' : *text;
		n += !n;
	}
	*to = 0;
	return y;
}

static void print_value(FILE *to, const json_t *v)
{
	if (json_is_string(v))
		fputs(json_string_value(v), to);
	else if (json_is_integer(v))
		fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		fprintf(to, "%.6g", json_real_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "yes" : "no", to);
	else if (!json_array_size(v))
		fputc('-', to);
	for (size_t i = 0; i < json_array_size(v); i++) {
		fputs(i ? " " : "", to);
		print_value(to, json_array_get(v, i));
	}
}

/* A value on one line; the caller frees it. */
static char *value_text(const json_t *v)
{
	char *text = NULL, *y;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		die("out of memory");
	print_value(to, v);
	if (ferror(to) || fclose(to) || !text)
		die("out of memory");
	y = one_line(text);
	free(text);
	return y;
}

static bool is_table(const json_t *v)
{
	return json_is_object(v) || json_is_object(json_array_get(v, 0));
}

/* Prints the values of an object that are not tables, with aligned keys. */
static void print_lines(FILE *to, json_t *object, const char *indent)
{
	const char *key;
	json_t *v;
	size_t width = 0;

	json_object_foreach(object, key, v)
		width = max(width, is_table(v) ? 0 : strlen(key));
	json_object_foreach(object, key, v) {
		char *name, *text;

		if (is_table(v))
			continue;
		name = one_line(key), text = value_text(v);
		fprintf(to, "%s%-*s  %s\n", indent, (int)width, name, text);
		free(name), free(text);
	}
}

/* The keys of all rows, in the order in which they first appear. */
static json_t *columns_of(json_t *rows)
{
	json_t *columns = json_object(), *row, *v;
	const char *key;
	size_t i;

	json_array_foreach(rows, i, row)
		json_object_foreach(row, key, v) {
			char *text = value_text(v);
			const size_t n = max(strlen(text), strlen(key));
			const size_t before = (size_t)json_integer_value(json_object_get(columns, key));

			info_set(columns, key, info_size(max(n, before)));
			free(text);
		}
	return columns;
}

static void print_table(FILE *to, json_t *rows)
{
	json_t *columns = columns_of(rows), *row, *width;
	const char *key;
	size_t i, left = json_object_size(columns);

	json_object_foreach(columns, key, width)
		fprintf(to, "  %-*s", --left ? (int)json_integer_value(width) : 0, key);
	fputc('\n', to);
	json_array_foreach(rows, i, row) {
		left = json_object_size(columns);
		json_object_foreach(columns, key, width) {
			char *text = value_text(json_object_get(row, key));

			fprintf(to, "  %-*s", --left ? (int)json_integer_value(width) : 0, text);
			free(text);
		}
		fputc('\n', to);
	}
	json_decref(columns);
}

static void print_history(FILE *to, json_t *history)
{
	json_t *one, *line;
	size_t i, k;

	json_array_foreach(history, i, one) {
		char *of = one_line(json_string_value(json_object_get(one, "of")));

		fprintf(to, "\nhistory%s%s\n", *of ? " of " : "", of);
		json_array_foreach(json_object_get(one, "commands"), k, line) {
			char *text = value_text(line);

			fprintf(to, "  %s\n", text);
			free(text);
		}
		free(of);
	}
}

void info_print(FILE *to, json_t *facts)
{
	const char *key;
	json_t *v;

	print_lines(to, facts, "");
	json_object_foreach(facts, key, v) {
		if (!strcmp(key, "history")) {
			print_history(to, v);
			continue;
		}
		if (!is_table(v))
			continue;
		fprintf(to, "\n%s\n", key);
		if (json_is_array(v))
			print_table(to, v);
		else
			print_lines(to, v, "  ");
	}
}
