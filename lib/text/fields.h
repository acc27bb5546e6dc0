/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fields.h -- members of the objects of a tokenizer.json
 *
 * Internal to lib/text. A member that is null counts as absent. A wrong type is a fatal error. name: the
 * file's name, for messages.
 */
#ifndef TEXT_FIELDS_H
#define TEXT_FIELDS_H
#include <jansson.h>
#include <stdbool.h>

enum { SEQUENCE_DEPTH = 16 };	/* nested Sequences; deeper ones are refused */

/* A member, which must have this type; NULL if absent. */
const json_t *field(const char *name, const json_t *o, const char *key, json_type type);
bool field_flag(const char *name, const json_t *o, const char *key, bool default_value);
const char *field_string(const char *name, const json_t *o, const char *key);	/* NULL if absent */
const char *field_required(const char *name, const json_t *o, const char *key);	/* a non-empty string */

/*
 * Reads a list of parts by their types. what: the member of the file, such as "normalizer". list: the
 * member of a part of type Sequence that has its parts. rows: the known types, ended by type NULL; other
 * types are refused by name.
 */
struct field_row {
	const char *type;
	void (*read)(const char *name, const json_t *o, void *to);
};
void field_parts(const char *name, const json_t *root, const char *what, const char *list,
	const struct field_row *rows, void *to);
#endif
