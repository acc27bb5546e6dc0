/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * regex.h -- patterns of a tokenizer.json, run by PCRE2
 *
 * For lib/text, and for filters of texts (eval/match.h). The `tokenizers` library runs patterns by Oniguruma
 * (its own syntax, UTF-8). Syntax that both libraries share goes to PCRE2 unchanged. Syntax with another
 * meaning in PCRE2 is translated: \s \w \d \h \v \b, names of properties and POSIX classes, (?m), {,n},
 * {n,m}+, \uHHHH. Syntax without a counterpart is refused by name: sets within sets, &&, \W in a set,
 * options other than i and m, {n}?, calls, conditions. Code points that Unicode has assigned since PCRE2's
 * tables were made (14.0 in PCRE2 10.42) have no properties.
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
	DIALECT_LITERAL,	/* a literal text */
	DIALECT_PCRE2,		/* patterns of this project */
};

/* Compiles a pattern. name: the file's name, for messages, borrowed. Fatal error, with the offset, on a
 * pattern that is refused. */
struct regex *regex_make(const char *name, const char *pattern, enum dialect dialect);
/* Finds the next match in n bytes of valid UTF-8, from `from` on; false without a match. Assertions can
 * read the text before `from`. Fatal error if a search exceeds its limit of steps or memory. */
bool regex_find(const struct regex *r, size_t n, const char *s, size_t from, size_t *begin, size_t *end);

/* Finds all matches one by one. Matches do not overlap, and an empty match does not directly follow another
 * match. The place starts as { 0 }. */
struct regex_place { size_t from; bool again; };
bool regex_next(const struct regex *r, size_t n, const char *s, struct regex_place *at, size_t *begin,
	size_t *end);
void regex_free(struct regex *r);
#endif
