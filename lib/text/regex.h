/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * regex.h -- patterns of a tokenizer.json, by PCRE2
 *
 * Internal to lib/text. The `tokenizers` library has them run by Oniguruma (its own syntax, UTF-8). What both
 * spell alike goes to PCRE2 as it is; what means something else there is translated (\s \w \d \h \v \b,
 * names of properties and POSIX classes, (?m), {,n}, {n,m}+, \uHHHH); what has no counterpart (sets within
 * sets, &&, \W in a set, options other than i and m, {n}?, calls, conditions) is refused by name. Code
 * points that Unicode has assigned since PCRE2's tables were made (14.0 in PCRE2 10.42) have no properties
 * yet.
 *
 * Source: Oniguruma's doc/RE and doc/SYNTAX.md, pcre2pattern(3) and pcre2syntax(3).
 */
#ifndef TEXT_REGEX_H
#define TEXT_REGEX_H
#include <stdbool.h>
#include <stddef.h>

struct regex;

enum dialect {
	DIALECT_ONIGURUMA,
	DIALECT_LITERAL,	/* the text itself */
	DIALECT_PCRE2,		/* patterns of our own */
};

/* name: of the file, for messages, borrowed. Dies on a pattern that is refused, with the offset. */
struct regex *regex_make(const char *name, const char *pattern, enum dialect dialect);
/*
 * The next match in n bytes of valid UTF-8, looked for from `from` on; what stands before it is seen by
 * assertions. false: none. Dies where a search takes more than its limit of steps or memory.
 */
bool regex_find(const struct regex *r, size_t n, const char *s, size_t from, size_t *begin, size_t *end);

/* The next of all matches in turn: none begins within another, and an empty one does not follow another at
 * once. Starts with { 0 }. */
struct regex_place { size_t from; bool again; };
bool regex_next(const struct regex *r, size_t n, const char *s, struct regex_place *at, size_t *begin,
	size_t *end);
void regex_free(struct regex *r);
#endif
