/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * json_lines.h -- the values of a text of JSON lines
 *
 *	struct json_lines l = { .name = "q.jsonl", .n = n, .text = text };
 *	while ((o = json_lines_next(&l)))
 *		...
 *	error_prefix(NULL);
 *
 * Blank lines are passed over, and a byte order mark at the start. Messages begin with FILE:LINE of the last
 * value.
 */
#ifndef TEXT_JSON_LINES_H
#define TEXT_JSON_LINES_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_lines {
	const char *name;		/* of the file, for messages */
	size_t n;
	const char *text;		/* [n], borrowed */
	bool lists;			/* a line may be a list, too */
	size_t flags;			/* of Jansson */
	size_t at, line;		/* start as 0; line: of the last value, from 1 */
};

/* The next value, or NULL at the end; json_decref() it. A line of another kind, and an object with a member
 * twice, is a fatal error. */
json_t *json_lines_next(struct json_lines *l);
/* Messages begin with NAME:LINE, until error_prefix(). */
void json_lines_prefix(const char *name, size_t line);
/* A text of an object. Fatal error if it is missing or not a text. */
const char *json_member_text(const json_t *o, const char *key);
#endif
