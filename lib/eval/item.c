/* SPDX-License-Identifier: GPL-3.0-or-later */
/* item.c -- see item.h */
#include "eval/item.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/contents.h"
#include "text/json_lines.h"
#include "text/utf8.h"

static const size_t MAX = (size_t)1 << 30;	/* bytes of a file */

static void add(struct items *y, json_t *json, size_t line)
{
	if (!(y->n & (y->n + 1)))	/* 0, 1, 3, 7, ... */
		y->item = xgrow(y->item, 2 * y->n + 2, sizeof *y->item);
	y->item[y->n++] = (struct item){ json, line };
}

/* ---- CSV ---- */

struct csv {
	const char *at, *end;
	size_t line;
	char *cell;			/* [bytes of the file] */
};

/* Reads a cell, and the comma or the newline after it. Returns whether it is the last one of its row. */
static bool next_cell(struct csv *c, size_t *n)
{
	const bool quoted = c->at < c->end && *c->at == '"';

	*n = 0;
	for (c->at += quoted; c->at < c->end; c->at++) {
		const bool quote = *c->at == '"', twice = quote && c->at + 1 < c->end && c->at[1] == '"';

		if (quoted ? quote && !twice : *c->at == ',' || *c->at == '\n')
			break;
		if (quoted && quote)
			c->at++;
		c->line += *c->at == '\n';
		c->cell[(*n)++] = *c->at;
	}
	if (quoted) {
		if (c->at == c->end)
			die("a cell in quotes does not end");
		c->at++;
	} else if (*n && c->cell[*n - 1] == '\r' && (c->at == c->end || *c->at == '\n')) {
		--*n;
	}
	c->at += quoted && c->at + 1 < c->end && c->at[0] == '\r' && c->at[1] == '\n';
	if (c->at == c->end)
		return true;
	if (*c->at != ',' && *c->at != '\n')
		die("a cell has text after its quotes");
	c->line += *c->at == '\n';
	return *c->at++ == '\n';
}

/* The next row, an array of texts. */
static json_t *next_row(struct csv *c)
{
	json_t *row = json_array();
	bool last = false;
	size_t n;

	while (!last) {
		json_t *text;

		last = next_cell(c, &n);
		text = json_stringn(c->cell, n);
		if (!text)
			die("cell %zu is not valid UTF-8", json_array_size(row) + 1);
		json_array_append_new(row, text);
	}
	return row;
}

static void skip_blank_lines(struct csv *c)
{
	while (c->at < c->end && (*c->at == '\n' || (c->at + 1 < c->end && !memcmp(c->at, "\r\n", 2))))
		c->line += *c->at++ == '\n';
}

static bool has_cell(const json_t *row, const char *text)
{
	size_t i;
	json_t *v;

	json_array_foreach(row, i, v)
		if (!strcmp(json_string_value(v), text))
			return true;
	return false;
}

/* Whether the row has the names of the columns, not an item in which such a text is a choice. The last name,
 * the answer, may be missing, as in some test sets: items are refused by it. */
static bool is_head(const json_t *row, const char *const columns[])
{
	for (size_t i = 0; columns[i + 1]; i++)
		if (!has_cell(row, columns[i]))
			return false;
	return true;
}

static void check_names(const json_t *names)
{
	json_t *seen = json_object();
	size_t i;
	json_t *v;

	json_array_foreach(names, i, v) {
		if (json_object_get(seen, json_string_value(v)))
			die("has two columns '%s'", json_string_value(v));
		json_object_set(seen, json_string_value(v), v);
	}
	json_decref(seen);
}

static json_t *names_of(const char *const columns[])
{
	json_t *names = json_array();

	for (size_t i = 0; columns[i]; i++)
		json_array_append_new(names, json_string(columns[i]));
	return names;
}

static void read_csv(struct items *y, size_t n, const char text[n], size_t limit, const char *const columns[])
{
	struct csv c = { .at = text, .end = text + n, .line = 1, .cell = xalloc(n, 1) };
	json_t *names = NULL, *row;

	if (memchr(text, '\0', n))
		die("%s: is neither JSON lines nor CSV: it has a NUL", y->name);
	while (!(limit && y->n == limit)) {
		size_t line;
		json_t *o;

		skip_blank_lines(&c);
		if (c.at == c.end)
			break;
		line = c.line;
		json_lines_prefix(y->name, line);
		row = next_row(&c);
		if (!names && is_head(row, columns)) {
			names = row;
			check_names(names);
			continue;
		}
		if (!names)
			names = names_of(columns);
		if (json_array_size(row) != json_array_size(names))
			die("has %zu cells, expected %zu", json_array_size(row), json_array_size(names));
		o = json_object();
		for (size_t i = 0; i < json_array_size(row); i++)
			json_object_set(o, json_string_value(json_array_get(names, i)),
				json_array_get(row, i));
		json_decref(row);
		add(y, o, line);
	}
	json_decref(names);
	free(c.cell);
}

/* ---- files ---- */

/* Whether a text begins as an object, or as an array of them, which JSON lines refuse by name. */
static bool is_json(const char *text)
{
	return *text == '{' || (*text == '[' && text[1 + strspn(text + 1, " \t\r\n")] == '{');
}

struct items items_read(const char *path, size_t limit, const char *const columns[])
{
	static const char parquet[] = "PAR1", gzip[] = "\x1f\x8b";	/* first bytes */
	struct items y = { .name = strcmp(path, "-") ? path : "<stdin>" };
	size_t n, mark, first;
	char *text = contents_read(path, MAX, &n);

	if (n >= strlen(parquet) && !memcmp(text, parquet, strlen(parquet)))
		die("%s: is a Parquet file, expected JSON lines%s: pipelines/lib/parquet.py prints them",
			y.name, columns ? " or CSV" : "");
	if (n >= strlen(gzip) && !memcmp(text, gzip, strlen(gzip)))
		die("%s: is compressed by gzip: gzip -dc prints its contents", y.name);
	mark = utf8_mark(text, n);
	first = mark + strspn(text + mark, " \t\r\n");
	if (columns && first < n && !is_json(text + first)) {
		read_csv(&y, n - mark, text + mark, limit, columns);
	} else {
		struct json_lines l = { .name = y.name, .n = n, .text = text };
		json_t *o;

		while (!(limit && y.n == limit) && (o = json_lines_next(&l)))
			add(&y, o, l.line);
	}
	error_prefix(NULL);
	if (!y.n)
		die("%s: holds no item, expected JSON objects, one per line", y.name);
	free(text);
	return y;
}

void items_prefix(const struct items *items, size_t i)
{
	json_lines_prefix(items->name, items->item[i].line);
}

void items_free(struct items *items)
{
	for (size_t i = 0; i < items->n; i++)
		json_decref(items->item[i].json);
	free(items->item);
}
