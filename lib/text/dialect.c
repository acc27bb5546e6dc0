/* SPDX-License-Identifier: GPL-3.0-or-later */
/* dialect.c -- translates a pattern from Oniguruma's syntax to PCRE2's; see dialect.h */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/dialect.h"
#include <pcre2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

enum { GROUPS = 250 };	/* nested groups; PCRE2's own limit */

struct writer {
	const char *name, *pattern, *at;	/* at: the next byte to read */
	char *out;
	size_t n, capacity;
	size_t atom;		/* in out: start of the atom that a quantifier repeats */
	size_t open[GROUPS], depth;	/* in out: starts of open groups */
};

#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define WIDER WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"	/* Oniguruma's \w outside of sets */
#define HEX "0-9A-Fa-f"

/* The translation of an escape, outside and inside of a set; NULL: refused there. */
static const struct meaning { char letter; const char *outside, *inside; } escapes[] = {
	{ 's', "\\p{White_Space}", "\\p{White_Space}" }, { 'S', "\\P{White_Space}", "\\P{White_Space}" },
	{ 'w', "[" WIDER "]", WORD }, { 'W', "[^" WIDER "]", NULL },
	{ 'd', "\\p{Nd}", "\\p{Nd}" }, { 'D', "\\P{Nd}", "\\P{Nd}" },
	{ 'h', "[" HEX "]", HEX }, { 'H', "[^" HEX "]", NULL },
	{ 'b', "(?:(?<=[" WIDER "])(?![" WIDER "])|(?<![" WIDER "])(?=[" WIDER "]))", "\\x08" },
	{ 'B', "(?:(?<=[" WIDER "])(?=[" WIDER "])|(?<![" WIDER "])(?![" WIDER "]))", NULL },
	{ 'v', "\\x0b", "\\x0b" }, { 'n', "\\n", "\\n" }, { 'r', "\\r", "\\r" }, { 't', "\\t", "\\t" },
	{ 'f', "\\f", "\\f" }, { 'a', "\\a", "\\a" }, { 'e', "\\e", "\\e" },
	{ 'A', "\\A", NULL }, { 'z', "\\z", NULL }, { 'Z', "\\Z", NULL }, { 'G', "\\G", NULL },
	{ 'N', "\\N", NULL }, { 'O', "(?s:.)", NULL }, { 'R', "\\R", NULL }, { 'X', "\\X", NULL },
	{ 0, NULL, NULL },
};

static const struct bracket { const char *name, *positive, *negative; } brackets[] = {
	{ "alpha", "\\p{Alphabetic}", "\\P{Alphabetic}" }, { "digit", "\\p{Nd}", "\\P{Nd}" },
	{ "space", "\\p{White_Space}", "\\P{White_Space}" }, { "upper", "\\p{Uppercase}", "\\P{Uppercase}" },
	{ "lower", "\\p{Lowercase}", "\\P{Lowercase}" }, { "cntrl", "\\p{Cc}", "\\P{Cc}" },
	{ "alnum", "\\p{Alphabetic}\\p{Nd}", NULL }, { "word", WORD, NULL }, { "xdigit", HEX, NULL },
	{ "punct", "\\p{P}\\p{S}", NULL },
	{ NULL, NULL, NULL },
};

/* Long names of general categories, which PCRE2 does not have. */
static const char *const categories[][2] = {
	{ "Letter", "L" }, { "Mark", "M" }, { "Number", "N" }, { "Punctuation", "P" }, { "Symbol", "S" },
	{ "Separator", "Z" }, { "Other", "C" }, { "Uppercase_Letter", "Lu" }, { "Lowercase_Letter", "Ll" },
	{ "Titlecase_Letter", "Lt" }, { "Modifier_Letter", "Lm" }, { "Other_Letter", "Lo" },
	{ "Decimal_Number", "Nd" }, { "Nonspacing_Mark", "Mn" }, { "Spacing_Mark", "Mc" },
};

static void put_bytes(struct writer *w, const char *s, size_t n)
{
	if (w->n + n >= w->capacity) {
		w->capacity = 2 * w->capacity + n + 64;
		w->out = xgrow(w->out, w->capacity, 1);
	}
	memcpy(w->out + w->n, s, n);
	w->n += n;
	w->out[w->n] = '\0';
}

static void put_text(struct writer *w, const char *s)
{
	put_bytes(w, s, strlen(s));
}

static _Noreturn void refuse_pattern(const struct writer *w, const char *at, const char *why)
{
	die("%s: pattern '%.100s': at byte %zu: %s", w->name, w->pattern, (size_t)(at - w->pattern), why);
}

/* Whether PCRE2 supports \p{property}. */
static bool knows_property(const char *property)
{
	char *pattern = xformat("\\p{%s}", property);
	int error;
	size_t offset;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error,
		&offset, NULL);
	bool known = code != NULL;

	pcre2_code_free(code);
	free(pattern);
	return known;
}

/* Reads the {name} or {^name} of \p or \P. */
static void read_property(struct writer *w, bool negative)
{
	const char *begin = w->at, *end = *begin == '{' ? strchr(begin, '}') : NULL;
	char name[64], script[80];

	if (!end)
		refuse_pattern(w, begin, "\\p has no {NAME}");
	begin++;
	if (*begin == '^') {
		negative = !negative;
		begin++;
	}
	if ((size_t)(end - begin) >= sizeof name)
		refuse_pattern(w, begin, "\\p has a name that is too long");
	snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
	for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
		if (!strcmp(categories[i][0], name))
			snprintf(name, sizeof name, "%s", categories[i][1]);
	/* in PCRE2 the bare name of a script means its Script_Extensions */
	snprintf(script, sizeof script, "sc:%s", name);
	put_text(w, negative ? "\\P{" : "\\p{");
	put_text(w, strlen(name) > 2 && knows_property(script) ? script : name);
	put_text(w, "}");
	w->at = end + 1;
}

/* Reads the digits of \uHHHH, \xHH or \x{...}. */
static void read_code(struct writer *w, char letter)
{
	size_t want = letter == 'u' ? 4 : 2, n = strspn(w->at, "0123456789abcdefABCDEF");
	char digits[5];

	if (letter == 'x' && *w->at == '{') {
		const char *end = strchr(w->at, '}');

		if (!end)
			refuse_pattern(w, w->at, "\\x{ has no }");
		put_text(w, "\\x");
		put_bytes(w, w->at, (size_t)(end + 1 - w->at));
		w->at = end + 1;
		return;
	}
	if (n < want)
		refuse_pattern(w, w->at, "an escape has too few digits");
	snprintf(digits, sizeof digits, "%.*s", (int)want, w->at);
	if (letter == 'x' && strtoul(digits, NULL, 16) > 0x7f)
		refuse_pattern(w, w->at, "\\x above 7F is a byte, and no character");
	put_text(w, "\\x{");
	put_text(w, digits);
	put_text(w, "}");
	w->at += want;
}

/* Reads the escape after a backslash. */
static void read_escape(struct writer *w, bool inside)
{
	const char *begin = w->at - 1;
	char c = *w->at;

	if (!c)
		refuse_pattern(w, begin, "ends in a backslash");
	if (!inside)
		w->atom = w->n;
	if (c == 'p' || c == 'P') {
		w->at++;
		read_property(w, c == 'P');
	} else if (c == 'u' || c == 'x') {
		w->at++;
		read_code(w, c);
	} else if (!inside && c >= '1' && c <= '9' && (w->at[1] < '0' || w->at[1] > '9')) {
		put_bytes(w, begin, 2);
		w->at++;
	} else if ((c | 32) < 'a' || (c | 32) > 'z') {
		if (c >= '0' && c <= '9')
			refuse_pattern(w, begin, "an escape by digits is not supported");
		put_bytes(w, begin, 1);	/* the character follows, escaped */
		do
			put_bytes(w, w->at++, 1);
		while ((*w->at & 0xc0) == 0x80);
	} else {
		const struct meaning *m = escapes;

		while (m->letter && m->letter != c)
			m++;
		if (!(inside ? m->inside : m->outside))
			refuse_pattern(w, begin, "this escape is not supported here");
		put_text(w, inside ? m->inside : m->outside);
		w->at++;
	}
}

/* Reads [:name:] or [:^name:] in a set; `at` is after the first bracket. */
static void read_bracket(struct writer *w)
{
	const char *begin = w->at + 1, *end = strstr(begin, ":]");
	bool negative = *begin == '^';

	begin += negative;
	for (const struct bracket *b = brackets; end && b->name; b++) {
		const char *s = negative ? b->negative : b->positive;

		size_t n = strlen(b->name);

		if (s && n == (size_t)(end - begin) && !strncmp(b->name, begin, n)) {
			put_text(w, s);
			w->at = end + 2;
			return;
		}
	}
	refuse_pattern(w, begin, "this POSIX bracket is not supported");
}

/* Reads a set; `at` is after its bracket. */
static void read_set(struct writer *w)
{
	const char *begin = w->at - 1;

	w->atom = w->n;
	put_text(w, "[");
	if (*w->at == '^')
		put_bytes(w, w->at++, 1);
	for (bool first = true; first || *w->at != ']'; first = false) {
		char c = *w->at++;

		if (!c)
			refuse_pattern(w, begin, "a set has no ]");
		if (c == '\\')
			read_escape(w, true);
		else if (c == '[' && *w->at == ':')
			read_bracket(w);
		else if (c == '[')
			refuse_pattern(w, w->at - 1, "sets within sets are not supported");
		else if (c == '&' && *w->at == '&')
			refuse_pattern(w, w->at - 1, "intersections of sets (&&) are not supported");
		else
			put_bytes(w, &c, 1);
	}
	put_text(w, "]");
	w->at++;
}

/* Reads options, (?im-im) or (?im-im:, and writes them under PCRE2's names. Oniguruma's m lets a dot match
 * every character. */
static void read_options(struct writer *w)
{
	const char *begin = w->at;

	put_text(w, "(?");
	for (; *w->at && strchr("im-", *w->at); w->at++)
		put_text(w, *w->at == 'm' ? "s" : *w->at == 'i' ? "i" : "-");
	if (w->at == begin || (*w->at != ':' && *w->at != ')'))
		refuse_pattern(w, begin, "this kind of group is not supported");
	/* elsewhere Oniguruma would make the rest, alternatives too, a group */
	if (*w->at == ')' && begin != w->pattern + 2)
		refuse_pattern(w, begin, "options within a pattern need a group, (?i:...)");
	if (*w->at == ')') {
		put_text(w, ")");
		w->depth--;
	} else {
		put_text(w, ":");
	}
	w->at++;
}

/* Reads the head of a group; `at` is after its parenthesis. */
static void read_group(struct writer *w)
{
	static const char *const heads[] = { "?:", "?=", "?!", "?>", "?<=", "?<!" };

	if (w->depth == GROUPS)
		refuse_pattern(w, w->at, "groups are nested too deeply");
	w->open[w->depth++] = w->n;
	if (*w->at == '*')
		refuse_pattern(w, w->at, "this kind of group is not supported");
	if (*w->at != '?') {
		put_text(w, "(");
		return;
	}
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (!strncmp(w->at, heads[i], strlen(heads[i]))) {
			put_text(w, "(");
			put_text(w, heads[i]);
			w->at += strlen(heads[i]);
			return;
		}
	w->at++;
	read_options(w);
}

/* Reads a brace: {n}, {n,}, {,m} and {n,m} repeat the last atom; any other brace is a character. */
static void read_brace(struct writer *w)
{
	const char *s = w->at;
	size_t low = strspn(s, "0123456789"), comma = s[low] == ',';
	size_t high = comma ? strspn(s + low + 1, "0123456789") : 0, all = low + comma + high;

	if (s[all] != '}' || !(low + high)) {
		w->atom = w->n;
		put_text(w, "\\{");
		return;
	}
	w->at += all + 1;
	if (*w->at == '?' && !comma)
		refuse_pattern(w, w->at, "{n}? is not supported");
	if (*w->at == '+') {	/* repeats the repetition; it is not possessive */
		put_bytes(w, "   ", 3);
		memmove(w->out + w->atom + 3, w->out + w->atom, w->n - w->atom - 3);
		memcpy(w->out + w->atom, "(?:", 3);
	}
	put_text(w, low ? "{" : "{0");
	put_bytes(w, s, all + 1);
	if (*w->at == '+')
		put_text(w, ")");
}

char *dialect_translate(const char *name, const char *pattern)
{
	struct writer w = { .name = name, .pattern = pattern, .at = pattern };

	put_text(&w, "");
	while (*w.at) {
		char c = *w.at++;

		if (c == '\\')
			read_escape(&w, false);
		else if (c == '[')
			read_set(&w);
		else if (c == '(')
			read_group(&w);
		else if (c == '{')
			read_brace(&w);
		else if (strchr("*+?", c))
			put_bytes(&w, &c, 1);
		else {
			if (c == ')' && w.depth)
				w.atom = w.open[--w.depth];
			else if ((c & 0xc0) != 0x80)
				w.atom = w.n;
			put_bytes(&w, &c, 1);
		}
	}
	return w.out;
}
