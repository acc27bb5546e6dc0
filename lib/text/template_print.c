/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template_print.c -- values as text: as Python's str() and repr(), and as JSON; see template_private.h */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "text/template_private.h"
#include "text/utf8.h"

static void put(struct builder *b, const char *s) { build(b, strlen(s), s); }

/* The shortest digits that are this number, as Python prints them. */
static void put_real(struct builder *b, double d, bool json)
{
	char text[40];
	int digits = 1, power;

	if (!isfinite(d)) {
		put(b, isnan(d) ? json ? "NaN" : "nan" : d < 0 ? json ? "-Infinity" : "-inf" :
			json ? "Infinity" : "inf");
		return;
	}
	do
		snprintf(text, sizeof text, "%.*e", digits - 1, d);
	while (strtod(text, NULL) != d && ++digits <= 17);
	power = atoi(strchr(text, 'e') + 1);
	if (power >= -4 && power < 16)
		snprintf(text, sizeof text, "%.*f", digits - 1 > power ? digits - 1 - power : 1, d);
	put(b, text);
}

static void put_integer(struct builder *b, int64_t i)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, i);
	put(b, text);
}

static bool is_printable(uint32_t c)
{
	const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

	return c == ' ' || !(k == UTF8PROC_CATEGORY_CN || k >= UTF8PROC_CATEGORY_ZS);
}

/* One character within quotes, escaped as by repr(), or as in JSON. */
static void put_escaped(struct builder *b, uint32_t c, char quote, bool json, bool ascii)
{
	static const char escapes[] = "\\\\\nn\rr\tt", of_json[] = "\bb\ff";
	const char *list[] = { escapes, json ? of_json : "" };
	char text[16];

	for (int i = 0; i < 2; i++)
		for (const char *e = list[i]; *e; e += 2)
			if (c == (unsigned char)*e) {
				snprintf(text, sizeof text, "\\%c", e[1]);
				put(b, text);
				return;
			}
	if (c == (unsigned char)quote)
		snprintf(text, sizeof text, "\\%c", quote);
	else if (json && ascii && c > 0xffff)
		snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else if (json && (c < ' ' || (ascii && c > 0x7e)))
		snprintf(text, sizeof text, "\\u%04x", c);
	else if (!json && !is_printable(c))
		snprintf(text, sizeof text, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
	else
		text[utf8_put(text, c)] = '\0';
	put(b, text);
}

static void put_quoted(struct builder *b, struct span s, bool json, bool ascii)
{
	const char quote = json || (memchr(s.s, '\'', s.n) && !memchr(s.s, '"', s.n)) ? '"' : '\'';
	bool valid;

	template_spend(b->r, s.n / 16);
	build(b, 1, &quote);
	for (size_t i = 0; i < s.n; i += utf8_character(s.s + i, s.n - i, &valid))
		put_escaped(b, utf8_value(s.s + i), quote, json, ascii);
	build(b, 1, &quote);
}

static void put_repr(struct builder *b, struct value v)
{
	if (v.kind == VALUE_TEXT)
		put_quoted(b, v.text, false, false);
	else if (v.kind == VALUE_UNDEFINED)
		put(b, "Undefined");
	else
		value_print(b, v);
}

static void put_list(struct builder *b, const struct list *l)
{
	const bool tuple = l->form == FORM_TUPLE;

	if (l->form > FORM_TUPLE)
		template_fail(b->r, "a range, an iterator or a view of a dict cannot be printed, use the "
			"filter list");
	put(b, tuple ? "(" : "[");
	for (size_t i = 0; i < l->n; i++) {
		put(b, i ? ", " : "");
		put_repr(b, l->item[i]);
	}
	put(b, tuple ? l->n == 1 ? ",)" : ")" : "]");
}

void value_print(struct builder *b, struct value v)
{
	template_spend(b->r, 1);
	switch (v.kind) {
	case VALUE_UNDEFINED: break;
	case VALUE_NONE: put(b, "None"); break;
	case VALUE_BOOL: put(b, v.yes ? "True" : "False"); break;
	case VALUE_INTEGER: put_integer(b, v.integer); break;
	case VALUE_REAL: put_real(b, v.real, false); break;
	case VALUE_TEXT: build(b, v.text.n, v.text.s); break;
	case VALUE_LIST: put_list(b, v.list); break;
	case VALUE_DICT:
		put(b, "{");
		for (size_t i = 0; i < v.dict->n; i++) {
			put(b, i ? ", " : "");
			put_repr(b, v.dict->pair[i].key);
			put(b, ": ");
			put_repr(b, v.dict->pair[i].value);
		}
		put(b, "}");
		break;
	default: template_fail(b->r, "%s cannot be printed", value_kind(v));
	}
}

struct span value_str(struct run *r, struct value v)
{
	struct builder b = { .r = r };

	if (v.kind == VALUE_TEXT)
		return v.text;
	value_print(&b, v);
	return built(&b).text;
}

/* --- JSON, as json.dumps() --- */

/* A new line before an item, if there is an indent. */
static void new_line(struct builder *b, const int64_t *indent, int level)
{
	if (!indent)
		return;
	put(b, "\n");
	for (int64_t i = 0; i < *indent * level; i++)
		put(b, " ");
}

static void json_key(struct builder *b, struct value key, bool ascii)
{
	if (key.kind == VALUE_TEXT) {
		put_quoted(b, key.text, true, ascii);
		return;
	}
	put(b, "\"");
	value_json(b, key, NULL, 0, ascii);
	put(b, "\"");
}

static void json_list(struct builder *b, const struct list *l, const int64_t *indent, int level, bool ascii)
{
	if (l->form > FORM_TUPLE)
		template_fail(b->r, "a range, an iterator or a view of a dict has no form in JSON");
	put(b, "[");
	for (size_t i = 0; i < l->n; i++) {
		put(b, !i ? "" : indent ? "," : ", ");
		new_line(b, indent, level + 1);
		value_json(b, l->item[i], indent, level + 1, ascii);
	}
	if (l->n)
		new_line(b, indent, level);
	put(b, "]");
}

void value_json(struct builder *b, struct value v, const int64_t *indent, int level, bool ascii)
{
	template_spend(b->r, 1);
	switch (v.kind) {
	case VALUE_NONE: put(b, "null"); break;
	case VALUE_BOOL: put(b, v.yes ? "true" : "false"); break;
	case VALUE_INTEGER: put_integer(b, v.integer); break;
	case VALUE_REAL: put_real(b, v.real, true); break;
	case VALUE_TEXT: put_quoted(b, v.text, true, ascii); break;
	case VALUE_LIST: json_list(b, v.list, indent, level, ascii); break;
	case VALUE_DICT:
		put(b, "{");
		for (size_t i = 0; i < v.dict->n; i++) {
			put(b, !i ? "" : indent ? "," : ", ");
			new_line(b, indent, level + 1);
			json_key(b, v.dict->pair[i].key, ascii);
			put(b, ": ");
			value_json(b, v.dict->pair[i].value, indent, level + 1, ascii);
		}
		if (v.dict->n)
			new_line(b, indent, level);
		put(b, "}");
		break;
	default: template_fail(b->r, "%s has no form in JSON", value_kind(v));
	}
}
