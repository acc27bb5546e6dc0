/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fields.h -- members of the objects of a tokenizer.json
 *
 * Internal to lib/text. name: of the file, for messages. null counts as absent.
 */
#ifndef TEXT_FIELDS_H
#define TEXT_FIELDS_H
#include <jansson.h>
#include <stdbool.h>

enum { SEQUENCE_DEPTH = 16 };	/* Sequences within each other; more are refused */

/* A member, which must have that type; NULL if there is none. */
const json_t *field(const char *name, const json_t *o, const char *key, json_type type);
bool field_flag(const char *name, const json_t *o, const char *key, bool otherwise);
const char *field_string(const char *name, const json_t *o, const char *key);	/* or NULL */
const char *field_required(const char *name, const json_t *o, const char *key);	/* a string, not empty */

/*
 * A list of parts, which are known by their types. `what`: the member of the file, "normalizer"; list: where
 * a part of type Sequence holds others. rows end with type NULL; a type that has none is refused by name.
 */
struct field_row {
	const char *type;
	void (*read)(const char *name, const json_t *o, void *to);
};
void field_parts(const char *name, const json_t *root, const char *what, const char *list,
	const struct field_row *rows, void *to);
#endif
