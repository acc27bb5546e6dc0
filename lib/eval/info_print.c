/* SPDX-License-Identifier: GPL-3.0-or-later */
/* info_print.c -- facts as text; see info.h */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "eval/info_private.h"

/* A value on one line; the caller frees it. Control characters become ?. */
static char *value_text(const json_t *v)
{
	char *y;

	if (json_is_string(v))
		y = xformat("%s", json_string_value(v));
	else if (json_is_integer(v))
		y = xformat("%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		y = xformat("%.6g", json_real_value(v));
	else if (json_is_boolean(v))
		y = xformat("%s", json_is_true(v) ? "yes" : "no");
	else
		y = xformat("-");
	for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		char *before = y, *next = value_text(json_array_get(v, i));

		y = i ? xformat("%s %s", before, next) : xformat("%s", next);
		free(before), free(next);
	}
	for (char *c = y; *c; c++)
		*c = iscntrl((unsigned char)*c) ? '?' : *c;
	return y;
}

/* Prints the values of an object that are not tables, with aligned keys. */
static void print_lines(FILE *to, const json_t *object, const char *indent)
{
	json_t *of = (json_t *)(uintptr_t)object, *v;
	const char *key;
	size_t width = 0;

	json_object_foreach(of, key, v)
		width = max(width, json_is_object(json_array_get(v, 0)) || json_is_object(v) ? 0 :
			strlen(key));
	json_object_foreach(of, key, v) {
		char *text = value_text(v);

		if (!json_is_object(json_array_get(v, 0)) && !json_is_object(v))
			fprintf(to, "%s%-*s  %s\n", indent, (int)width, key, text);
		free(text);
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

			info_set(columns, key, info_count((double)max(n, before)));
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
		const char *of = json_string_value(json_object_get(one, "of"));

		fprintf(to, *of ? "\nhistory of %s\n" : "\nhistory\n", of);
		json_array_foreach(json_object_get(one, "commands"), k, line) {
			char *text = value_text(line);

			fprintf(to, "  %s\n", text);
			free(text);
		}
	}
}

void info_print(FILE *to, const json_t *facts)
{
	json_t *of = (json_t *)(uintptr_t)facts, *v;
	const char *key;

	print_lines(to, facts, "");
	json_object_foreach(of, key, v) {
		if (!strcmp(key, "history")) {
			print_history(to, v);
			continue;
		}
		if (!json_is_object(json_array_get(v, 0)) && !json_is_object(v))
			continue;
		fprintf(to, "\n%s\n", key);
		if (json_is_array(v))
			print_table(to, v);
		else
			print_lines(to, v, "  ");
	}
}
