/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_text.c -- methods and filters of texts in templates; see template_private.h */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "text/template_private.h"
#include "text/utf8.h"

/* A text that is an argument; the name is for messages. */
static struct span text_of(struct run *r, struct value v, const char *what)
{
	if (v.kind != VALUE_TEXT)
		template_fail(r, "%s is %s, expected a text", what, value_kind(v));
	return v.text;
}

static bool absent(struct value v) { return v.kind == VALUE_ABSENT || v.kind == VALUE_NONE; }

static struct value of_casing(struct call *c, enum casing casing)
{
	const struct span s = value_str(c->r, c->self);
	struct run *r = c->r;
	size_t n;
	char *made, *y;

	template_spend(r, s.n / 2);
	made = casing_make(casing, s.n, s.s, &n);
	y = template_memory(r, n + 1, 1);
	memcpy(y, made, n);
	free(made);
	return value_text(y, n);
}

/* Methods and filters: self is a text or not. */
static struct value text_upper(struct call *c) { return of_casing(c, CASING_UPPER); }
static struct value text_lower(struct call *c) { return of_casing(c, CASING_LOWER); }
static struct value text_title(struct call *c) { return of_casing(c, CASING_TITLE); }

/* Bytes of the character at s if strip() removes it: white space, or one of a set. */
static size_t stripped(const char *s, size_t n, const struct span *set)
{
	bool valid;
	const size_t length = n ? utf8_character(s, n, &valid) : 0;

	if (!set)
		return template_space(s, n);
	return length && memmem(set->s, set->n, s, length) ? length : 0;
}

static struct value strip(struct run *r, struct span s, struct value characters, bool left, bool right)
{
	const struct span *set = absent(characters) ? NULL : &characters.text;
	size_t n;

	if (set)
		text_of(r, characters, "what strip removes");
	template_spend(r, s.n / 64);
	while (left && (n = stripped(s.s, s.n, set)))
		s.s += n, s.n -= n;
	while (right && s.n) {
		for (n = 1; n < s.n && (s.s[s.n - n] & 0xc0) == 0x80; n++)
			;
		if (!stripped(s.s + s.n - n, n, set))
			break;
		s.n -= n;
	}
	return value_text(s.s, s.n);
}

static struct value strip_self(struct call *c, bool left, bool right)
{
	return strip(c->r, value_str(c->r, c->self), c->arg[0], left, right);
}

static struct value text_strip(struct call *c) { return strip_self(c, true, true); }
static struct value text_lstrip(struct call *c) { return strip_self(c, true, false); }
static struct value text_rstrip(struct call *c) { return strip_self(c, false, true); }

/* A limit of splits or replacements; -1: none. */
static int64_t limit_of(struct run *r, struct value v)
{
	if (v.kind == VALUE_ABSENT)
		return -1;
	if (v.kind != VALUE_INTEGER && v.kind != VALUE_BOOL)
		template_fail(r, "a limit is %s, expected a whole number", value_kind(v));
	return v.kind == VALUE_BOOL ? v.yes : v.integer;
}

static struct value split_spaces(struct run *r, struct span s, int64_t limit)
{
	const struct value y = value_list(r, FORM_LIST, 0);

	for (;;) {
		size_t n = 0;
		bool valid;

		s = strip(r, s, (struct value){ 0 }, true, false).text;
		if (!s.n)
			return y;
		if (!limit) {
			list_add(r, y, value_text(s.s, s.n));
			return y;
		}
		while (n < s.n && !template_space(s.s + n, s.n - n))
			n += utf8_character(s.s + n, s.n - n, &valid);
		list_add(r, y, value_text(s.s, n));
		s.s += n, s.n -= n;
		limit -= limit > 0;
	}
}

static struct value method_split(struct call *c)
{
	struct run *r = c->r;
	struct span s = c->self.text, sep;
	int64_t limit = limit_of(r, c->arg[1]);
	const struct value y = value_list(r, FORM_LIST, 0);

	if (absent(c->arg[0]))
		return split_spaces(r, s, limit);
	sep = text_of(r, c->arg[0], "a separator");
	if (!sep.n)
		template_fail(r, "the separator of split() is empty");
	template_spend(r, s.n / 64);
	for (const char *at; limit && (at = memmem(s.s, s.n, sep.s, sep.n)); limit -= limit > 0) {
		const size_t n = (size_t)(at - s.s);

		list_add(r, y, value_text(s.s, n));
		s.s += n + sep.n, s.n -= n + sep.n;
	}
	list_add(r, y, value_text(s.s, s.n));
	return y;
}

static bool has_end(struct span s, struct span with, bool start)
{
	return s.n >= with.n && (!with.n || !memcmp(start ? s.s : s.s + s.n - with.n, with.s, with.n));
}

/* Of startswith() and endswith(): a text, or a tuple of them. */
static struct value ends(struct call *c, bool start)
{
	const struct value with = c->arg[0];

	if (with.kind != VALUE_LIST || with.list->form != FORM_TUPLE)
		return value_bool(has_end(c->self.text, text_of(c->r, with, "the argument"), start));
	for (size_t i = 0; i < with.list->n; i++)
		if (has_end(c->self.text, text_of(c->r, with.list->item[i], "a part of the argument"), start))
			return value_bool(true);
	return value_bool(false);
}

static struct value method_startswith(struct call *c) { return ends(c, true); }
static struct value method_endswith(struct call *c) { return ends(c, false); }

static struct value replace(struct run *r, struct span s, struct span old, struct span new, int64_t limit)
{
	struct builder b = { .r = r };
	size_t i = 0;

	template_spend(r, s.n / 64);
	for (bool valid; limit && i <= s.n; limit -= limit > 0) {
		const char *at = old.n ? memmem(s.s + i, s.n - i, old.s, old.n) : s.s + i;
		size_t n;

		if (!at)
			break;
		build(&b, (size_t)(at - s.s) - i, s.s + i);
		build(&b, new.n, new.s);
		i = (size_t)(at - s.s) + old.n;
		if (!old.n) {	/* before each character, and at the end */
			if (i == s.n)
				return built(&b);
			n = utf8_character(s.s + i, s.n - i, &valid);
			build(&b, n, s.s + i);
			i += n;
		}
	}
	build(&b, s.n - i, s.s + i);
	return built(&b);
}

static struct value method_replace(struct call *c)
{
	return replace(c->r, c->self.text, text_of(c->r, c->arg[0], "what replace() looks for"),
		text_of(c->r, c->arg[1], "the replacement"), limit_of(c->r, c->arg[2]));
}

static struct value filter_replace(struct call *c)
{
	return replace(c->r, value_str(c->r, c->self), value_str(c->r, c->arg[0]),
		value_str(c->r, c->arg[1]), absent(c->arg[2]) ? -1 : limit_of(c->r, c->arg[2]));
}

static struct value filter_string(struct call *c)
{
	const struct span s = value_str(c->r, c->self);

	return value_text(s.s, s.n);
}

/* --- numbers in texts --- */

static size_t digits_at(const char *s)
{
	return strspn(s, "0123456789");
}

/* Whole numbers and decimal fractions as int() and float() of Python read them, in ASCII digits. */
static bool number_of(struct run *r, struct span s, struct value *y)
{
	char text[64];
	const char *at = text;
	size_t whole, fraction = 0, dot;
	bool valid;

	s = strip(r, s, (struct value){ 0 }, true, true).text;
	if (s.n >= sizeof text || memchr(s.s, '_', s.n))
		template_fail(r, "the filter int of a number with _ or of more than %zu characters is not "
			"supported", sizeof text - 1);
	for (size_t i = 0; i < s.n; i += utf8_character(s.s + i, s.n - i, &valid))
		if ((s.s[i] & 0x80) && utf8proc_category((utf8proc_int32_t)utf8_value(s.s + i)) ==
		    UTF8PROC_CATEGORY_ND)
			template_fail(r, "the filter int of digits beyond ASCII is not supported");
	memcpy(text, s.s, s.n);
	text[s.n] = '\0';
	if (strlen(text) != s.n)
		return false;
	at += *at == '-' || *at == '+';
	whole = digits_at(at);
	dot = at[whole] == '.';
	if (dot)
		fraction = digits_at(at + whole + 1);
	at += whole + dot + fraction;
	if (whole + fraction && (*at == 'e' || *at == 'E')) {
		const size_t sign = at[1] == '-' || at[1] == '+', power = digits_at(at + 1 + sign);

		at += power ? 1 + sign + power : 0;
	}
	if (!(whole + fraction) || *at)
		return false;
	*y = value_real(strtod(text, NULL));
	if (whole == strlen(text) - (*text == '-' || *text == '+') && whole < 19)
		*y = value_integer(strtoll(text, NULL, 10));
	return true;
}

static struct value filter_int(struct call *c)
{
	struct value v = c->self;
	const struct value other = c->arg[0].kind == VALUE_ABSENT ? value_integer(0) : c->arg[0];

	if (c->arg[1].kind != VALUE_ABSENT && !(c->arg[1].kind == VALUE_INTEGER && c->arg[1].integer == 10))
		template_fail(c->r, "the filter int has base 10 only");
	need_defined(c->r, v);
	if (v.kind == VALUE_TEXT && !number_of(c->r, v.text, &v))
		return other;
	if (v.kind == VALUE_BOOL || v.kind == VALUE_INTEGER)
		return value_integer(v.kind == VALUE_BOOL ? v.yes : v.integer);
	if (v.kind != VALUE_REAL || v.real != v.real)
		return other;
	if (!(v.real > -9e18 && v.real < 9e18))
		template_fail(c->r, "a number needs more than 64 bits");
	return value_integer((int64_t)v.real);
}

static struct value filter_tojson(struct call *c)
{
	struct builder b = { .r = c->r };
	const struct value ascii = c->arg[0], indent = c->arg[1];

	if (!absent(indent) && (indent.kind != VALUE_INTEGER || indent.integer < 0 || indent.integer > 100))
		template_fail(c->r, "the indent of tojson is not a number from 0 to 100");
	value_json(&b, c->self, absent(indent) ? NULL : &indent.integer, 0, value_true(ascii));
	return built(&b);
}

const struct callee template_text_filters[] = {
	{ "trim", "chars", 0, text_strip, 0 },
	{ "upper", "", 0, text_upper, 0 },
	{ "lower", "", 0, text_lower, 0 },
	{ "string", "", 0, filter_string, 0 },
	{ "safe", "", 0, filter_string, 0 },
	{ "replace", "old new count", 2, filter_replace, 0 },
	{ "int", "default base", 0, filter_int, 0 },
	{ "tojson", "ensure_ascii indent", 0, filter_tojson, 0 },
	{ .name = NULL }
};

/* --- methods of dicts --- */

/* Pairs, keys or values of a dict. */
static struct value view(struct run *r, const struct dict *d, bool keys, bool values)
{
	const struct value y = value_list(r, FORM_VIEW, d->n);

	for (size_t i = 0; i < d->n; i++) {
		const struct pair *p = d->pair + i;
		struct value pair = keys ? p->key : p->value;

		if (keys && values) {
			pair = value_list(r, FORM_TUPLE, 2);
			list_add(r, pair, p->key);
			list_add(r, pair, p->value);
		}
		list_add(r, y, pair);
	}
	return y;
}

static struct value method_items(struct call *c) { return view(c->r, c->self.dict, true, true); }
static struct value method_keys(struct call *c) { return view(c->r, c->self.dict, true, false); }
static struct value method_values(struct call *c) { return view(c->r, c->self.dict, false, true); }

static struct value method_get(struct call *c)
{
	const struct value none = { .kind = VALUE_NONE }, *v;

	if (c->arg[0].kind == VALUE_LIST || c->arg[0].kind == VALUE_DICT)
		template_fail(c->r, "%s cannot be the key of a dict", value_kind(c->arg[0]));
	v = dict_find(c->r, c->self.dict, c->arg[0]);
	return v ? *v : c->arg[1].kind == VALUE_ABSENT ? none : c->arg[1];
}

const struct callee template_methods[] = {
	{ "strip", "/ chars", 0, text_strip, VALUE_TEXT },
	{ "lstrip", "/ chars", 0, text_lstrip, VALUE_TEXT },
	{ "rstrip", "/ chars", 0, text_rstrip, VALUE_TEXT },
	{ "split", "sep maxsplit", 0, method_split, VALUE_TEXT },
	{ "startswith", "/ prefix", 1, method_startswith, VALUE_TEXT },
	{ "endswith", "/ suffix", 1, method_endswith, VALUE_TEXT },
	{ "replace", "/ old new count", 2, method_replace, VALUE_TEXT },
	{ "upper", "", 0, text_upper, VALUE_TEXT },
	{ "lower", "", 0, text_lower, VALUE_TEXT },
	{ "title", "", 0, text_title, VALUE_TEXT },
	{ "items", "", 0, method_items, VALUE_DICT },
	{ "keys", "", 0, method_keys, VALUE_DICT },
	{ "values", "", 0, method_values, VALUE_DICT },
	{ "get", "/ key default", 1, method_get, VALUE_DICT },
	{ .name = NULL }
};
