/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fields.c -- see fields.h */
#include "text/fields.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/names.h"

static const json_t *present(const json_t *v)
{
	return json_is_null(v) ? NULL : v;
}

const json_t *field(const char *name, const json_t *o, const char *key, json_type type)
{
	static const char *const names[] = { [JSON_OBJECT] = "object", [JSON_ARRAY] = "array",
		[JSON_STRING] = "string", [JSON_INTEGER] = "whole number" };
	const json_t *v = present(json_object_get(o, key));

	if (v && json_typeof(v) != type)
		die("%s: %s: has a value that is not of type %s", name, key, names[type]);
	return v;
}

bool field_flag(const char *name, const json_t *o, const char *key, bool default_value)
{
	const json_t *v = present(json_object_get(o, key));

	if (v && !json_is_boolean(v))
		die("%s: %s: is neither true nor false", name, key);
	return v ? json_is_true(v) : default_value;
}

const char *field_string(const char *name, const json_t *o, const char *key)
{
	return json_string_value(field(name, o, key, JSON_STRING));
}

const char *field_required(const char *name, const json_t *o, const char *key)
{
	const char *s = field_string(name, o, key);

	if (!s || !*s)
		die("%s: %s: expected a string that is not empty", name, key);
	return s;
}

struct fields_walk { const char *name, *what, *list; const struct field_row *rows; void *to; };

static void walk(const struct fields_walk *w, const json_t *o, int depth)
{
	const char *type;

	if (!json_is_object(o))
		die("%s: %s: is not an object", w->name, w->what);
	type = field_string(w->name, o, "type");
	if (!type)
		die("%s: %s: has no type", w->name, w->what);
	if (!strcmp(type, "Sequence")) {
		const json_t *array = field(w->name, o, w->list, JSON_ARRAY);

		if (!array || depth > SEQUENCE_DEPTH)
			die("%s: %s: a Sequence has no list of %s, or is nested too deeply",
				w->name, w->what, w->list);
		for (size_t i = 0; i < json_array_size(array); i++)
			walk(w, json_array_get(array, i), depth + 1);
		return;
	}
	for (const struct field_row *r = w->rows; r->type; r++)
		if (!strcmp(r->type, type)) {
			r->read(w->name, o, w->to);
			return;
		}
	die("%s: %s %s is not supported, expected one of Sequence, %s", w->name, w->what, type,
		names_of_rows(w->rows, sizeof *w->rows));
}

void field_parts(const char *name, const json_t *root, const char *what, const char *list,
	const struct field_row *rows, void *to)
{
	const struct fields_walk w = { name, what, list, rows, to };
	const json_t *o = present(json_object_get(root, what));

	if (o)
		walk(&w, o, 0);
}
