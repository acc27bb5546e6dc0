/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * key.h -- keys of config.json, by the names of their class
 *
 * A missing or invalid value is a fatal error that names the file and the key.
 */
#ifndef MODEL_KEY_H
#define MODEL_KEY_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "model/architecture.h"

/* An object of config.json. file: name of the file, for messages. */
struct keys {
	const char *file;
	const json_t *json;
	const struct architecture *arch;	/* the class whose names the keys have */
};

/* Another object of the same file. */
struct keys keys_of(const struct keys *k, const json_t *json);
/* The value; NULL if it is absent or null. */
json_t *key_get(const json_t *json, const char *key);
/* The class's name of a key; NULL if the class lacks the key. */
const char *key_name(const struct keys *k, const char *key);
/* A whole number of 1..max. absent, null: the values for an absent key and for null; 0: fatal error. */
size_t key_size(const struct keys *k, const char *key, size_t absent, size_t null, size_t max);
/* A positive number. absent: the value for an absent key; NaN: fatal error. */
double key_real(const struct keys *k, const char *key, double absent);
bool key_bool(const struct keys *k, const char *key, bool absent);
const char *key_text(const struct keys *k, const char *key, const char *absent);
#endif
