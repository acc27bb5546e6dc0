/* SPDX-License-Identifier: GPL-3.0-or-later */
/* json_lines.c -- see json_lines.h */
#include "text/json_lines.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/utf8.h"

void json_lines_prefix(const char *name, size_t line)
{
	char *where = xformat("%s:%zu", name, line);

	error_prefix(where);
	free(where);
}

static const char *kind_of(const json_t *v)
{
	return !v ? "missing" : json_is_null(v) ? "null" : json_is_number(v) ? "a number" :
		json_is_boolean(v) ? "true or false" : json_is_array(v) ? "an array" : "an object";
}

const char *json_member_text(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		die("'%s' is %s, expected a text", key, kind_of(v));
	return json_string_value(v);
}

/* For messages. */
static const char one_array[] = "; jq -c '.[]' divides an array into lines";

static bool is_blank(size_t n, const char text[n])
{
	while (n && (text[n - 1] == ' ' || (text[n - 1] >= '\t' && text[n - 1] <= '\r')))
		n--;
	return !n;
}

json_t *json_lines_next(struct json_lines *l)
{
	json_error_t error;
	json_t *o;

	l->at = l->at ? l->at : utf8_mark(l->text, l->n);
	while (l->at < l->n) {
		const char *line = l->text + l->at, *end = memchr(line, '\n', l->n - l->at);
		const size_t length = end ? (size_t)(end - line) : l->n - l->at;

		l->at += length + 1;
		l->line++;
		if (is_blank(length, line))
			continue;
		json_lines_prefix(l->name, l->line);
		o = json_loadb(line, length, l->flags | JSON_REJECT_DUPLICATES, &error);
		if (!o)
			die("is not valid JSON: %s%s", error.text,
				*line == '[' && !l->lists ? one_array : "");
		if (!l->lists && !json_is_object(o))
			die("is not a JSON object, expected one per line%s", *line == '[' ? one_array : "");
		return o;
	}
	return NULL;
}
