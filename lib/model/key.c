/* SPDX-License-Identifier: GPL-3.0-or-later */
/* key.c -- see key.h */
#include "model/key.h"
#include <math.h>
#include <string.h>
#include "base/error.h"

_Thread_local const char *key_file = "?";

json_t *key_get(const json_t *json, const char *key)
{
	json_t *v = json_object_get(json, key);

	return v && !json_is_null(v) ? v : NULL;
}

const char *key_name(const struct architecture *arch, const json_t *json, const char *key)
{
	for (const struct key_row *k = arch->keys; k && k->ours; k++)
		if (!strcmp(k->ours, key)) {
			const bool theirs = k->theirs && json_object_get(json, k->theirs);
			const bool ours = k->both && json_object_get(json, key);

			return ours && !(k->both == THEIRS_FIRST && theirs) ? key : k->theirs;
		}
	return key;
}

size_t key_size(const struct architecture *arch, const json_t *json, const char *key, size_t absent,
	size_t null, size_t max)
{
	const char *name = key_name(arch, json, key);
	json_t *v = name ? json_object_get(json, name) : NULL;

	if (!v && absent)
		return absent;
	if (json_is_null(v) && null)
		return null;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || (size_t)json_integer_value(v) > max)
		die("%s: /config: '%s' must be a whole number from 1 to %zu", key_file, name, max);
	return (size_t)json_integer_value(v);
}

double key_real(const json_t *json, const char *key, double absent)
{
	json_t *v = json_object_get(json, key);

	if (!v && !isnan(absent))
		return absent;
	if (!json_is_number(v) || !(json_number_value(v) > 0) || isinf(json_number_value(v)))
		die("%s: /config: '%s' must be a positive number", key_file, key);
	return json_number_value(v);
}

bool key_bool(const json_t *json, const char *key, bool absent)
{
	json_t *v = json_object_get(json, key);

	if (v && !json_is_boolean(v))
		die("%s: /config: '%s' must be true or false", key_file, key);
	return v ? json_is_true(v) : absent;
}

const char *key_text(const json_t *json, const char *key, const char *absent)
{
	json_t *v = json_object_get(json, key);

	if (v && !json_is_string(v))
		die("%s: /config: '%s' must be a string", key_file, key);
	return v ? json_string_value(v) : absent;
}
