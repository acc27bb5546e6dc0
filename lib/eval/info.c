/* SPDX-License-Identifier: GPL-3.0-or-later */
/* info.c -- see info.h */
#include "eval/info.h"
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/info_private.h"
#include "model/calibrated.h"
#include "model/tokens.h"

void info_set(json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value))
		die("out of memory");
}

void info_append(json_t *list, json_t *value)
{
	if (!value || json_array_append_new(list, value))
		die("out of memory");
}

json_t *info_string(const char *text)
{
	json_t *y = json_string(text);
	char *ascii;

	if (y)
		return y;
	ascii = xformat("%s", text);
	for (char *c = ascii; *c; c++)
		*c = isascii((unsigned char)*c) ? *c : '?';
	y = json_string(ascii);
	free(ascii);
	return y;
}

json_t *info_real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

/* An integer if it is one that a double represents exactly. */
static json_t *number_fact(double x)
{
	return x == floor(x) && fabs(x) < 0x1p53 ? json_integer((json_int_t)x) : info_real(x);
}

json_t *info_count(double n)
{
	return fabs(n) < 0x1p63 ? number_fact(n) : json_null();
}

json_t *info_size(size_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

json_t *info_list(json_t *facts, const char *key)
{
	json_t *list = json_object_get(facts, key);

	if (!list) {
		list = json_array();
		info_set(facts, key, list);
	}
	return list;
}

json_t *info_row(struct info *f, const char *table, json_t *keys, const char *const counts[])
{
	char *text = json_dumps(keys, JSON_COMPACT), *name = text ? xformat("%s %s", table, text) : NULL;
	json_t *row = name ? json_object_get(f->rows, name) : NULL;

	if (!name)
		die("out of memory");
	if (!row) {
		row = json_object();
		for (const char *const *c = counts; *c; c++)
			info_set(row, *c, info_size(0));
		if (json_object_update(row, keys))
			die("out of memory");
		info_append(info_list(f->facts, table), row);
		info_set(f->rows, name, json_incref(row));
	}
	json_decref(keys);
	free(text), free(name);
	return row;
}

void info_add(json_t *row, const char *key, double n)
{
	const json_t *before = json_object_get(row, key);

	info_set(row, key, json_is_null(before) ? json_null() : info_count(json_number_value(before) + n));
}

/* --- history --- */

/* Adds the lines of a history, oldest first; they are stored newest first. of: its input; "": the file. */
static void add_history(json_t *histories, const char *of, const char *text)
{
	json_t *history = json_object(), *lines = json_array();
	const char *end = text + strlen(text);

	for (const char *s; end > text; end = s > text ? s - 1 : text) {
		char *line;

		for (s = end; s > text && s[-1] != '\n'; s--)
			;
		line = xformat("%.*s", (int)(end - s), s);
		if (*line)
			info_append(lines, info_string(line));
		free(line);
	}
	info_set(history, "of", info_string(of));
	info_set(history, "commands", lines);
	info_append(histories, history);
}

/* --- the root --- */

static void add_range(void *list, const struct calibrated_range *r)
{
	char *digest = xformat("%.*s", DIGEST_DIGITS, r->digest);
	json_t *row = json_object();

	info_set(row, "tokens_sha256", info_string(digest));
	info_set(row, "first", info_size(r->first));
	info_set(row, "end", info_size(r->end));
	if (r->windows) {
		info_set(row, "random_seed", info_size(r->seed));
		info_set(row, "random_windows", info_size(r->windows));
	}
	info_append(list, row);
	free(digest);
}

/* Adds the table of an attribute with ranges of ids; false if the text has a line that is no range. */
static bool add_ranges(json_t *facts, const char *name, const char *text)
{
	json_t *rows = json_array();
	size_t lines = 0, n;

	for (const char *s = text; *s; s += strspn(s, "\n"), lines++)
		s += strcspn(s, "\n");
	calibrated_each(text, add_range, rows);
	n = json_array_size(rows);
	if (n)
		info_set(facts, name, json_incref(rows));
	json_decref(rows);
	return n && n == lines;
}

/* Adds a value under a name, which becomes a text. Names that are then equal get a number. */
static void set_named(json_t *object, const char *name, json_t *value)
{
	json_t *text = info_string(name);
	const char *key = json_string_value(text);
	char *other = json_object_get(object, key) ? xformat("%s (%zu)", key, json_object_size(object)) :
		NULL;

	info_set(object, other ? other : key, value);
	json_decref(text);
	free(other);
}

static void add_attribute(void *arg, const char *name, const char *text, double number)
{
	static const char *const known[] = { "ptq_kind", "ptq_version", "part", "parts", NULL };
	static const char history[] = "history";
	const size_t n = sizeof history - 1;
	struct info *f = arg;

	for (const char *const *k = known; *k; k++)
		if (!strcmp(*k, name))
			return;
	if ((!strcmp(name, CALIBRATED) || !strcmp(name, EVALUATED)) && text &&
	    add_ranges(f->facts, name, text))
		return;
	if (!strncmp(name, history, n) && (!name[n] || name[n] == ':') && text)
		add_history(f->history, name + n + (name[n] == ':'), text);
	else
		set_named(f->attributes, name, text ? info_string(text) : number_fact(number));
}

/* --- tokens --- */

static void set_number(struct info *f, const struct part *part, const char *name)
{
	const double v = part_number(part, "/tokens", name, NAN);

	if (!isnan(v))
		info_set(f->facts, name, info_count(v));
}

static void begin_tokens(struct info *f, const struct part *part)
{
	static const char *const numbers[] = { "vocab", "bos_id", "add_bos", "newline", NULL };
	char *digest = NULL, *tokenizer = part_text(part, "/tokens", "tokenizer_sha256");
	struct tensor t;

	if (!part_shape(part, "/tokens", TENSOR_I32, 1, NULL, &t))
		die("%s: /tokens: is missing", part_name(part));
	info_set(f->facts, "tokens", info_size(t.dim[0]));
	if (part_shape(part, "/sequence", TENSOR_I64, 1, NULL, &t))
		info_set(f->facts, "sequences", info_size(t.dim[0] ? t.dim[0] - 1 : 0));
	else
		info_set(f->facts, "sequences", info_size(1));
	info_set(f->facts, "images", info_size(part_shape(part, "/image_span", TENSOR_I64, 2, NULL, &t) ?
		t.dim[0] : 0));
	info_set(f->facts, "reordered", json_boolean(part_has(part, "/index")));
	for (const char *const *n = numbers; *n; n++)
		set_number(f, part, *n);
	digest = tokens_digest(part);
	info_set(f->facts, "tokens_sha256", info_string(digest));
	if (tokenizer)
		info_set(f->facts, "tokenizer_sha256", info_string(tokenizer));
	free(digest), free(tokenizer);
}

/* --- datasets --- */

/* The path with # in place of numbers. */
static char *without_numbers(const char *path)
{
	char *y = xformat("%s", path), *to = y;

	while (*path) {
		const size_t digits = path[0] == '/' ? strspn(path + 1, "0123456789") : 0;

		*to++ = *path++;
		if (digits && (!path[digits] || path[digits] == '/')) {
			*to++ = '#';
			path += digits;
		}
	}
	*to = 0;
	return y;
}

static void add_dataset(void *arg, const char *path, const char *type, int rank, const size_t dim[])
{
	struct info *f = arg;
	char *pattern = without_numbers(path);
	json_t *row = json_object(), *shape = json_array();

	for (int i = 0; i < rank; i++)
		info_append(shape, info_size(dim[i]));
	info_set(row, "dataset", info_string(pattern));
	info_set(row, "type", info_string(type));
	info_set(row, "shape", rank < 0 ? (json_decref(shape), json_null()) : shape);
	info_add(info_row(f, "datasets", row, (const char *const[]){ "count", NULL }), "count", 1);
	free(pattern);
}

/* --- all kinds --- */

static const struct info_kind kinds[] = {
	{ "model", info_model_begin, info_model_part, info_model_end, false },
	{ "hessian", NULL, info_hessian_part, info_hessian_end, false },
	{ "tokens", begin_tokens, NULL, NULL, true },
	{ .datasets = true },
};

/* The tool and version of the newest line of the history, or NULL. */
static char *maker(const struct part *root)
{
	char *text = part_text(root, "/", "history"), *y = NULL;

	if (text && *text) {
		size_t n = strcspn(text, " \n");

		n += text[n] == ' ' ? 1 + strcspn(text + n + 1, " \n") : 0;
		y = xformat("%.*s", (int)n, text);
	}
	free(text);
	return y;
}

static void begin(struct info *f, const struct part *root)
{
	char *version = part_text(root, "/", "ptq_version"), *made = maker(root);
	const char *kind = part_kind(root);

	for (f->kind = kinds; f->kind->name && strcmp(f->kind->name, kind); f->kind++)
		;
	info_set(f->facts, "kind", *kind ? info_string(kind) : json_null());
	info_set(f->facts, "version", version ? info_string(version) : json_null());
	info_set(f->facts, "made_by", made ? info_string(made) : json_null());
	info_set(f->facts, "stored", json_null());	/* set by finish() */
	info_set(f->facts, "parts", info_size(part_count(root)));
	if (f->kind->begin)
		f->kind->begin(f, root);
	free(version), free(made);
}

static void add_part(struct info *f, const struct part *part)
{
	if (!part_index(part)) {
		begin(f, part);
		part_attributes(part, add_attribute, f);
		if (json_object_size(f->attributes))
			info_set(f->facts, "attributes", json_incref(f->attributes));
	}
	if (f->kind->part)
		f->kind->part(f, part);
	if (f->kind->datasets)
		part_datasets(part, add_dataset, f);
}

/* Sets the last facts. */
static void finish(struct info *f, bool whole)
{
	info_set(f->facts, "stored", info_string(whole ? "file" : "stream"));
	if (f->kind->end)
		f->kind->end(f);
	if (json_array_size(f->history))
		info_set(f->facts, "history", json_incref(f->history));
}

char *info_text(struct input *in, bool json)
{
	struct info f = { .facts = json_object(), .rows = json_object(), .attributes = json_object(),
		.history = json_array() };
	const struct part *part;
	char *text = NULL;
	size_t n;
	FILE *to;

	while ((part = input_next(in)))
		add_part(&f, part);
	finish(&f, input_whole(in));
	to = open_memstream(&text, &n);
	if (!to)
		die("out of memory");
	if (json)
		json_dumpf(f.facts, to, JSON_REAL_PRECISION(17)), fputc('\n', to);
	else
		info_print(to, f.facts);
	if (ferror(to) || fclose(to) || !text)
		die("out of memory");
	json_decref(f.facts), json_decref(f.rows), json_decref(f.attributes), json_decref(f.history);
	if (f.config)
		config_close(f.config);
	return text;
}
