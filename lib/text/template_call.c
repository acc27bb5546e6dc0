/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_call.c -- functions, methods, filters and tests of templates; see template_private.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>
#include "text/template_private.h"
#include "text/utf8.h"

#define UNUSED __attribute__((unused))
#define CALL UNUSED struct run *r, UNUSED const struct row *row, UNUSED json_t *self, \
	UNUSED json_t *const arg[ARGUMENTS]

enum { LEFT = 1, RIGHT = 2 };

/* --- functions --- */

static json_t *call_raise(CALL)
{
	fail("raise_exception: %s", json_string_value(make_str(r, arg[0])));
}

static json_t *call_strftime(CALL)
{
	const char *format = json_string_value(arg[0]), *at = format;
	char text[512];
	struct tm t = { 0 };

	if (!r->date)
		fail("the template asks for the date, give one by --date");
	while ((at = strchr(at, '%')) && at[1] && strchr("aAbBdHIjmMpSUwWyYF%", at[1]))
		at += 2;
	if (at || strlen(format) > 30)
		fail("this format of a date is not supported: %s", format);
	sscanf(r->date, "%d-%d-%d", &t.tm_year, &t.tm_mon, &t.tm_mday);
	t.tm_year -= 1900, t.tm_mon--;
	timegm(&t);	/* sets the day of the week and of the year */
	return make_text(r, text, strftime(text, sizeof text, format, &t));
}

static json_t *call_range(CALL)
{
	enum { MOST = 100000 };		/* as in jinja2's sandbox */
	json_t *y = make_list(r);
	json_int_t part[3] = { 0, 0, 1 };

	for (int i = 0; i < 3 && arg[i]; i++) {
		if (llabs(whole(arg[i])) > 1LL << 60 || (i == 2 && !whole(arg[i])))
			fail("range() has a step of 0, or numbers beyond 2^60");
		part[arg[1] ? i : 1] = whole(arg[i]);
	}
	for (; part[2] > 0 ? part[0] < part[1] : part[0] > part[1]; part[0] += part[2])
		if (add(r, y, make_integer(r, part[0])), json_array_size(y) > MOST)
			fail("range() has more than %d numbers", MOST);
	return make_marked(r, KIND_VIEW, y);
}

/* --- texts --- */

/* upper, lower, title. A character that becomes several, and a sigma, which may be final, are refused. */
static json_t *text_casing(CALL)
{
	json_t *v = make_str(r, self);
	const char *s = json_string_value(v), *end = s + json_string_length(v);
	utf8proc_int32_t folded[4];
	struct text b = { .r = r };
	int to, kind = 0;
	bool valid;

	for (size_t bytes; s < end; s += bytes) {
		const utf8proc_int32_t c = (utf8proc_int32_t)utf8_value(s);
		const bool after = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LT;
		char y[4];

		to = row->option != 't' ? row->option : after ? 'l' : 't';
		bytes = utf8_character(s, (size_t)(end - s), &valid);
		if (to == 'l' ? c == 0x130 || c == 0x3a3 : utf8proc_decompose_char(c, folded, 4,
		    UTF8PROC_CASEFOLD, &kind) > 1)
			fail("%s of '%.*s' is not supported", row->name, (int)bytes, s);
		put(&b, y, utf8_put(y, (uint32_t)(to == 'l' ? utf8proc_tolower(c) : to == 'u' ?
			utf8proc_toupper(c) : utf8proc_totitle(c))));
		kind = utf8proc_category(c);
	}
	return put_end(&b);
}

/* Bytes of the character at s if strip() removes it: white space, or one of a set. */
static size_t stripped(const char *s, size_t n, const json_t *set)
{
	bool valid;
	const size_t k = n && set ? utf8_character(s, n, &valid) : 0;

	return !set ? template_space(s, n) :
		k && memmem(json_string_value(set), json_string_length(set), s, k) ? k : 0;
}

static json_t *text_strip(CALL)
{
	json_t *v = make_str(r, self), *set = arg[0];
	const char *s = json_string_value(v);
	size_t n = json_string_length(v), k;

	for (; (row->option & LEFT) && (k = stripped(s, n, set)); n -= k)
		s += k;
	for (; (row->option & RIGHT) && n; n -= k) {
		for (k = 1; k < n && (s[n - k] & 0xc0) == 0x80; k++)
			;
		if (!stripped(s + n - k, k, set))
			break;
	}
	return make_text(r, s, n);
}

/* Split at white space, or at a separator. */
static json_t *text_split(CALL)
{
	const bool spaces = !arg[0];
	const char *s = json_string_value(self), *end = s + json_string_length(self), *at, *found;
	const char *gap = json_string_value(arg[0]);
	const size_t n = json_string_length(arg[0]);
	json_t *y = make_list(r);
	json_int_t limit = arg[1] ? whole(arg[1]) : -1;

	if (!spaces && !n)
		fail("split: the separator is empty");
	do {
		for (size_t k; spaces && (k = template_space(s, (size_t)(end - s))); )
			s += k;
		if (spaces && s == end)
			break;
		for (at = s; spaces && at < end && !template_space(at, (size_t)(end - at)); at++)
			;
		found = !limit ? NULL : spaces ? at : memmem(s, (size_t)(end - s), gap, n);
		limit -= limit > 0;
		add(r, y, make_text(r, s, (size_t)((found ? found : end) - s)));
		s = found ? found + n : s;
	} while (found);
	return y;
}

static json_t *text_ends(CALL)
{
	const size_t n = json_string_length(self), k = json_string_length(arg[0]);
	const char *s = json_string_value(self), *with = json_string_value(arg[0]);

	return json_boolean(n >= k && !memcmp(row->option == LEFT ? s : s + n - k, with, k));
}

static json_t *text_replace(CALL)
{
	json_t *v = make_str(r, self);
	const char *old = json_string_value(arg[0]), *new = json_string_value(arg[1]);
	const char *s = json_string_value(v), *end = s + json_string_length(v), *at;
	const size_t n = json_string_length(arg[0]);
	json_int_t limit = arg[2] ? whole(arg[2]) : -1;
	struct text b = { .r = r };

	if (!n)
		fail("replace: an empty text is not supported");
	for (; limit && (at = memmem(s, (size_t)(end - s), old, n)); s = at + n, limit -= limit > 0) {
		put(&b, s, (size_t)(at - s));
		put(&b, new, json_string_length(arg[1]));
	}
	put(&b, s, (size_t)(end - s));
	return put_end(&b);
}

static json_t *filter_string(CALL) { return make_str(r, self); }

static json_t *filter_int(CALL)
{
	const char *s = json_string_value(self), *digits = s ? s + (*s == '-' || *s == '+') : "";
	const size_t n = strspn(digits, "0123456789");

	if (is_whole(self) || (json_is_real(self) && real(self) > -9e18 && real(self) < 9e18))
		return make_integer(r, is_whole(self) ? whole(self) : (json_int_t)real(self));
	if (n && n < 19 && n == strlen(digits))
		return make_integer(r, strtoll(s, NULL, 10));
	for (; *digits; digits++)
		if ((*digits & 0x80) || (*digits >= '0' && *digits <= '9'))
			fail("the filter int of this text is not supported, expected digits only");
	return arg[0] ? arg[0] : make_integer(r, 0);
}

static json_t *filter_tojson(CALL)
{
	struct text b = { .r = r };

	if (arg[1] && (whole(arg[1]) < 0 || whole(arg[1]) > 100))
		fail("tojson: the indent is not from 0 to 100");
	put_value(&b, self, true, arg[1] ? (int)whole(arg[1]) : -1, 0);
	return put_end(&b);
}

/* --- lists and dicts --- */

static json_t *filter_length(CALL)
{
	if (kind_of(self) == KIND_ITERATOR)
		fail("an iterator has no length, use the filter list");
	return make_integer(r, (json_int_t)json_array_size(items_of(r, self)));
}

static json_t *filter_default(CALL)
{
	return self != &template_undefined && !(arg[1] && truth(arg[1]) && !truth(self)) ? self :
		arg[0] ? arg[0] : make_text(r, "", 0);
}

static json_t *filter_list(CALL) { return items_of(r, self); }
static json_t *filter_join(CALL) { return join(r, items_of(r, self), arg[0]); }

static json_t *filter_end(CALL)
{
	return item_of(r, items_of(r, self), make_integer(r, row->option), false);
}

static json_t *filter_reverse(CALL)
{
	json_t *const bounds[] = { json_null(), json_null(), make_integer(r, -1) };
	json_t *y = slice_of(r, json_is_string(self) ? self : items_of(r, self), bounds);

	return json_is_string(self) ? y : make_marked(r, KIND_ITERATOR, y);
}

/* items(), keys(), values(), and the filter items. */
static json_t *dict_parts(CALL)
{
	json_t *y = make_list(r), *pair, *v;
	const char *key;

	json_object_foreach(self, key, v) {
		pair = make_list(r);
		add(r, pair, make_text(r, key, strlen(key)));
		add(r, pair, v);
		add(r, y, row->option == 'i' ? make_marked(r, KIND_VIEW, pair) :
			json_array_get(pair, row->option == 'v'));
	}
	return make_marked(r, row->use == FILTER ? KIND_ITERATOR : KIND_VIEW, y);
}

static json_t *dict_get(CALL)
{
	const char *key = json_string_value(arg[0]);
	json_t *y = strlen(key) == json_string_length(arg[0]) ? json_object_get(self, key) : NULL;

	return y ? y : arg[1] ? arg[1] : json_null();
}

/* map: a filter, with an argument, or an attribute of each item. */
static json_t *filter_map(CALL)
{
	json_t *items = truth(self) ? items_of(r, self) : make_list(r), *y = make_list(r), *v;
	const struct row *f = arg[0] ? template_row(FILTER, json_string_value(arg[0])) : NULL;

	if (!f == !arg[2] || (arg[2] && strpbrk(json_string_value(arg[2]), ".0123456789")))
		fail("map: expected the name of a filter, or an attribute, by names without dots and digits");
	for (size_t i = 0; (v = json_array_get(items, i)); i++)
		add(r, y, f ? template_call(r, f, v, (json_t *[]){ arg[1], NULL, NULL }) :
			item_of(r, v, arg[2], false));
	return make_marked(r, KIND_ITERATOR, y);
}

enum { ATTRIBUTE = 1, REJECTED = 2 };

/* Items that pass a test, or whose attribute passes it; or those that do not. */
static json_t *filter_select(CALL)
{
	const int n = row->option & ATTRIBUTE;
	json_t *items = truth(self) ? items_of(r, self) : make_list(r), *y = make_list(r), *v;
	const struct row *test = arg[n] ? template_row(TEST, json_string_value(arg[n])) : NULL;

	if ((arg[n] && !test) || (n && strpbrk(json_string_value(arg[0]), ".0123456789")))
		fail("%s: a test, or an attribute with dots or digits, is not supported", row->name);
	for (size_t i = 0; (v = json_array_get(items, i)); i++) {
		v = n ? item_of(r, v, arg[0], false) : v;
		v = test ? template_call(r, test, v, (json_t *[]){ arg[n + 1], NULL, NULL }) : v;
		if (truth(v) == !(row->option & REJECTED))
			add(r, y, json_array_get(items, i));
	}
	return make_marked(r, KIND_ITERATOR, y);
}

/* --- tests --- */

/* Of kinds: `option` has a bit for each. */
static json_t *test_kind(CALL) { return json_boolean(row->option >> kind_of(self) & 1); }
static json_t *test_truth(CALL) { return json_boolean(self == json_boolean(row->option)); }

/* The same one, of what has an identity in every Python. */
static json_t *test_same(CALL)
{
	const enum kind kind = kind_of(self);

	if (row->option)
		return json_boolean(same(r, self, arg[0]));
	if (kind == kind_of(arg[0]) && (kind == KIND_INTEGER || kind == KIND_REAL || kind == KIND_TEXT))
		fail("the test sameas of %s is not supported", kind_name(self));
	return json_boolean(self == arg[0]);
}

/* --- table --- */

enum { TEXT = 1 << KIND_TEXT, DICT = 1 << KIND_DICT, ANY = 0x1fff, UNDEFINED = 1,
	NUMBER = 1 << KIND_BOOLEAN | 1 << KIND_INTEGER | 1 << KIND_REAL, PRINTED = (2 << KIND_DICT) - 1,
	SEQUENCE = UNDEFINED | TEXT | DICT | 1 << KIND_LIST | 1 << KIND_VIEW,
	ITERABLE = SEQUENCE | 1 << KIND_ITERATOR };

static const struct row rows[] = {
	{ FUNCTION, "raise_exception", 1, ".", ANY, call_raise, 0 },
	{ FUNCTION, "strftime_now", 1, "s", ANY, call_strftime, 0 },
	{ FUNCTION, "range", 1, "iii", ANY, call_range, 0 }, { FUNCTION, "namespace", 0, "", ANY, NULL, 0 },
	{ METHOD, "strip", 0, "n", TEXT, text_strip, LEFT | RIGHT },
	{ METHOD, "lstrip", 0, "n", TEXT, text_strip, LEFT },
	{ METHOD, "rstrip", 0, "n", TEXT, text_strip, RIGHT },
	{ METHOD, "split", 0, "ni", TEXT, text_split, 0 },
	{ METHOD, "startswith", 1, "s", TEXT, text_ends, LEFT },
	{ METHOD, "endswith", 1, "s", TEXT, text_ends, RIGHT },
	{ METHOD, "replace", 2, "ssi", TEXT, text_replace, 0 },
	{ METHOD, "upper", 0, "", TEXT, text_casing, 'u' },
	{ METHOD, "lower", 0, "", TEXT, text_casing, 'l' },
	{ METHOD, "title", 0, "", TEXT, text_casing, 't' }, { METHOD, "items", 0, "", DICT, dict_parts, 'i' },
	{ METHOD, "keys", 0, "", DICT, dict_parts, 'k' }, { METHOD, "values", 0, "", DICT, dict_parts, 'v' },
	{ METHOD, "get", 1, "s.", DICT, dict_get, 0 },
	{ FILTER, "trim", 0, "n", PRINTED, text_strip, LEFT | RIGHT },
	{ FILTER, "upper", 0, "", PRINTED, text_casing, 'u' },
	{ FILTER, "lower", 0, "", PRINTED, text_casing, 'l' },
	{ FILTER, "replace", 2, "ssi", PRINTED, text_replace, 0 },
	{ FILTER, "string", 0, "", PRINTED, filter_string, 0 },
	{ FILTER, "safe", 0, "", PRINTED, filter_string, 0 },
	{ FILTER, "int", 0, ".", PRINTED - 1, filter_int, 0 },
	{ FILTER, "tojson", 0, "!i", ANY, filter_tojson, 0 },
	{ FILTER, "length", 0, "", ANY, filter_length, 0 }, { FILTER, "list", 0, "", ANY, filter_list, 0 },
	{ FILTER, "default", 0, "..", ANY, filter_default, 0 },
	{ FILTER, "join", 0, ".", ANY, filter_join, 0 }, { FILTER, "first", 0, "", ANY, filter_end, 0 },
	{ FILTER, "last", 0, "", SEQUENCE, filter_end, -1 },
	{ FILTER, "reverse", 0, "", SEQUENCE, filter_reverse, 0 },
	{ FILTER, "items", 0, "", DICT | UNDEFINED, dict_parts, 'i' },
	{ FILTER, "map", 0, "s.s", ANY, filter_map, 0 },
	{ FILTER, "selectattr", 1, "ss.", ANY, filter_select, ATTRIBUTE },
	{ FILTER, "rejectattr", 1, "ss.", ANY, filter_select, ATTRIBUTE | REJECTED },
	{ FILTER, "select", 0, "s.", ANY, filter_select, 0 },
	{ FILTER, "reject", 0, "s.", ANY, filter_select, REJECTED },
	{ TEST, "defined", 0, "", ANY, test_kind, ANY & ~UNDEFINED },
	{ TEST, "undefined", 0, "", ANY, test_kind, UNDEFINED },
	{ TEST, "none", 0, "", ANY, test_kind, 1 << KIND_NONE },
	{ TEST, "string", 0, "", ANY, test_kind, TEXT }, { TEST, "mapping", 0, "", ANY, test_kind, DICT },
	{ TEST, "iterable", 0, "", ANY, test_kind, ITERABLE },
	{ TEST, "sequence", 0, "", ANY, test_kind, SEQUENCE },
	{ TEST, "number", 0, "", ANY, test_kind, NUMBER },
	{ TEST, "boolean", 0, "", ANY, test_kind, 1 << KIND_BOOLEAN },
	{ TEST, "true", 0, "", ANY, test_truth, true }, { TEST, "false", 0, "", ANY, test_truth, false },
	{ TEST, "equalto", 1, ".", ANY, test_same, true }, { TEST, "sameas", 1, ".", ANY, test_same, false },
};

static bool is_text(const json_t *v) { return json_is_string(v); }

const struct row *template_row(enum use use, const char *name)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].use == use && !strcmp(rows[i].name, name))
			return rows + i;
	return NULL;
}

json_t *template_call(struct run *r, const struct row *row, json_t *self, json_t *const arg[ARGUMENTS])
{
	json_t *v[ARGUMENTS] = { NULL };

	for (int i = 0, most = (int)strlen(row->types); i < ARGUMENTS; i++) {
		const char type = i < most ? row->types[i] : '!';

		v[i] = type == 'n' && arg[i] == json_null() ? NULL : arg[i];
		if (i < row->least && !v[i])
			fail("%s: expected %d arguments", row->name, row->least);
		if (v[i] && (type == '!' || (type != '.' && !(type == 'i' ? is_whole : is_text)(v[i]))))
			fail("%s: the argument %d is %s, expected %s", row->name, i + 1, kind_name(v[i]),
				type == 'i' ? "a whole number" : type == '!' ? "none" : "a text");
	}
	if (self && !(row->self >> kind_of(self) & 1))
		fail("%s is applied to %s", row->name, kind_name(self));
	return row->run(r, row, self, v);
}
