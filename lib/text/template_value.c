/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_value.c -- what all values of a template share; see template_private.h */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/template_private.h"
#include "text/utf8.h"

/* --- memory, errors --- */

void *template_take(struct arena *a, size_t n, size_t size)
{
	enum { CHUNK = 64 << 10, ALIGN = 16 };
	const size_t bytes = (n * size + ALIGN - 1) / ALIGN * ALIGN;

	if (!a->last || a->last->size - a->last->used < bytes) {
		const size_t room = bytes > CHUNK ? bytes : CHUNK;
		struct chunk *c = xalloc(1, sizeof *c + room);

		c->before = a->last;
		c->size = room;
		a->last = c;
	}
	a->total += bytes;
	a->last->used += bytes;
	return a->last->data + a->last->used - bytes;
}

void arena_free(struct arena *a)
{
	for (struct chunk *c = a->last, *before; c; c = before) {
		before = c->before;
		free(c);
	}
}

void *template_memory(struct run *r, size_t n, size_t size)
{
	if (n > TEMPLATE_MEMORY || n * size > TEMPLATE_MEMORY - r->arena.total)
		template_fail(r, "the template needs more than %d MB of memory", TEMPLATE_MEMORY >> 20);
	template_spend(r, n * size / 1024);
	return template_take(&r->arena, n, size);
}

void template_spend(struct run *r, size_t steps)
{
	r->steps += steps;
	if (r->steps > TEMPLATE_STEPS)
		template_fail(r, "the template needs more than %d steps: it may have no end", TEMPLATE_STEPS);
}

void template_fail(const struct run *r, const char *fmt, ...)
{
	char text[1024], *plain;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	plain = plain_text(text);
	die("%s:%d: %s", r->t->name, r->line, plain);
}

void need_defined(const struct run *r, struct value v)
{
	if (v.kind == VALUE_UNDEFINED)
		template_fail(r, "'%.*s' is undefined", (int)v.text.n, v.text.s);
}

void build(struct builder *b, size_t n, const char *s)
{
	if (n > b->room - b->n) {
		const size_t room = (b->n + n) * 2 + 64;
		char *more = template_memory(b->r, room, 1);

		if (b->n)
			memcpy(more, b->s, b->n);
		b->s = more, b->room = room;
	}
	if (n)
		memcpy(b->s + b->n, s, n);
	b->n += n;
}

struct value built(const struct builder *b) { return value_text(b->s ? b->s : "", b->n); }

/* --- texts --- */

bool span_is(struct span a, const char *s) { return a.n == strlen(s) && !memcmp(a.s, s, a.n); }
bool span_equal(struct span a, struct span b) { return a.n == b.n && (!a.n || !memcmp(a.s, b.s, a.n)); }

size_t text_characters(struct run *r, struct span s)
{
	size_t n = 0;

	template_spend(r, s.n / 64);
	for (size_t i = 0; i < s.n; i++)
		n += (s.s[i] & 0xc0) != 0x80;
	return n;
}

/* --- values --- */

struct value value_bool(bool yes) { return (struct value){ VALUE_BOOL, { .yes = yes } }; }
struct value value_integer(int64_t i) { return (struct value){ VALUE_INTEGER, { .integer = i } }; }
struct value value_real(double d) { return (struct value){ VALUE_REAL, { .real = d } }; }
struct value value_text(const char *s, size_t n)
{
	return (struct value){ VALUE_TEXT, { .text = { s, n } } };
}

struct value value_undefined(const char *name, size_t n)
{
	return (struct value){ VALUE_UNDEFINED, { .text = { name, n } } };
}

struct value value_list(struct run *r, enum form form, size_t room)
{
	struct list *l = template_memory(r, 1, sizeof *l);

	*l = (struct list){ .form = form, .depth = 1, .room = room,
		.item = room ? template_memory(r, room, sizeof *l->item) : NULL };
	return (struct value){ VALUE_LIST, { .list = l } };
}

/* The depth of a value that contains v. */
static int depth_with(struct run *r, int depth, struct value v)
{
	const int inner = v.kind == VALUE_LIST ? v.list->depth : v.kind == VALUE_DICT ? v.dict->depth : 0;

	if (inner >= TEMPLATE_DEPTH)
		template_fail(r, "a value is nested in more than %d levels", TEMPLATE_DEPTH);
	return inner + 1 > depth ? inner + 1 : depth;
}

void list_add(struct run *r, struct value list, struct value v)
{
	struct list *l = list.list;

	if (l->n == l->room) {
		struct value *more = template_memory(r, l->room = 2 * l->room + 8, sizeof *more);

		if (l->n)
			memcpy(more, l->item, l->n * sizeof *more);
		l->item = more;
	}
	l->depth = depth_with(r, l->depth, v);
	l->item[l->n++] = v;
}

struct value value_dict(struct run *r)
{
	struct value y = { VALUE_DICT, { .dict = template_memory(r, 1, sizeof(struct dict)) } };

	y.dict->depth = 1;
	return y;
}

const struct value *dict_find(struct run *r, const struct dict *d, struct value key)
{
	template_spend(r, d->n / 16);
	for (size_t i = 0; i < d->n; i++)
		if (value_equal(r, d->pair[i].key, key))
			return &d->pair[i].value;
	return NULL;
}

/* The key must be a new one. */
static void dict_add(struct run *r, struct dict *d, struct value key, struct value v)
{
	d->depth = depth_with(r, d->depth, v);
	if (d->n == d->room) {
		struct pair *more = template_memory(r, d->room = 2 * d->room + 4, sizeof *more);

		if (d->n)
			memcpy(more, d->pair, d->n * sizeof *more);
		d->pair = more;
	}
	d->pair[d->n++] = (struct pair){ key, v };
}

void dict_set(struct run *r, struct dict *d, struct value key, struct value v)
{
	struct value *old = (struct value *)dict_find(r, d, key);

	if (!old) {
		dict_add(r, d, key, v);
		return;
	}
	d->depth = depth_with(r, d->depth, v);
	*old = v;
}

struct value value_of_json(struct run *r, const json_t *j)
{
	struct value y = { .kind = VALUE_NONE };
	const char *key;
	json_t *v;

	switch (json_typeof(j)) {
	case JSON_TRUE: case JSON_FALSE: return value_bool(json_is_true(j));
	case JSON_INTEGER: return value_integer(json_integer_value(j));
	case JSON_REAL: return value_real(json_real_value(j));
	case JSON_STRING: return value_text(json_string_value(j), json_string_length(j));
	case JSON_ARRAY:
		y = value_list(r, FORM_LIST, json_array_size(j));
		for (size_t i = 0; i < json_array_size(j); i++)
			list_add(r, y, value_of_json(r, json_array_get(j, i)));
		return y;
	case JSON_OBJECT:
		y = value_dict(r);
		json_object_foreach((json_t *)j, key, v) {
			dict_add(r, y.dict, value_text(key, strlen(key)), value_of_json(r, v));
		}
		return y;
	default: return y;
	}
}

const char *value_kind(struct value v)
{
	static const char *const names[] = { "absent", "undefined", "none", "true or false", "a whole number",
		"a number", "a text", "a list", "a dict", "a namespace", "a loop", "a function" };

	return names[v.kind];
}

bool value_is_number(struct value v)
{
	return v.kind == VALUE_BOOL || v.kind == VALUE_INTEGER || v.kind == VALUE_REAL;
}

bool value_true(struct value v)
{
	switch (v.kind) {
	case VALUE_ABSENT: case VALUE_UNDEFINED: case VALUE_NONE: return false;
	case VALUE_BOOL: return v.yes;
	case VALUE_INTEGER: return v.integer != 0;
	case VALUE_REAL: return v.real != 0;
	case VALUE_TEXT: return v.text.n > 0;
	case VALUE_LIST: return v.list->n > 0 || v.list->form == FORM_ITERATOR;
	case VALUE_DICT: return v.dict->n > 0;
	default: return true;
	}
}

/* --- order --- */

/* Exact for both kinds of numbers, as in Python: a long double has 64 bits of mantissa or more on x86. */
static long double number(struct value v)
{
	return v.kind == VALUE_BOOL ? v.yes : v.kind == VALUE_INTEGER ? (long double)v.integer : v.real;
}

static bool lists_equal(struct run *r, const struct list *a, const struct list *b)
{
	if (a->form > FORM_TUPLE || b->form > FORM_TUPLE)
		template_fail(r, "ranges, iterators and views of dicts cannot be compared");
	if (a->form != b->form || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!value_equal(r, a->item[i], b->item[i]))
			return false;
	return true;
}

static bool dicts_equal(struct run *r, const struct dict *a, const struct dict *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct value *v = dict_find(r, b, a->pair[i].key);

		if (!v || !value_equal(r, a->pair[i].value, *v))
			return false;
	}
	return true;
}

bool value_equal(struct run *r, struct value a, struct value b)
{
	template_spend(r, 1);
	if (value_is_number(a) && value_is_number(b))
		return number(a) == number(b);
	if (a.kind != b.kind)
		return false;
	switch (a.kind) {
	case VALUE_TEXT: return span_equal(a.text, b.text);
	case VALUE_LIST: return a.list == b.list || lists_equal(r, a.list, b.list);
	case VALUE_DICT: return a.dict == b.dict || dicts_equal(r, a.dict, b.dict);
	case VALUE_NAMESPACE: return a.dict == b.dict;
	case VALUE_LOOP: case VALUE_FUNCTION: template_fail(r, "%s cannot be compared", value_kind(a));
	default: return true;	/* none, undefined */
	}
}

/* Whether b contains a. */
static bool contains(struct run *r, struct value b, struct value a)
{
	const struct list *l;

	if (b.kind == VALUE_TEXT && a.kind != VALUE_TEXT)
		template_fail(r, "'in' looks for %s in a text", value_kind(a));
	if (b.kind == VALUE_TEXT) {
		template_spend(r, b.text.n / 64);
		return !a.text.n || memmem(b.text.s, b.text.n, a.text.s, a.text.n);
	}
	if (b.kind == VALUE_DICT) {
		if (a.kind == VALUE_LIST || a.kind == VALUE_DICT)
			template_fail(r, "'in' looks for %s in the keys of a dict", value_kind(a));
		return dict_find(r, b.dict, a);
	}
	l = value_items(r, b);
	for (size_t i = 0; i < l->n; i++)
		if (value_equal(r, l->item[i], a))
			return true;
	return false;
}

/* a op b of texts, by code points, which is the order of their bytes. */
static int text_order(struct span a, struct span b)
{
	const size_t n = a.n < b.n ? a.n : b.n;
	const int d = n ? memcmp(a.s, b.s, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

static bool order_holds(enum operator op, int d)
{
	return op == OP_LESS ? d < 0 : op == OP_AT_MOST ? d <= 0 : op == OP_GREATER ? d > 0 : d >= 0;
}

static bool lists_hold(struct run *r, enum operator op, const struct list *a, const struct list *b)
{
	size_t i = 0;

	for (; i < a->n && i < b->n; i++)
		if (!value_equal(r, a->item[i], b->item[i]))
			return value_holds(r, op, a->item[i], b->item[i]);
	return order_holds(op, (a->n > b->n) - (a->n < b->n));
}

bool value_holds(struct run *r, enum operator op, struct value a, struct value b)
{
	if (op == OP_EQUAL || op == OP_UNEQUAL)
		return value_equal(r, a, b) == (op == OP_EQUAL);
	if (op == OP_IN || op == OP_NOT_IN)
		return contains(r, b, a) == (op == OP_IN);
	if (value_is_number(a) && value_is_number(b)) {
		const long double x = number(a), y = number(b);

		return op == OP_LESS ? x < y : op == OP_AT_MOST ? x <= y : op == OP_GREATER ? x > y : x >= y;
	}
	if (a.kind == VALUE_TEXT && b.kind == VALUE_TEXT)
		return order_holds(op, text_order(a.text, b.text));
	if (a.kind == VALUE_LIST && b.kind == VALUE_LIST && a.list->form == b.list->form &&
	    a.list->form <= FORM_TUPLE)
		return lists_hold(r, op, a.list, b.list);
	template_fail(r, "%s and %s have no order", value_kind(a), value_kind(b));
}

/* --- items --- */

bool value_iterable(struct value v)
{
	return v.kind == VALUE_UNDEFINED || v.kind == VALUE_TEXT || v.kind == VALUE_LIST ||
		v.kind == VALUE_DICT || v.kind == VALUE_LOOP;
}

struct list *value_items(struct run *r, struct value v)
{
	struct value y;

	if (!value_iterable(v) || v.kind == VALUE_LOOP)
		template_fail(r, "%s has no items, expected a list, a dict or a text", value_kind(v));
	if (v.kind == VALUE_LIST && v.list->form != FORM_ITERATOR)
		return v.list;
	y = value_list(r, FORM_LIST, 0);
	if (v.kind == VALUE_LIST) {
		for (; v.list->next < v.list->n; v.list->next++)
			list_add(r, y, v.list->item[v.list->next]);
	} else if (v.kind == VALUE_DICT) {
		for (size_t i = 0; i < v.dict->n; i++)
			list_add(r, y, v.dict->pair[i].key);
	} else if (v.kind == VALUE_TEXT) {
		for (size_t i = 0, n; i < v.text.n; i += n) {
			bool valid;

			n = utf8_character(v.text.s + i, v.text.n - i, &valid);
			list_add(r, y, value_text(v.text.s + i, n));
		}
	}
	return y.list;
}

size_t value_length(struct run *r, struct value v)
{
	if (v.kind == VALUE_TEXT)
		return text_characters(r, v.text);
	if (v.kind == VALUE_DICT)
		return v.dict->n;
	if (v.kind == VALUE_UNDEFINED)
		return 0;
	if (v.kind != VALUE_LIST || v.list->form == FORM_ITERATOR)
		template_fail(r, "%s has no length, expected a list, a dict or a text",
			v.kind == VALUE_LIST ? "an iterator" : value_kind(v));
	return v.list->n;
}

/* Attributes that Python has and the tables do not: an item of such a name is not what Python takes. */
static void refuse_attribute(struct run *r, struct value v, struct span name)
{
	static const char of_text[] = " capitalize casefold center count encode expandtabs find format "
		"format_map index isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
		"isprintable isspace istitle isupper join ljust maketrans partition removeprefix "
		"removesuffix rfind rindex rjust rpartition rsplit splitlines swapcase translate zfill ";
	static const char of_number[] = " as_integer_ratio bit_count bit_length conjugate denominator "
		"from_bytes fromhex hex imag is_integer numerator real to_bytes ";
	static const char of_list[] = " append clear copy count extend index insert pop remove reverse sort "
		"start stop step mapping isdisjoint ";
	static const char of_dict[] = " clear copy fromkeys pop popitem setdefault update ";
	const char *list = v.kind == VALUE_TEXT ? of_text : v.kind == VALUE_LIST ? of_list :
		v.kind == VALUE_DICT ? of_dict : value_is_number(v) ? of_number : "";
	char word[40];

	if (name.n > sizeof word - 3)
		return;
	snprintf(word, sizeof word, " %.*s ", (int)name.n, name.s);
	if (strstr(list, word))
		template_fail(r, "the attribute '%.*s' of %s is not supported", (int)name.n, name.s,
			value_kind(v));
}

static struct value bound_method(struct run *r, struct value v, struct span name)
{
	const struct callee *m = template_method(name, v.kind);
	struct bound *b;

	if (!m) {
		refuse_attribute(r, v, name);
		return value_undefined(name.s, name.n);
	}
	b = template_memory(r, 1, sizeof *b);
	*b = (struct bound){ m, v };
	return (struct value){ VALUE_FUNCTION, { .function = b } };
}

/* The index of Python in a sequence of n items; false: outside. */
static bool place(int64_t i, size_t n, size_t *at)
{
	i += i < 0 ? (int64_t)n : 0;
	*at = (size_t)i;
	return i >= 0 && (size_t)i < n;
}

/* The bytes of the characters from `from` to before `to`. */
static struct span characters(struct span s, size_t from, size_t to)
{
	size_t i = 0, begin;

	for (; from; from--, to--)
		for (i++; i < s.n && (s.s[i] & 0xc0) == 0x80; i++)
			;
	for (begin = i; to; to--)
		for (i++; i < s.n && (s.s[i] & 0xc0) == 0x80; i++)
			;
	return (struct span){ s.s + begin, i - begin };
}

struct value value_item(struct run *r, struct value v, struct value key)
{
	const bool whole = key.kind == VALUE_INTEGER || key.kind == VALUE_BOOL;
	const int64_t i = key.kind == VALUE_BOOL ? key.yes : whole ? key.integer : 0;
	const struct value *found = NULL;
	size_t at;

	need_defined(r, v);
	if (v.kind == VALUE_DICT || (v.kind == VALUE_NAMESPACE && key.kind == VALUE_TEXT))
		found = key.kind == VALUE_LIST || key.kind == VALUE_DICT ? NULL : dict_find(r, v.dict, key);
	if (found)
		return *found;
	if (whole && v.kind == VALUE_LIST && (v.list->form <= FORM_TUPLE || v.list->form == FORM_RANGE) &&
	    place(i, v.list->n, &at))
		return v.list->item[at];
	if (whole && v.kind == VALUE_TEXT && place(i, text_characters(r, v.text), &at)) {
		const struct span s = characters(v.text, at, at + 1);

		return value_text(s.s, s.n);
	}
	if (key.kind == VALUE_TEXT && v.kind != VALUE_NAMESPACE)
		return v.kind == VALUE_LOOP ? value_attribute(r, v, key.text) : bound_method(r, v, key.text);
	return key.kind == VALUE_TEXT ? value_undefined(key.text.s, key.text.n) :
		value_undefined("an item", 7);
}

/* A bound of a slice: absent or none, or a whole number. */
static bool slice_bound(struct run *r, struct value v, int64_t *i)
{
	if (v.kind == VALUE_ABSENT || v.kind == VALUE_NONE)
		return false;
	if (v.kind != VALUE_INTEGER && v.kind != VALUE_BOOL)
		template_fail(r, "a bound of a slice is %s, expected a whole number", value_kind(v));
	*i = v.kind == VALUE_BOOL ? v.yes : v.integer;
	return true;
}

static int64_t clamp(int64_t i, int64_t n, int64_t low, int64_t high)
{
	i += i < 0 ? n : 0;
	return i < low ? low : i > high ? high : i;
}

struct value value_slice(struct run *r, struct value v, const struct value bound[3])
{
	const bool text = v.kind == VALUE_TEXT;
	int64_t step = 1, first, last, n;
	struct builder b = { .r = r };
	struct value y;
	struct list *l;

	need_defined(r, v);
	if (v.kind == VALUE_LIST && v.list->form == FORM_RANGE)
		template_fail(r, "a slice of a range is not supported, use the filter list");
	if (!text && (v.kind != VALUE_LIST || v.list->form > FORM_TUPLE))
		template_fail(r, "%s cannot be sliced, expected a list or a text", value_kind(v));
	if (slice_bound(r, bound[2], &step) && !step)
		template_fail(r, "the step of a slice is 0");
	n = (int64_t)value_length(r, v);
	first = step > 0 ? 0 : n - 1;
	last = step > 0 ? n : -1;
	if (slice_bound(r, bound[0], &first))
		first = clamp(first, n, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
	if (slice_bound(r, bound[1], &last))
		last = clamp(last, n, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
	if (text && step == 1) {
		const struct span s = characters(v.text, (size_t)first,
			(size_t)(last > first ? last : first));

		return value_text(s.s, s.n);
	}
	l = value_items(r, v);
	y = value_list(r, text ? FORM_LIST : v.list->form, 0);
	for (int64_t i = first; step > 0 ? i < last : i > last; ) {
		if (text)
			build(&b, l->item[i].text.n, l->item[i].text.s);
		else
			list_add(r, y, l->item[i]);
		if (__builtin_add_overflow(i, step, &i))
			break;
	}
	return text ? built(&b) : y;
}
