/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_call.c -- functions, filters of lists, and tests of templates; see template_private.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "text/template_private.h"

/* --- functions --- */

static struct value call_raise(struct call *c)
{
	const struct span s = value_str(c->r, c->arg[0]);

	template_fail(c->r, "raise_exception: %.*s", (int)(s.n < 800 ? s.n : 800), s.s);
}

static struct value call_strftime(struct call *c)
{
	static const char known[] = "aAbBdeHIjmMpSUwWyYGuVDFTRhnt%";
	const struct value format = c->arg[0];
	char text[512], *copy;
	struct tm t = { 0 };
	size_t n;

	if (!c->r->date)
		template_fail(c->r, "the template asks for the date, give one by --date");
	if (format.kind != VALUE_TEXT)
		template_fail(c->r, "a format of a date is %s, expected a text", value_kind(format));
	if (memchr(format.text.s, '\0', format.text.n) || format.text.n > sizeof text / 16)
		template_fail(c->r, "a format of a date has a NUL or is too long");
	for (size_t i = 0; i < format.text.n; i++)
		if (format.text.s[i] == '%' && (++i == format.text.n || !strchr(known, format.text.s[i])))
			template_fail(c->r, "a part of a format of a date is not supported, expected %% and "
				"one of %s", known);
	sscanf(c->r->date, "%d-%d-%d", &t.tm_year, &t.tm_mon, &t.tm_mday);
	t.tm_year -= 1900;
	t.tm_mon--;
	timegm(&t);	/* sets the day of the week and of the year */
	copy = template_memory(c->r, format.text.n + 2, 1);
	memcpy(copy, format.text.s, format.text.n);
	copy[format.text.n] = '.';	/* so that a result of 0 bytes is an error */
	n = strftime(text, sizeof text, copy, &t);
	copy = template_memory(c->r, n + 1, 1);
	memcpy(copy, text, n);
	return value_text(copy, n - 1);
}

void namespace_set(struct run *r, struct value ns, struct span name, struct value v)
{
	if (*name.s == '_')
		template_fail(r, "the attribute '%.*s' of a namespace is not supported", (int)name.n, name.s);
	dict_set(r, ns.dict, value_text(name.s, name.n), v);
}

static struct value call_namespace(struct call *c)
{
	struct value y = value_dict(c->r);

	for (size_t i = 0; i < c->given; i++) {
		if (!c->all[i].name.s)
			template_fail(c->r, "namespace() takes arguments by name only");
		namespace_set(c->r, y, c->all[i].name, c->all[i].value);
	}
	y.kind = VALUE_NAMESPACE;
	return y;
}

static struct value call_range(struct call *c)
{
	enum { MOST = 100000 };		/* as in jinja2's sandbox */
	int64_t part[3] = { 0, 0, 1 };
	uint64_t distance = 0, stride, length;
	struct value y;
	const int n = c->arg[2].kind != VALUE_ABSENT ? 3 : c->arg[1].kind != VALUE_ABSENT ? 2 : 1;

	for (int i = 0; i < n; i++) {
		const struct value v = c->arg[i];

		if (v.kind != VALUE_INTEGER && v.kind != VALUE_BOOL)
			template_fail(c->r, "range() has %s, expected whole numbers", value_kind(v));
		part[n == 1 ? 1 : i] = v.kind == VALUE_BOOL ? v.yes : v.integer;
	}
	if (!part[2])
		template_fail(c->r, "the step of range() is 0");
	stride = part[2] > 0 ? (uint64_t)part[2] : -(uint64_t)part[2];
	if (part[2] > 0 ? part[1] > part[0] : part[1] < part[0])
		distance = part[2] > 0 ? (uint64_t)part[1] - (uint64_t)part[0] :
			(uint64_t)part[0] - (uint64_t)part[1];
	length = distance / stride + (distance % stride != 0);
	if (length > MOST)
		template_fail(c->r, "range() has more than %d numbers", MOST);
	y = value_list(c->r, FORM_RANGE, length);
	for (uint64_t i = 0; i < length; i++)
		list_add(c->r, y, value_integer(part[0] + (int64_t)i * part[2]));
	return y;
}

static const struct callee functions[] = {
	{ "raise_exception", "message", 1, call_raise, 0 },
	{ "strftime_now", "format", 1, call_strftime, 0 },
	{ "namespace", "*", 0, call_namespace, 0 },
	{ "range", "/ start stop step", 1, call_range, 0 },
	{ .name = NULL }
};

/* --- tests --- */

static bool is_kind(const struct call *c, enum kind kind) { return c->self.kind == kind; }

static struct value test_defined(struct call *c) { return value_bool(!is_kind(c, VALUE_UNDEFINED)); }
static struct value test_undefined(struct call *c) { return value_bool(is_kind(c, VALUE_UNDEFINED)); }
static struct value test_none(struct call *c) { return value_bool(is_kind(c, VALUE_NONE)); }
static struct value test_string(struct call *c) { return value_bool(is_kind(c, VALUE_TEXT)); }
static struct value test_mapping(struct call *c) { return value_bool(is_kind(c, VALUE_DICT)); }
static struct value test_iterable(struct call *c) { return value_bool(value_iterable(c->self)); }
static struct value test_true(struct call *c) { return value_bool(is_kind(c, VALUE_BOOL) && c->self.yes); }
static struct value test_false(struct call *c) { return value_bool(is_kind(c, VALUE_BOOL) && !c->self.yes); }
static struct value test_boolean(struct call *c) { return value_bool(is_kind(c, VALUE_BOOL)); }
static struct value test_integer(struct call *c) { return value_bool(is_kind(c, VALUE_INTEGER)); }
static struct value test_number(struct call *c) { return value_bool(value_is_number(c->self)); }

static struct value test_equal(struct call *c)
{
	return value_bool(value_equal(c->r, c->self, c->arg[0]));
}

/* Identity, of what has one in every Python. */
static struct value test_sameas(struct call *c)
{
	const struct value a = c->self, b = c->arg[0];

	if (a.kind != b.kind)
		return value_bool(false);
	if (a.kind == VALUE_NONE)
		return value_bool(true);
	if (a.kind == VALUE_BOOL)
		return value_bool(a.yes == b.yes);
	if (a.kind == VALUE_LIST || a.kind == VALUE_DICT || a.kind == VALUE_NAMESPACE)
		return value_bool(a.kind == VALUE_LIST ? a.list == b.list : a.dict == b.dict);
	template_fail(c->r, "the test sameas of %s is not supported", value_kind(a));
}

static const struct callee tests[] = {
	{ "defined", "", 0, test_defined, 0 },
	{ "undefined", "", 0, test_undefined, 0 },
	{ "none", "", 0, test_none, 0 },
	{ "string", "", 0, test_string, 0 },
	{ "mapping", "", 0, test_mapping, 0 },
	{ "iterable", "", 0, test_iterable, 0 },
	{ "true", "", 0, test_true, 0 },
	{ "false", "", 0, test_false, 0 },
	{ "boolean", "", 0, test_boolean, 0 },
	{ "integer", "", 0, test_integer, 0 },
	{ "number", "", 0, test_number, 0 },
	{ "equalto", "other", 1, test_equal, 0 },
	{ "eq", "other", 1, test_equal, 0 },
	{ "==", "other", 1, test_equal, 0 },
	{ "sameas", "other", 1, test_sameas, 0 },
	{ .name = NULL }
};

/* --- filters of lists --- */

static struct value filter_length(struct call *c)
{
	return value_integer((int64_t)value_length(c->r, c->self));
}

static struct value filter_default(struct call *c)
{
	const bool other = is_kind(c, VALUE_UNDEFINED) || (value_true(c->arg[1]) && !value_true(c->self));

	return !other ? c->self : c->arg[0].kind == VALUE_ABSENT ? value_text("", 0) : c->arg[0];
}

static struct value filter_list(struct call *c)
{
	const struct list *l = value_items(c->r, c->self);
	const struct value y = value_list(c->r, FORM_LIST, l->n);

	for (size_t i = 0; i < l->n; i++)
		list_add(c->r, y, l->item[i]);
	return y;
}

/* "a.0.b" of a value; with a default, for what is undefined. */
static struct value path_of(struct run *r, struct value v, struct value path, struct value other)
{
	const bool has_other = other.kind != VALUE_ABSENT && other.kind != VALUE_NONE;

	if (path.kind == VALUE_INTEGER)
		v = value_item(r, v, path);
	else if (path.kind != VALUE_TEXT)
		template_fail(r, "an attribute is %s, expected a text or a whole number", value_kind(path));
	for (size_t at = 0, n; path.kind == VALUE_TEXT && at <= path.text.n; at += n + 1) {
		const char *s = path.text.s + at, *dot = memchr(s, '.', path.text.n - at);
		int64_t i = 0;
		bool digits;

		n = dot ? (size_t)(dot - s) : path.text.n - at;
		digits = n > 0 && n < 18;
		for (size_t k = 0; k < n && digits; k++) {
			digits = s[k] >= '0' && s[k] <= '9';
			i = 10 * i + s[k] - '0';
		}
		v = value_item(r, v, digits ? value_integer(i) : value_text(s, n));
		if (has_other && v.kind == VALUE_UNDEFINED)
			v = other;
	}
	return has_other && v.kind == VALUE_UNDEFINED ? other : v;
}

static struct value filter_join(struct call *c)
{
	const struct value none = { VALUE_ABSENT, { 0 } };
	const struct value by = c->arg[1];
	const bool named = by.kind != VALUE_ABSENT && by.kind != VALUE_NONE;
	const struct span gap = c->arg[0].kind == VALUE_ABSENT ? (struct span){ "", 0 } :
		value_str(c->r, c->arg[0]);
	const struct list *l = value_items(c->r, c->self);
	struct builder b = { .r = c->r };

	for (size_t i = 0; i < l->n; i++) {
		if (i)
			build(&b, gap.n, gap.s);
		value_print(&b, named ? path_of(c->r, l->item[i], by, none) : l->item[i]);
	}
	return built(&b);
}

static struct value filter_first(struct call *c)
{
	const struct value v = c->self;
	struct list *l;

	if (v.kind == VALUE_LIST && v.list->form == FORM_ITERATOR)
		return v.list->next < v.list->n ? v.list->item[v.list->next++] :
			value_undefined("first item", 10);
	l = value_items(c->r, v);
	return l->n ? l->item[0] : value_undefined("first item", 10);
}

static struct value filter_last(struct call *c)
{
	const struct list *l;

	if (is_kind(c, VALUE_LIST) && c->self.list->form == FORM_ITERATOR)
		template_fail(c->r, "an iterator has no last item, use the filter list");
	l = value_items(c->r, c->self);
	return l->n ? l->item[l->n - 1] : value_undefined("last item", 9);
}

static struct value filter_reverse(struct call *c)
{
	const struct value back[3] = { { 0 }, { 0 }, value_integer(-1) };
	const bool iterator = is_kind(c, VALUE_LIST) && c->self.list->form == FORM_ITERATOR;
	const struct list *l;
	struct value y;

	if (is_kind(c, VALUE_TEXT))
		return value_slice(c->r, c->self, back);
	l = value_items(c->r, c->self);
	y = value_list(c->r, iterator ? FORM_LIST : FORM_ITERATOR, l->n);
	for (size_t i = l->n; i; i--)
		list_add(c->r, y, l->item[i - 1]);
	return y;
}

static struct value filter_items(struct call *c)
{
	struct value y = value_list(c->r, FORM_ITERATOR, 0);
	const struct callee *items = template_method((struct span){ "items", 5 }, VALUE_DICT);

	if (is_kind(c, VALUE_UNDEFINED))
		return y;
	if (!is_kind(c, VALUE_DICT))
		template_fail(c->r, "%s has no pairs, expected a dict", value_kind(c->self));
	y = items->run(c);
	y.list->form = FORM_ITERATOR;
	return y;
}

/* --- filters that apply to each item --- */

/* The items, none of what is false: as jinja2 does. */
static const struct list *each_of(struct call *c)
{
	return value_true(c->self) ? value_items(c->r, c->self) : value_list(c->r, FORM_LIST, 0).list;
}

static struct span row_name(struct call *c, size_t i, const char *what)
{
	if (i >= c->given || c->all[i].name.s || c->all[i].value.kind != VALUE_TEXT)
		template_fail(c->r, "expected the name of a %s", what);
	return c->all[i].value.text;
}

static struct value filter_map(struct call *c)
{
	const struct list *l = each_of(c);
	const struct value y = value_list(c->r, FORM_ITERATOR, 0);
	struct value by = { VALUE_ABSENT, { 0 } }, other = { VALUE_ABSENT, { 0 } };
	const struct callee *f = NULL;

	for (size_t i = 0; i < c->given && c->all[0].name.s; i++)
		if (span_is(c->all[i].name, "attribute"))
			by = c->all[i].value;
		else if (span_is(c->all[i].name, "default"))
			other = c->all[i].value;
		else
			template_fail(c->r, "map has no argument '%.*s'", (int)c->all[i].name.n,
				c->all[i].name.s);
	if (by.kind == VALUE_ABSENT) {
		f = template_filter(row_name(c, 0, "filter, or attribute"));
		if (!f || span_is(c->all[0].value.text, "safe"))
			template_fail(c->r, "map: the filter is not supported");
	}
	for (size_t i = 0; i < l->n; i++)
		list_add(c->r, y, f ? template_call(c->r, f, l->item[i], c->given - 1, c->all + 1) :
			path_of(c->r, l->item[i], by, other));
	return y;
}

/* Items whose value, or attribute, passes a test, or does not. */
static struct value chosen(struct call *c, bool attribute, bool keep)
{
	const struct list *l = each_of(c);
	const struct value y = value_list(c->r, FORM_ITERATOR, 0);
	const struct callee *f = NULL;
	const struct value none = { VALUE_ABSENT, { 0 } };

	if (attribute && (!c->given || c->all[0].name.s))
		template_fail(c->r, "expected the name of an attribute");
	if (c->given > (size_t)attribute) {
		f = template_test(row_name(c, attribute, "test"));
		if (!f)
			template_fail(c->r, "the test '%.*s' is not supported",
				(int)c->all[attribute].value.text.n, c->all[attribute].value.text.s);
	}
	for (size_t i = 0; i < l->n; i++) {
		struct value v = l->item[i];

		if (attribute)
			v = path_of(c->r, v, c->all[0].value, none);
		if (f)
			v = template_call(c->r, f, v, c->given - attribute - 1, c->all + attribute + 1);
		if (value_true(v) == keep)
			list_add(c->r, y, l->item[i]);
	}
	return y;
}

static struct value filter_select(struct call *c) { return chosen(c, false, true); }
static struct value filter_reject(struct call *c) { return chosen(c, false, false); }
static struct value filter_selectattr(struct call *c) { return chosen(c, true, true); }
static struct value filter_rejectattr(struct call *c) { return chosen(c, true, false); }

static const struct callee filters[] = {
	{ "length", "", 0, filter_length, 0 },
	{ "count", "", 0, filter_length, 0 },
	{ "join", "d attribute", 0, filter_join, 0 },
	{ "default", "default_value boolean", 0, filter_default, 0 },
	{ "d", "default_value boolean", 0, filter_default, 0 },
	{ "first", "", 0, filter_first, 0 },
	{ "last", "", 0, filter_last, 0 },
	{ "list", "", 0, filter_list, 0 },
	{ "reverse", "", 0, filter_reverse, 0 },
	{ "items", "", 0, filter_items, 0 },
	{ "map", "*", 0, filter_map, 0 },
	{ "select", "*", 0, filter_select, 0 },
	{ "reject", "*", 0, filter_reject, 0 },
	{ "selectattr", "*", 0, filter_selectattr, 0 },
	{ "rejectattr", "*", 0, filter_rejectattr, 0 },
	{ .name = NULL }
};

/* --- calls --- */

static const struct callee *find(const struct callee *rows, struct span name, enum kind of)
{
	for (; rows->name; rows++)
		if (span_is(name, rows->name) && (!of || rows->of == of))
			return rows;
	return NULL;
}

const struct callee *template_function(struct span name) { return find(functions, name, 0); }
const struct callee *template_test(struct span name) { return find(tests, name, 0); }
const struct callee *template_method(struct span name, enum kind of)
{
	return find(template_methods, name, of);
}

const struct callee *template_filter(struct span name)
{
	const struct callee *f = find(filters, name, 0);

	return f ? f : find(template_text_filters, name, 0);
}

/* The number of the parameter of this name; one more than the last: none. *n: the number of parameters. */
static size_t parameter(const char *names, struct span name, size_t *n)
{
	size_t y = ARGUMENTS;

	*n = 0;
	for (size_t length; *names; names += length + (names[length] == ' ')) {
		length = strcspn(names, " ");
		if (*names == '/')
			continue;
		if (name.s && span_equal((struct span){ names, length }, name))
			y = *n;
		++*n;
	}
	return y;
}

struct value template_call(struct run *r, const struct callee *f, struct value self, size_t n,
	const struct argument *all)
{
	struct call c = { .r = r, .self = self, .given = n, .all = all };
	size_t most;

	parameter(f->parameters, (struct span){ NULL, 0 }, &most);
	for (size_t i = 0; i < n && *f->parameters != '*'; i++) {
		const struct span name = all[i].name;
		const size_t at = name.s ? parameter(f->parameters, name, &most) : i;

		if (name.s && (*f->parameters == '/' || at == ARGUMENTS || c.arg[at].kind != VALUE_ABSENT))
			template_fail(r, "%s: the argument '%.*s' is not expected", f->name, (int)name.n,
				name.s);
		if (at >= most)
			template_fail(r, "%s: has %zu arguments, expected at most %zu", f->name, n, most);
		c.arg[at] = all[i].value;
	}
	for (size_t i = 0; i < f->required; i++)
		if (c.arg[i].kind == VALUE_ABSENT)
			template_fail(r, "%s: has %zu arguments, expected %zu", f->name, n, f->required);
	return f->run(&c);	/* cppcheck-suppress returnDanglingLifetime */
}
