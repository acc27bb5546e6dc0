/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_value.c -- what all values of a template share; see template_private.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "base/error.h"
#include "text/template_private.h"
#include "text/utf8.h"

/* As json_null(): not counted. */
json_t template_undefined = { JSON_NULL, (size_t)-1 }, template_function = { JSON_NULL, (size_t)-1 };

/* --- making --- */

void run_spend(struct run *r, size_t steps)
{
	r->steps += steps;
	if (r->steps > TEMPLATE_STEPS)
		fail("the template needs more than %d steps: it may have no end", TEMPLATE_STEPS);
}

void run_deeper(struct run *r)
{
	if (++r->depth > TEMPLATE_DEPTH)
		fail("is nested in more than %d levels", TEMPLATE_DEPTH);
}

void value_checked(bool done)
{
	if (!done)
		die("out of memory");
}

static json_t *keep(struct run *r, json_t *v)
{
	run_spend(r, 8);
	value_checked(v && !json_array_append_new(r->made, v));
	return v;
}

json_t *value_text(struct run *r, const char *s, size_t n)
{
	run_spend(r, n / 8);
	return keep(r, json_stringn_nocheck(s, n));
}

json_t *value_integer(struct run *r, json_int_t i) { return keep(r, json_integer(i)); }
json_t *value_list(struct run *r) { return keep(r, json_array()); }
json_t *value_dict(struct run *r) { return keep(r, json_object()); }

json_t *value_marked(struct run *r, enum kind kind, json_t *items)
{
	json_t *y = value_dict(r);

	value_checked(!json_object_set_new_nocheck(y, MARK, json_integer(kind)) &&
		!(items && json_object_set(y, "items", items)));
	return y;
}

void value_add(struct run *r, json_t *list, json_t *v)
{
	run_spend(r, 1);
	value_checked(!json_array_append(list, v));
}

void text_put(struct text *b, const char *s, size_t n)
{
	run_spend(b->r, n / 8);
	if (n > b->room - b->n)
		b->s = xgrow(b->s, b->room = (b->n + n) / 2 * 3 + 64, 1);
	if (n)
		memcpy(b->s + b->n, s, n);
	b->n += n;
}

json_t *text_end(struct text *b)
{
	json_t *y = value_text(b->r, b->s ? b->s : "", b->n);

	free(b->s);
	return y;
}

/* --- kinds, truth, equality --- */

enum kind value_kind(const json_t *v)
{
	static const enum kind kinds[] = { [JSON_OBJECT] = KIND_DICT, [JSON_ARRAY] = KIND_LIST,
		[JSON_STRING] = KIND_TEXT, [JSON_INTEGER] = KIND_INTEGER, [JSON_REAL] = KIND_REAL,
		[JSON_TRUE] = KIND_BOOLEAN, [JSON_FALSE] = KIND_BOOLEAN, [JSON_NULL] = KIND_NONE };
	const json_t *mark = json_object_get(v, MARK);

	return mark ? (enum kind)json_integer_value(mark) : v == &template_undefined ? KIND_UNDEFINED :
		v == &template_function ? KIND_FUNCTION : kinds[json_typeof(v)];
}

const char *value_kind_name(const json_t *v)
{
	static const char *const names[] = { "an undefined value", "none", "true or false", "a whole number",
		"a number", "a text", "a list", "a dict", "a namespace", "a loop", "a function",
		"an iterator", "a range or a part of items()" };

	return names[value_kind(v)];
}

bool value_is_whole(const json_t *v) { return json_is_integer(v) || json_is_boolean(v); }
json_int_t value_whole(const json_t *v) { return json_is_true(v) ? 1 : json_integer_value(v); }

bool value_truth(const json_t *v)
{
	switch (value_kind(v)) {
	case KIND_UNDEFINED: case KIND_NONE: return false;
	case KIND_BOOLEAN: case KIND_INTEGER: return value_whole(v);
	case KIND_REAL: return json_real_value(v) != 0;
	case KIND_TEXT: return json_string_length(v);
	case KIND_LIST: case KIND_DICT: return json_array_size(v) || json_object_size(v);
	case KIND_VIEW: return json_array_size(json_object_get(v, "items"));
	default: return true;
	}
}

static bool is_number(const json_t *v) { return value_is_whole(v) || json_is_real(v); }

static long double number(const json_t *v)	/* without rounding */
{
	return json_is_real(v) ? (long double)json_real_value(v) : value_whole(v);
}

bool value_same(struct run *r, json_t *a, json_t *b)
{
	const char *key;
	json_t *v;
	bool y;

	run_spend(r, 1);
	if (is_number(a) && is_number(b))
		return number(a) == number(b);
	if (value_kind(a) != value_kind(b))
		return false;
	if (value_kind(a) > KIND_DICT)
		fail("%s cannot be compared", value_kind_name(a));
	if (json_is_string(a))
		return json_equal(a, b);
	run_deeper(r);
	y = json_array_size(a) == json_array_size(b) && json_object_size(a) == json_object_size(b);
	for (size_t i = 0; y && i < json_array_size(a); i++)
		y = value_same(r, json_array_get(a, i), json_array_get(b, i));
	json_object_foreach(a, key, v) {
		y = y && json_object_get(b, key) && value_same(r, v, json_object_get(b, key));
	}
	r->depth--;
	return y;
}

/* --- items --- */

json_t *value_items(struct run *r, json_t *v)
{
	const enum kind kind = value_kind(v);
	const char *s = json_string_value(v), *key;
	json_t *y = kind == KIND_LIST ? v : value_list(r), *value;

	if (kind == KIND_ITERATOR || kind == KIND_VIEW) {
		run_spend(r, json_array_size(json_object_get(v, "items")));
		value_checked(!json_array_extend(y, json_object_get(v, "items")));
		if (kind == KIND_ITERATOR)
			json_array_clear(json_object_get(v, "items"));
	} else if (kind == KIND_DICT) {
		json_object_foreach(v, key, value) {
			value_add(r, y, value_text(r, key, strlen(key)));
		}
	} else if (kind == KIND_TEXT) {
		for (size_t i = 0, k, n = json_string_length(v); i < n; i += k) {
			k = utf8_length(s + i);
			value_add(r, y, value_text(r, s + i, k));
		}
	} else if (kind != KIND_UNDEFINED && kind != KIND_LIST) {
		fail("%s has no items, expected a list, a dict or a text", value_kind_name(v));
	}
	return y;
}

/* Attributes of Python's dict, which d.name reads rather than an item. */
static const char of_dict[] = " clear copy fromkeys get items keys pop popitem setdefault update values ";
/* What others, texts and lists, do not have. Any other name is refused, since it may be one of Python. */
static const char of_no_other[] = " content function name role text thinking tool_calls type ";

json_t *value_item(struct run *r, json_t *v, json_t *key, bool dot)
{
	const enum kind kind = value_kind(v);
	const char *name = json_string_value(key);
	json_t *y = NULL, *items;
	char word[32];

	if (kind == KIND_UNDEFINED)
		fail("an undefined value has no item '%s'", name ? name : "of a number");
	if (kind == KIND_NAMESPACE && r->in_condition)
		fail("a namespace in the condition of a loop is not supported");
	if (name && kind >= KIND_DICT && kind <= KIND_LOOP && strlen(name) == json_string_length(key))
		y = json_object_get(v, name);
	if (name) {
		snprintf(word, sizeof word, " %s ", name);
		if (kind == KIND_DICT ? (dot || !y) && (strstr(of_dict, word) || !strncmp(name, "__", 2)) :
		    kind == KIND_NAMESPACE ? *name == '_' : !y && !strstr(of_no_other, word))
			fail("the attribute '%s' of %s is not supported", name, value_kind_name(v));
	} else if (value_is_whole(key) && (kind == KIND_LIST || kind == KIND_TEXT || kind == KIND_VIEW)) {
		items = value_items(r, v);
		y = json_array_get(items, (size_t)(value_whole(key) + (value_whole(key) < 0 ?
			(json_int_t)json_array_size(items) : 0)));
	}
	return y ? y : &template_undefined;
}

json_t *value_join(struct run *r, json_t *items, json_t *gap)
{
	struct text b = { .r = r };

	for (size_t i = 0; i < json_array_size(items); i++) {
		if (i && gap)
			text_put_str(&b, gap);
		text_put_str(&b, json_array_get(items, i));
	}
	return text_end(&b);
}

/* --- printing --- */

static void put_string(struct text *b, const char *s) { text_put(b, s, strlen(s)); }

/* The shortest digits that are this number, as Python prints them. */
static void put_real(struct text *b, double d)
{
	char s[40];
	int digits = 1, power;

	do
		snprintf(s, sizeof s, "%.*e", digits - 1, d);
	while (strtod(s, NULL) != d && ++digits <= 17);
	power = atoi(strchr(s, 'e') + 1);
	if (power >= -4 && power < 16)
		snprintf(s, sizeof s, "%.*f", digits - 1 > power ? digits - 1 - power : 1, d);
	put_string(b, s);
}

/* Within quotes, escaped as by repr(), or as in JSON. */
static void put_quoted(struct text *b, const char *s, size_t n)
{
	static const char from[] = "\\\n\r\t\b\f", to[] = "\\nrtbf";
	const bool json = b->json;
	const char quote = json || (memchr(s, '\'', n) && !memchr(s, '"', n)) ? '"' : '\'';

	run_spend(b->r, n / 4);
	text_put(b, &quote, 1);
	for (size_t i = 0, bytes; i < n; i += bytes) {
		const uint32_t c = utf8_value(s + i);
		const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
		const char *at = c && c < 128 ? strchr(from, (int)c) : NULL;
		char e[12];

		bytes = utf8_length(s + i);
		if (c == (unsigned char)quote || (at && (json || at < from + 4)))
			snprintf(e, sizeof e, "\\%c", at ? to[at - from] : quote);
		else if (json ? c < ' ' : c != ' ' && (!k || k >= UTF8PROC_CATEGORY_ZS))
			snprintf(e, sizeof e, json ? "\\u%04x" : c < 0x100 ? "\\x%02x" : c < 0x10000 ?
				"\\u%04x" : "\\U%08x", c);
		else
			snprintf(e, sizeof e, "%.*s", (int)bytes, s + i);
		text_put(b, c ? e : json ? "\\u0000" : "\\x00", c ? strlen(e) : json ? 6 : 4);
	}
	text_put(b, &quote, 1);
}

static void new_line(struct text *b)
{
	if (b->lines)
		put_string(b, "\n");
	for (int i = 0; i < b->indent * b->level; i++)
		put_string(b, " ");
}

static void put_items(struct text *b, json_t *v)
{
	const struct run *r = b->r;
	const bool dict = json_is_object(v);
	const size_t n = dict ? json_object_size(v) : json_array_size(v);
	void *at = json_object_iter(v);

	if (++b->level > TEMPLATE_DEPTH)
		fail("a value is nested in more than %d levels", TEMPLATE_DEPTH);
	put_string(b, dict ? "{" : "[");
	for (size_t i = 0; i < n; i++, at = json_object_iter_next(v, at)) {
		put_string(b, !i ? "" : b->lines ? "," : ", ");
		new_line(b);
		if (dict) {
			put_quoted(b, json_object_iter_key(at), strlen(json_object_iter_key(at)));
			put_string(b, ": ");
		}
		text_put_value(b, dict ? json_object_iter_value(at) : json_array_get(v, i));
	}
	b->level--;
	if (n)
		new_line(b);
	put_string(b, dict ? "}" : "]");
}

void text_put_value(struct text *b, json_t *v)
{
	const struct run *r = b->r;
	char s[24];

	run_spend(b->r, 1);
	switch (value_kind(v)) {
	case KIND_NONE: put_string(b, b->json ? "null" : "None"); break;
	case KIND_BOOLEAN:
		put_string(b, json_is_true(v) ? b->json ? "true" : "True" : b->json ? "false" : "False");
		break;
	case KIND_INTEGER:
		snprintf(s, sizeof s, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		put_string(b, s);
		break;
	case KIND_REAL: put_real(b, json_real_value(v)); break;
	case KIND_TEXT: put_quoted(b, json_string_value(v), json_string_length(v)); break;
	case KIND_LIST: case KIND_DICT: put_items(b, v); break;
	default:
		if (b->json || value_kind(v) != KIND_UNDEFINED)
			fail("%s cannot be printed", value_kind_name(v));
		put_string(b, "Undefined");
	}
}

void text_put_str(struct text *b, json_t *v)
{
	if (value_kind(v) == KIND_TEXT)
		text_put(b, json_string_value(v), json_string_length(v));
	else if (value_kind(v) != KIND_UNDEFINED)
		text_put_value(b, v);
}

json_t *value_str(struct run *r, json_t *v)
{
	struct text b = { .r = r };

	if (json_is_string(v))
		return v;
	text_put_str(&b, v);
	return text_end(&b);
}
