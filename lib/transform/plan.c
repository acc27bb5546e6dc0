/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan.c -- see plan.h */
#include "transform/plan.h"
#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/history.h"
#include "io/contents.h"

enum { MAX_BYTES = 64 << 20 };

struct plan_line {
	size_t number;			/* in the file, from 1 on */
	char *text;			/* without comments and extra blanks, for the history */
	const char *glob;
	bool keep, seen;		/* seen: a layer matches */
	size_t n;
	struct setting {
		const struct option_row *row;
		char *word;		/* "option", followed by */
		const char *value;
		bool used;		/* it changed the method of a layer */
	} *setting;			/* [n] */
};

struct plan_method {
	bool *match;			/* [lines] the lines that match its layers */
	struct method *method;
	/* Under the options and these lines. */
	struct option_without_effect without_effect[METHOD_WITHOUT_EFFECT];
};

/* Messages name the line, until error_prefix(NULL). */
static void enter(const struct plan *p, const struct plan_line *l)
{
	char *where = xformat("%s:%zu", p->name, l->number);

	error_prefix(where);
	free(where);
}

static const struct option_row *named(const struct option_row *rows, const char *name)
{
	for (; rows->type != OPTION_END; rows++)
		if (rows->type != OPTION_HEADING && !strcmp(rows->name, name))
			return rows;
	return NULL;
}

/* text + between + word in new memory, or word if text is NULL. Frees text. */
static char *append(char *text, const char *between, const char *word)
{
	char *y = xformat("%s%s%s", text ? text : "", text ? between : "", word);

	free(text);
	return y;
}

/* Offset of the row's variable in struct method_options; beyond its size: no option of a layer. */
static size_t offset_of(const struct plan *p, const struct option_row *o)
{
	return (uintptr_t)o->var.parsed - (uintptr_t)p->options;
}

static bool is_of_layer(const struct plan *p, const struct option_row *o)
{
	return o->type != OPTION_HEADING && offset_of(p, o) < sizeof *p->options;
}

static _Noreturn void refuse_option(const struct plan *p, const struct option_row *rows, const char *name)
{
	const bool known = named(rows, name);
	char *could = NULL;

	for (; rows->type != OPTION_END; rows++)
		if (is_of_layer(p, rows))
			could = append(could, ", ", rows->name);
	misuse("%s: is not an option%s, expected one of %s", name, known ? " of a layer" : "", could);
}

/* Applies a setting to a copy of the options. A flag has the value yes or no. Returns the row of the copy. */
static struct option_row apply(const struct plan *p, const struct setting *s, struct method_options *copy)
{
	const bool flag = s->row->type == OPTION_BOOL, yes = !strcmp(s->value, "yes");
	struct option_row row = *s->row;

	row.var.parsed = (char *)copy + offset_of(p, s->row);
	if (flag && !yes && strcmp(s->value, "no"))
		misuse("--%s: '%s' is not one of no, yes", row.name, s->value);
	option_set(&row, flag && !yes ? NULL : s->value);
	return row;
}

static void apply_line(const struct plan *p, const struct plan_line *l, struct method_options *copy)
{
	for (size_t i = 0; i < l->n; i++)
		apply(p, &l->setting[i], copy);
}

/* A setting of the line, or NULL. */
static struct setting *setting_of(const struct plan_line *l, const char *option)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->setting[i].row->name, option))
			return &l->setting[i];
	return NULL;
}

/* "option=value", or "keep". */
static void add_word(const struct plan *p, struct plan_line *l, char *word, const struct option_row *rows)
{
	struct method_options copy = *p->options;
	char *value = strchr(word, '=');
	struct setting s = { 0 };
	struct option_row row;

	if (l->keep || (!strcmp(word, "keep") && l->n))
		misuse("keep cannot be combined with option=value");
	if (!strcmp(word, "keep")) {
		l->keep = true;
		free(word);
		return;
	}
	if (!value)
		misuse("'%s' is neither option=value nor keep", word);
	*value++ = '\0';
	s.row = named(rows, word);
	s.word = word;
	s.value = value;
	if (!s.row || !is_of_layer(p, s.row))
		refuse_option(p, rows, word);
	if (setting_of(l, word))
		misuse("%s: is given twice in one line", word);
	row = apply(p, &s, &copy);
	method_hint(&row);
	l->setting = xgrow(l->setting, l->n + 1, sizeof *l->setting);
	l->setting[l->n++] = s;
}

/* Parses a line, whose text is modified. */
static void add_line(struct plan *p, size_t number, char *text, const struct option_row *rows)
{
	struct plan_line l = { .number = number };
	char *rest = NULL;

	enter(p, &l);
	for (char *w = strtok_r(text, " \t\r", &rest); w; w = strtok_r(NULL, " \t\r", &rest)) {
		char *word = xformat("%s", w);		/* kept: settings point into it */

		l.text = append(l.text, " ", w);
		if (l.glob)
			add_word(p, &l, word, rows);
		else
			l.glob = word;
	}
	if (l.glob && !l.n && !l.keep)
		misuse("%s: is alone in a line, expected option=value or keep after it", l.glob);
	error_prefix(NULL);
	if (!l.glob)
		return;
	p->line = xgrow(p->line, p->n + 1, sizeof *p->line);
	p->line[p->n++] = l;
}

/* Writes the lines to the history: "glob option=value ...; ...". */
static void note_lines(const struct plan *p)
{
	char *all = NULL;

	for (size_t i = 0; i < p->n; i++)
		all = append(all, "; ", p->line[i].text);
	history_note("plan", all ? all : "");
	free(all);
}

/* The row stays without effect only if the other is too, with the same options. */
static void join(struct option_without_effect *row, const struct option_without_effect *other)
{
	row->applies &= other->applies && row->names == other->names;
}

/* Options that have no effect, for the same reason, under the command line alone and under each line of the
 * plan. */
static void find_without_effect(struct plan *p,
	struct option_without_effect without_effect[METHOD_WITHOUT_EFFECT])
{
	struct option_without_effect row[METHOD_WITHOUT_EFFECT];

	method_without_effect(p->options, option_given("act-mode"), without_effect);
	for (size_t i = 0; i < p->n; i++) {
		struct method_options copy = *p->options;

		apply_line(p, &p->line[i], &copy);
		method_without_effect(&copy, option_given("act-mode") || setting_of(&p->line[i], "act-mode"),
			row);
		for (size_t k = 0; k < METHOD_WITHOUT_EFFECT; k++)
			join(&without_effect[k], &row[k]);
	}
}

void plan_warn(struct plan *p, bool known)
{
	struct option_without_effect without_effect[METHOD_WITHOUT_EFFECT];
	bool any = false;

	find_without_effect(p, without_effect);
	for (size_t i = 0; known && i < p->methods; i++) {
		if (p->method[i].method->keep)
			continue;
		for (size_t k = 0; k < METHOD_WITHOUT_EFFECT; k++)
			if (any)
				join(&without_effect[k], &p->method[i].without_effect[k]);
			else
				without_effect[k] = p->method[i].without_effect[k];
		any = true;
	}
	option_without_effect(METHOD_WITHOUT_EFFECT, without_effect);
}

struct plan plan_read(const char *path, const struct option_row *rows, const struct method_options *options)
{
	struct plan p = { .name = path, .options = options };
	size_t n, number = 0;
	char *text, *rest;

	for (const struct option_row *o = rows; o->type != OPTION_END; o++)
		if (is_of_layer(&p, o) && option_given(o->name))
			method_hint(o);
	if (path) {
		method_check(options);
		text = contents_read(path, MAX_BYTES, &n);
		rest = text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3);	/* byte order mark */
		/* a plan-bits that failed, for example; comments alone are a plan */
		if (!*rest && strlen(text) == n)
			die("%s: is empty, expected lines of GLOB and option=value, or a comment", path);
		if (strlen(text) != n)
			die("%s: holds a NUL byte, expected text", path);
		for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
			line[strcspn(line, "#")] = '\0';
			add_line(&p, ++number, line, rows);
		}
		free(text);
		note_lines(&p);
	}
	if (!p.n) {	/* reports inconsistent options now */
		plan_method(&p, NULL);
		plan_warn(&p, true);
	}
	return p;
}

struct plan plan_single(const struct method *m)
{
	struct plan p = { .methods = 1, .method = xalloc(1, sizeof *p.method) };

	p.method->method = xalloc(1, sizeof *m);
	*p.method->method = *m;
	p.method->match = xalloc(p.n, sizeof(bool));
	return p;
}

struct asked { const struct plan *p; const bool *match; };

static bool counts(const void *arg, const char *option)
{
	const struct asked *a = arg;
	bool yes = option_has_effect(option);

	for (size_t i = 0; i < a->p->n; i++)
		yes |= a->match[i] && setting_of(&a->p->line[i], option);
	return yes;
}

/* Whether the option is without effect by one of the rows. */
static bool has_no_effect(const struct option_without_effect row[METHOD_WITHOUT_EFFECT], const char *option)
{
	const size_t n = strlen(option);

	for (size_t i = 0; i < METHOD_WITHOUT_EFFECT; i++)
		for (const char *s = row[i].names; row[i].applies && *s; s += strspn(s, " ")) {
			const size_t word = strcspn(s, " ");

			if (word == n && !strncmp(s, option, n))
				return true;
			s += word;
		}
	return false;
}

/* Marks settings that no later line overrides and that have an effect under the other settings. */
static void mark_used(const struct plan *p, const bool match[p->n],
	const struct option_without_effect row[METHOD_WITHOUT_EFFECT])
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; match[i] && k < p->line[i].n; k++) {
			struct setting *s = &p->line[i].setting[k];
			bool last = true;

			for (size_t later = i + 1; later < p->n; later++)
				last &= !match[later] || !setting_of(&p->line[later], s->row->name);
			s->used |= last && !has_no_effect(row, s->row->name);
		}
}

static struct method *make(const struct plan *p, const bool match[p->n],
	struct option_without_effect without_effect[METHOD_WITHOUT_EFFECT])
{
	struct method_options copy = *p->options;
	const struct asked asked = { p, match };
	struct method *m = xalloc(1, sizeof *m);
	bool keep = false;

	for (size_t i = 0; i < p->n; i++) {
		if (!match[i])
			continue;
		enter(p, &p->line[i]);	/* messages about inconsistent settings name the last line */
		keep = p->line[i].keep;
		apply_line(p, &p->line[i], &copy);
	}
	if (!keep) {
		*m = method_make(&copy, counts, &asked);
		method_without_effect(&copy, counts(&asked, "act-mode"), without_effect);
		mark_used(p, match, without_effect);
	}
	m->keep = keep;
	error_prefix(NULL);
	return m;
}

static bool matches(const struct plan_line *l, const char *layer)
{
	return !fnmatch(l->glob + (*l->glob == '/'), layer + (*layer == '/'), 0);
}

const struct method *plan_method(struct plan *p, const char *layer)
{
	bool *match = xalloc(p->n, sizeof *match);
	struct plan_method *m;

	for (size_t i = 0; i < p->n; i++)
		p->line[i].seen |= match[i] = matches(&p->line[i], layer);
	for (size_t i = 0; i < p->methods; i++)
		if (!memcmp(p->method[i].match, match, p->n * sizeof *match)) {
			free(match);
			return p->method[i].method;
		}
	p->method = xgrow(p->method, p->methods + 1, sizeof *p->method);
	m = &p->method[p->methods++];
	*m = (struct plan_method){ .match = match };
	m->method = make(p, match, m->without_effect);
	return m->method;
}

void plan_note(void *plan, const struct layer_ref *layer, size_t in)
{
	const struct plan *p = plan;

	(void)in;
	for (size_t i = 0; i < p->n; i++)
		p->line[i].seen |= matches(&p->line[i], layer->path);
}

void plan_check(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->line[i].seen)
			die("%s:%zu: %s: matches no layer of %s (embeddings and head are included only if "
				"--layers names them)", p->name, p->line[i].number, p->line[i].glob, name);
}

void plan_end(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->line[i].n; k++)
			if (!p->line[i].setting[k].used)
				warn("%s:%zu: without effect here: %s", p->name, p->line[i].number,
					p->line[i].setting[k].row->name);
}

void plan_free(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->line[i].text);
		free((char *)(uintptr_t)p->line[i].glob);
		for (size_t k = 0; k < p->line[i].n; k++)
			free(p->line[i].setting[k].word);
		free(p->line[i].setting);
	}
	for (size_t i = 0; i < p->methods; i++) {
		free(p->method[i].match);
		free(p->method[i].method);
	}
	free(p->line);
	free(p->method);
}
