/* SPDX-License-Identifier: GPL-3.0-or-later */
/* key.h -- keys of config.json, by the names of their class; errors name the file and the key */
#ifndef MODEL_KEY_H
#define MODEL_KEY_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "model/architecture.h"

/* An object of config.json. file: where messages say the trouble is. */
struct keys {
	const char *file;
	const json_t *json;
	const struct architecture *arch;	/* the class whose names its keys have */
};

/* Another object of the same file. */
struct keys keys_of(const struct keys *k, const json_t *json);
/* The value, NULL where there is none or it is null. */
json_t *key_get(const json_t *json, const char *key);
/* What the class calls a key, NULL if it has none of the kind. */
const char *key_name(const struct keys *k, const char *key);
/* A whole number of 1..max. absent, null: its value where the key is not there, or null; 0: an error. */
size_t key_size(const struct keys *k, const char *key, size_t absent, size_t null, size_t max);
/* A positive number. absent: likewise; NaN: an error. */
double key_real(const struct keys *k, const char *key, double absent);
bool key_bool(const struct keys *k, const char *key, bool absent);
const char *key_text(const struct keys *k, const char *key, const char *absent);
#endif
