/* SPDX-License-Identifier: GPL-3.0-or-later */
/* key.c -- see key.h */
#include "model/key.h"
#include <math.h>
#include <string.h>
#include "base/error.h"

struct keys keys_of(const struct keys *k, const json_t *json)
{
	return (struct keys){ .file = k->file, .json = json, .arch = k->arch };
}

json_t *key_get(const json_t *json, const char *key)
{
	json_t *v = json_object_get(json, key);

	return v && !json_is_null(v) ? v : NULL;
}

const char *key_name(const struct keys *k, const char *key)
{
	for (const struct key_row *row = k->arch->keys; row && row->ours; row++)
		if (!strcmp(row->ours, key)) {
			const bool theirs = row->theirs && json_object_get(k->json, row->theirs);
			const bool ours = row->both && json_object_get(k->json, key);

			return ours && !(row->both == THEIRS_FIRST && theirs) ? key : row->theirs;
		}
	return key;
}

size_t key_size(const struct keys *k, const char *key, size_t absent, size_t null, size_t max)
{
	const char *name = key_name(k, key);
	json_t *v = name ? json_object_get(k->json, name) : NULL;

	if (!v && absent)
		return absent;
	if (json_is_null(v) && null)
		return null;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || (size_t)json_integer_value(v) > max)
		die("%s: /config: '%s' must be a whole number from 1 to %zu", k->file, name, max);
	return (size_t)json_integer_value(v);
}

double key_real(const struct keys *k, const char *key, double absent)
{
	json_t *v = json_object_get(k->json, key);

	if (!v && !isnan(absent))
		return absent;
	if (!json_is_number(v) || !(json_number_value(v) > 0) || isinf(json_number_value(v)))
		die("%s: /config: '%s' must be a positive number", k->file, key);
	return json_number_value(v);
}

bool key_bool(const struct keys *k, const char *key, bool absent)
{
	json_t *v = json_object_get(k->json, key);

	if (v && !json_is_boolean(v))
		die("%s: /config: '%s' must be true or false", k->file, key);
	return v ? json_is_true(v) : absent;
}

const char *key_text(const struct keys *k, const char *key, const char *absent)
{
	json_t *v = json_object_get(k->json, key);

	if (v && !json_is_string(v))
		die("%s: /config: '%s' must be a string", k->file, key);
	return v ? json_string_value(v) : absent;
}
