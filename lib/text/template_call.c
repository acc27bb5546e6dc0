/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_call.c -- operators, functions, methods, filters and tests; see template_private.h */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "text/template_private.h"
#include "text/utf8.h"

#define UNUSED __attribute__((unused))
#define CALL UNUSED struct run *r, UNUSED const struct row *row, UNUSED json_t *self, \
	UNUSED json_t *const arg[ARGUMENTS]

/* --- operators --- */

static json_t *op_integers(CALL)
{
	const json_int_t a = value_whole(self), b = value_whole(arg[0]);
	json_int_t y = 0;
	bool over = false;

	if ((row->option == '/' || row->option == '%') && !b)
		fail("division by zero");
	switch (b == -1 && row->option == '/' ? '*' : row->option) {
	case '+': over = __builtin_add_overflow(a, b, &y); break;
	case '-': over = __builtin_sub_overflow(a, b, &y); break;
	case '*': over = __builtin_mul_overflow(a, b, &y); break;
	case '/': y = a / b - (a % b && (a % b < 0) != (b < 0)); break;
	default: y = b == -1 ? 0 : a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0);
	}
	if (over)
		fail("a number needs more than 64 bits");
	return value_integer(r, y);
}

static json_t *op_join(CALL)
{
	json_t *both = value_list(r);

	value_add(r, both, self), value_add(r, both, arg[0]);
	return value_join(r, both, NULL);
}

static json_t *op_plus(CALL)
{
	json_t *y;

	if (value_is_whole(self) && value_is_whole(arg[0]))
		return op_integers(r, row, self, arg);
	if (value_kind(self) != value_kind(arg[0]))
		fail("%s and %s cannot be added", value_kind_name(self), value_kind_name(arg[0]));
	if (json_is_string(self))
		return op_join(r, row, self, arg);
	y = value_list(r);
	run_spend(r, json_array_size(self) + json_array_size(arg[0]));
	value_checked(!json_array_extend(y, self) && !json_array_extend(y, arg[0]));
	return y;
}

static json_t *op_in(CALL)
{
	json_t *const in = arg[0], *items;
	bool y = false;

	if (json_is_string(in) && !json_is_string(self))
		fail("'in' looks for %s in a text", value_kind_name(self));
	if (json_is_string(in))
		return json_boolean(memmem(json_string_value(in), json_string_length(in),
			json_string_value(self), json_string_length(self)));
	if (json_is_object(in) && (json_is_array(self) || json_is_object(self)))
		fail("'in' looks for %s in the keys of a dict", value_kind_name(self));
	items = value_items(r, in);
	for (size_t i = 0; !y && i < json_array_size(items); i++)
		y = value_same(r, json_array_get(items, i), self);
	return json_boolean(y);
}

static json_t *op_same(CALL) { return json_boolean(value_same(r, self, arg[0]) == row->option); }
static json_t *op_not(CALL) { return json_boolean(!value_truth(self)); }
static json_t *op_item(CALL) { return value_item(r, self, arg[0], row->option); }

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

static json_t *op_order(CALL)
{
	const size_t n = json_string_length(self), m = json_string_length(arg[0]);
	int d = 0;

	if (value_is_whole(self) && value_is_whole(arg[0]))
		d = (value_whole(self) > value_whole(arg[0])) - (value_whole(self) < value_whole(arg[0]));
	else if (!json_is_string(self) || !json_is_string(arg[0]))
		fail("%s and %s have no order here", value_kind_name(self), value_kind_name(arg[0]));
	else if (!(d = memcmp(json_string_value(self), json_string_value(arg[0]), n < m ? n : m)))
		d = (n > m) - (n < m);
	return json_boolean(row->option & (d < 0 ? LESS : d > 0 ? GREATER : EQUAL));
}

static json_t *op_slice(CALL)
{
	const json_int_t step = arg[2] ? value_whole(arg[2]) : 1;
	json_t *items = value_items(r, self), *y = value_list(r);
	const json_int_t n = (json_int_t)json_array_size(items);
	const json_int_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
	json_int_t bound[] = { step > 0 ? low : high, step > 0 ? high : low };

	if (!step || llabs(step) > INT32_MAX)
		fail("the step of a slice is 0 or too large");
	for (int k = 0; k < 2; k++)
		if (arg[k]) {
			const json_int_t at = value_whole(arg[k]) + (value_whole(arg[k]) < 0 ? n : 0);

			bound[k] = at < low ? low : at > high ? high : at;
		}
	for (json_int_t i = bound[0]; step > 0 ? i < bound[1] : i > bound[1]; i += step)
		value_add(r, y, json_array_get(items, (size_t)i));
	return json_is_string(self) ? value_join(r, y, NULL) : y;
}

/* --- functions --- */

static json_t *call_raise(CALL)
{
	fail("raise_exception: %s", json_string_value(value_str(r, arg[0])));
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
	return value_text(r, text, strftime(text, sizeof text, format, &t));
}

static json_t *call_range(CALL)
{
	enum { MOST = 100000 };		/* as in jinja2's sandbox */
	const json_int_t end = value_whole(arg[arg[1] ? 1 : 0]), step = arg[2] ? value_whole(arg[2]) : 1;
	json_int_t i = arg[1] ? value_whole(arg[0]) : 0;
	json_t *y = value_list(r);

	if (!step || llabs(step) > INT32_MAX || llabs(end) > 1LL << 60)
		fail("range() has a step of 0, or too large numbers");
	for (; step > 0 ? i < end : i > end; i += step)
		if (value_add(r, y, value_integer(r, i)), json_array_size(y) > MOST)
			fail("range() has more than %d numbers", MOST);
	return value_marked(r, KIND_VIEW, y);
}

/* --- texts --- */

/* upper, lower, title: of ASCII. Python's rules for other letters have exceptions. */
static json_t *str_casing(CALL)
{
	json_t *v = value_str(r, self);
	const char *s = json_string_value(v), *end = s + json_string_length(v);
	struct text b = { .r = r };
	bool after = false;		/* a letter */

	for (; s < end; s++) {
		const char up = (char)toupper((unsigned char)*s), low = (char)tolower((unsigned char)*s);

		if (*s & 0x80)
			fail("%s of '%.*s' is not supported", row->name, (int)utf8_length(s), s);
		text_put(&b, row->option == 'u' || (row->option == 't' && !after) ? &up : &low, 1);
		after = up != low;
	}
	return text_end(&b);
}

/* If strip() removes the character at s: white space, or one of a set. */
static bool stripped(const char *s, const json_t *set)
{
	return !set ? utf8_space(s) : memmem(json_string_value(set), json_string_length(set), s,
		utf8_length(s)) != NULL;
}

enum { LEFT = 1, RIGHT = 2 };

static json_t *str_strip(CALL)
{
	json_t *v = value_str(r, self);
	const char *s = json_string_value(v), *end = s + json_string_length(v);

	while ((row->option & LEFT) && s < end && stripped(s, arg[0]))
		s += utf8_length(s);
	while ((row->option & RIGHT) && s < end && stripped(s + utf8_last(s, (size_t)(end - s)), arg[0]))
		end = s + utf8_last(s, (size_t)(end - s));
	return value_text(r, s, (size_t)(end - s));
}

static json_t *str_split(CALL)
{
	json_t *v = value_str(r, self), *y = value_list(r);
	const char *s = json_string_value(v), *end = s + json_string_length(v), *found;
	const char *gap = json_string_value(arg[0]);
	const size_t n = json_string_length(arg[0]);
	json_int_t left = arg[1] ? value_whole(arg[1]) : -1;

	if (!n)
		fail("%s: the argument 1 is empty, expected a text to look for", row->name);
	for (; left && (found = memmem(s, (size_t)(end - s), gap, n)); s = found + n, left--)
		value_add(r, y, value_text(r, s, (size_t)(found - s)));
	value_add(r, y, value_text(r, s, (size_t)(end - s)));
	return y;
}

static json_t *str_replace(CALL)
{
	return value_join(r, str_split(r, row, self, (json_t *[]){ arg[0], NULL, NULL }), arg[1]);
}

static json_t *str_ends(CALL)
{
	const size_t n = json_string_length(self), k = json_string_length(arg[0]);
	const char *s = json_string_value(self), *with = json_string_value(arg[0]);

	return json_boolean(n >= k && !memcmp(row->option == LEFT ? s : s + n - k, with, k));
}

static json_t *filter_string(CALL) { return value_str(r, self); }

static json_t *filter_int(CALL)
{
	const char *s = json_string_value(self);
	const size_t n = s ? strspn(s, "0123456789") : 0;

	if (s && (!n || n > 18 || n != json_string_length(self)))
		fail("the filter int of this text is not supported, expected 1 to 18 digits");
	return value_integer(r, s ? strtoll(s, NULL, 10) : value_whole(self));
}

static json_t *filter_tojson(CALL)
{
	const json_int_t indent = arg[1] ? value_whole(arg[1]) : 0;
	struct text b = { .r = r, .json = true, .lines = arg[1], .indent = (int)indent };

	if (indent < 0 || indent > 100)
		fail("tojson: the indent is not from 0 to 100");
	text_put_value(&b, self);
	return text_end(&b);
}

/* --- lists and dicts --- */

static json_t *filter_length(CALL)
{
	return value_integer(r, (json_int_t)json_array_size(value_items(r, self)));
}

static json_t *filter_list(CALL) { return value_items(r, self); }
static json_t *filter_join(CALL) { return value_join(r, value_items(r, self), arg[0]); }

static json_t *filter_default(CALL)
{
	return self != &template_undefined && !(arg[1] && value_truth(arg[1]) && !value_truth(self)) ? self :
		arg[0] ? arg[0] : value_text(r, "", 0);
}

static json_t *filter_end(CALL)
{
	return value_item(r, value_items(r, self), value_integer(r, row->option), false);
}

static json_t *filter_reverse(CALL)
{
	json_t *of = json_is_string(self) ? self : value_items(r, self);
	json_t *y = op_slice(r, row, of, (json_t *[]){ NULL, NULL, value_integer(r, -1) });

	return json_is_string(self) ? y : value_marked(r, KIND_ITERATOR, y);
}

static json_t *dict_items(CALL)
{
	json_t *y = value_list(r), *pair, *v;
	const char *key;

	json_object_foreach(self, key, v) {
		pair = value_list(r);
		value_add(r, pair, value_text(r, key, strlen(key)));
		value_add(r, pair, v);
		value_add(r, y, value_marked(r, KIND_VIEW, pair));
	}
	return value_marked(r, row->option, y);
}

static json_t *dict_get(CALL)
{
	json_t *y = value_item(r, self, arg[0], false);

	return y != &template_undefined ? y : arg[1] ? arg[1] : json_null();
}

enum { MAP = 1, ATTRIBUTE = 2, REJECTED = 4 };

/* map: a filter, or an attribute, of each item. reject: the items that do not pass a test; selectattr and
 * rejectattr: those whose attribute passes it, or does not. */
static json_t *filter_each(CALL)
{
	const bool map = row->option & MAP, of = row->option & ATTRIBUTE;
	json_t *const *by = arg + of, *attribute = map ? arg[2] : of ? arg[0] : NULL;
	const struct row *f = *by ? template_row(map ? FILTER : TEST, json_string_value(*by)) : NULL;
	json_t *items = value_truth(self) ? value_items(r, self) : value_list(r);
	json_t *y = value_list(r), *item, *v;

	if ((*by && !f) || (map && !f == !attribute))
		fail("%s: expected the name of a %s", row->name, map ? "filter, or an attribute" : "test");
	if (attribute && strpbrk(json_string_value(attribute), ".0123456789"))
		fail("%s: an attribute with dots or digits is not supported", row->name);
	for (size_t i = 0; (item = json_array_get(items, i)); i++) {
		v = attribute ? value_item(r, item, attribute, false) : item;
		v = f ? template_call(r, f, v, (json_t *[]){ by[1], NULL, NULL }) : v;
		if (map || value_truth(v) == !(row->option & REJECTED))
			value_add(r, y, map ? v : item);
	}
	return value_marked(r, KIND_ITERATOR, y);
}

/* --- tests --- */

/* Of kinds: `option` has a bit for each. */
static json_t *test_kind(CALL) { return json_boolean(row->option >> value_kind(self) & 1); }
static json_t *test_truth(CALL) { return json_boolean(self == json_boolean(row->option)); }

static json_t *test_identity(CALL)
{
	if (value_kind(arg[0]) > KIND_BOOLEAN)
		fail("sameas %s is not supported, expected true, false or none", value_kind_name(arg[0]));
	return json_boolean(self == arg[0]);
}

/* --- table --- */

enum { UNDEFINED = 1, WHOLE = 1 << KIND_BOOLEAN | 1 << KIND_INTEGER, TEXT = 1 << KIND_TEXT,
	LIST = 1 << KIND_LIST, DICT = 1 << KIND_DICT, ANY = 0x1fff, PRINTED = (2 << KIND_DICT) - 1,
	SEQUENCE = UNDEFINED | TEXT | LIST | DICT | 1 << KIND_VIEW,
	ITERABLE = SEQUENCE | 1 << KIND_ITERATOR };

static const struct row rows[] = {
	{ OPERATOR, "and", 1, ".", ANY, NULL, true }, { OPERATOR, "or", 1, ".", ANY, NULL, false },
	{ OPERATOR, "not", 0, "", ANY, op_not, 0 }, { OPERATOR, "in", 1, ".", ANY, op_in, 0 },
	{ OPERATOR, "==", 1, ".", ANY, op_same, true }, { OPERATOR, "!=", 1, ".", ANY, op_same, false },
	{ OPERATOR, "<", 1, ".", ANY, op_order, LESS },
	{ OPERATOR, "<=", 1, ".", ANY, op_order, LESS | EQUAL },
	{ OPERATOR, ">", 1, ".", ANY, op_order, GREATER },
	{ OPERATOR, ">=", 1, ".", ANY, op_order, GREATER | EQUAL },
	{ OPERATOR, "~", 1, ".", ANY, op_join, 0 },
	{ OPERATOR, "+", 1, ".", WHOLE | TEXT | LIST, op_plus, '+' },
	{ OPERATOR, "-", 1, "i", WHOLE, op_integers, '-' },
	{ OPERATOR, "*", 1, "i", WHOLE, op_integers, '*' },
	{ OPERATOR, "//", 1, "i", WHOLE, op_integers, '/' },
	{ OPERATOR, "%", 1, "i", WHOLE, op_integers, '%' },
	{ OPERATOR, ".", 1, ".", ANY, op_item, true }, { OPERATOR, "[", 1, ".", ANY, op_item, false },
	{ OPERATOR, "[:", 0, "nnn", TEXT | LIST, op_slice, 0 },
	{ FUNCTION, "raise_exception", 1, ".", ANY, call_raise, 0 },
	{ FUNCTION, "strftime_now", 1, "s", ANY, call_strftime, 0 },
	{ FUNCTION, "range", 1, "iii", ANY, call_range, 0 }, { FUNCTION, "namespace", 0, "", ANY, NULL, 0 },
	{ METHOD, "strip", 0, "t", TEXT, str_strip, LEFT | RIGHT },
	{ METHOD, "lstrip", 0, "t", TEXT, str_strip, LEFT },
	{ METHOD, "rstrip", 0, "t", TEXT, str_strip, RIGHT },
	{ METHOD, "split", 1, "si=maxsplit", TEXT, str_split, 0 },
	{ METHOD, "startswith", 1, "s", TEXT, str_ends, LEFT },
	{ METHOD, "endswith", 1, "s", TEXT, str_ends, RIGHT },
	{ METHOD, "replace", 2, "ss", TEXT, str_replace, 0 },
	{ METHOD, "upper", 0, "", TEXT, str_casing, 'u' },
	{ METHOD, "lower", 0, "", TEXT, str_casing, 'l' },
	{ METHOD, "title", 0, "", TEXT, str_casing, 't' },
	{ METHOD, "items", 0, "", DICT, dict_items, KIND_VIEW },
	{ METHOD, "get", 1, "s.", DICT, dict_get, 0 },
	{ FILTER, "trim", 0, "t", PRINTED, str_strip, LEFT | RIGHT },
	{ FILTER, "upper", 0, "", PRINTED, str_casing, 'u' },
	{ FILTER, "lower", 0, "", PRINTED, str_casing, 'l' },
	{ FILTER, "replace", 2, "ss", PRINTED, str_replace, 0 },
	{ FILTER, "string", 0, "", PRINTED, filter_string, 0 },
	{ FILTER, "safe", 0, "", PRINTED, filter_string, 0 },
	{ FILTER, "int", 0, "", WHOLE | TEXT, filter_int, 0 },
	{ FILTER, "tojson", 0, "!n=indent", ANY, filter_tojson, 0 },
	{ FILTER, "length", 0, "", SEQUENCE, filter_length, 0 },
	{ FILTER, "list", 0, "", ANY, filter_list, 0 },
	{ FILTER, "default", 0, "..=boolean", ANY, filter_default, 0 },
	{ FILTER, "join", 0, ".", ANY, filter_join, 0 }, { FILTER, "first", 0, "", ANY, filter_end, 0 },
	{ FILTER, "last", 0, "", SEQUENCE, filter_end, -1 },
	{ FILTER, "reverse", 0, "", SEQUENCE, filter_reverse, 0 },
	{ FILTER, "items", 0, "", DICT | UNDEFINED, dict_items, KIND_ITERATOR },
	{ FILTER, "map", 0, "s.s=attribute", ANY, filter_each, MAP },
	{ FILTER, "reject", 0, "s.", ANY, filter_each, REJECTED },
	{ FILTER, "selectattr", 1, "ss.", ANY, filter_each, ATTRIBUTE },
	{ FILTER, "rejectattr", 1, "ss.", ANY, filter_each, ATTRIBUTE | REJECTED },
	{ TEST, "defined", 0, "", ANY, test_kind, ANY & ~UNDEFINED },
	{ TEST, "none", 0, "", ANY, test_kind, 1 << KIND_NONE },
	{ TEST, "string", 0, "", ANY, test_kind, TEXT }, { TEST, "mapping", 0, "", ANY, test_kind, DICT },
	{ TEST, "iterable", 0, "", ANY, test_kind, ITERABLE },
	{ TEST, "true", 0, "", ANY, test_truth, true }, { TEST, "false", 0, "", ANY, test_truth, false },
	{ TEST, "equalto", 1, ".", ANY, op_same, true }, { TEST, "sameas", 1, ".", ANY, test_identity, 0 },
};

const struct row *template_row(enum use use, const char *name)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].use == use && !strcmp(rows[i].name, name))
			return rows + i;
	return NULL;
}

static bool fits(const json_t *v, char type)
{
	return type == '.' || (strchr("st", type) && json_is_string(v)) ||
		(strchr("in", type) && value_is_whole(v));
}

json_t *template_call(struct run *r, const struct row *row, json_t *self, json_t *const arg[ARGUMENTS])
{
	const int most = (int)strcspn(row->types, "=");
	json_t *v[ARGUMENTS] = { NULL };

	if (self && !(row->self >> value_kind(self) & 1))
		fail("'%s' is applied to %s", row->name, value_kind_name(self));
	for (int i = 0; i < ARGUMENTS; i++) {
		const char type = i < most ? row->types[i] : '!';

		v[i] = arg[i] == json_null() && strchr("tn", type) ? NULL : arg[i];
		if (i < row->least && !v[i])
			fail("%s: the argument %d is missing", row->name, i + 1);
		if (v[i] && !fits(v[i], type))
			fail("%s: the argument %d is %s, expected %s", row->name, i + 1,
				value_kind_name(v[i]), type == '!' ? "none" :
				strchr("st", type) ? "a text" : "a whole number");
	}
	return row->run(r, row, self, v);
}
