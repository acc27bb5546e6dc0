/* SPDX-License-Identifier: GPL-3.0-or-later */
/* task_question.c -- questions of items: see task_questions() of task.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/task_private.h"
#include "eval/task_text.h"
#include "text/strip.h"

/* Cleans the choices. Checks them or, if they are letters, the options: none is empty, no two are equal. */
static void check_choices(struct reading *r, bool equal)
{
	json_t *list = json_array(), *shown = r->options, *v, *w;
	size_t i, k;

	json_array_foreach(r->choices, i, v) {
		char *text;

		if (!json_is_string(v))
			die("choice %zu is not a text", i);
		text = r->task->clean ? r->task->clean(json_string_value(v)) :
			xformat("%s", json_string_value(v));
		json_array_append_new(list, json_string(text));
		free(text);
	}
	json_decref(r->choices);
	r->choices = list;
	if (!shown)
		shown = list;
	json_array_foreach(shown, i, v) {
		if (!*strip_begin(json_string_value(v)))
			die("choice %zu is empty", i);
		for (k = 0; k < i && !equal; k++) {
			w = json_array_get(shown, k);
			if (json_equal(v, w))
				die("choices %zu and %zu are equal, '%s': --equal accepts such items", k, i,
					json_string_value(v));
		}
	}
}

/* The subject of an item becomes a member of it, if the task has subjects. */
static const char *set_subject(const struct task_settings *s, json_t *item)
{
	const json_t *member = json_object_get(item, "subject");
	const char *own = json_string_value(member);

	if (!s->task->description)
		return NULL;
	if (member && !own)
		die("'subject' is not a text");
	if ((own && !*own) || (s->subject && !*s->subject))
		die("%s is empty", own && !*own ? "'subject'" : "--subject");
	if (!own && !s->subject)
		die("'subject' is missing, and there is no --subject");
	if (own && s->subject && strcmp(own, s->subject))
		die("'subject' is '%s', expected '%s', that of --subject", own, s->subject);
	if (!own && json_object_set_new(item, "subject", json_string(s->subject)))
		die("--subject is not valid UTF-8");
	return own ? own : s->subject;
}

static struct reading read_item(const struct task_settings *s, json_t *item, bool example)
{
	struct reading r = { .task = s->task, .item = item, .example = example };

	s->task->read(&r);
	if (r.choices)
		check_choices(&r, s->equal || example);
	return r;
}

static void reading_free(struct reading *r)
{
	json_decref(r->choices), json_decref(r->contexts), json_decref(r->options);
	free(r->answer);
}

static char *prompt_of(const struct task *t, const json_t *item)
{
	char *text = task_fill(t->prompt, item), *clean = t->clean ? t->clean(text) : NULL;

	if (!clean)
		return text;
	free(text);
	return clean;
}

/* An example: its prompt, and with its answer. */
struct shot { const char *subject; char *prompt, *text; };

static struct shot *read_shots(const struct task_settings *s)
{
	const size_t n = s->examples ? s->examples->n : 0;
	struct shot *y = xalloc(n, sizeof *y);

	for (size_t i = 0; i < n; i++) {
		json_t *item = s->examples->item[i].json;
		struct reading r;

		items_prefix(s->examples, i);
		y[i].subject = set_subject(s, item);
		r = read_item(s, item, true);
		y[i].prompt = prompt_of(s->task, item);
		y[i].text = xformat("%s %s\n\n", y[i].prompt, r.answer ? r.answer :
			json_string_value(json_array_get(r.choices, r.gold)));
		reading_free(&r);
	}
	error_prefix(NULL);
	return y;
}

/* Description and examples. prompt: of the item. */
static char *begin_context(const struct task_settings *s, const struct shot *shot, const json_t *item,
	const char *subject, const char *prompt)
{
	char *text = s->task->description ? task_fill(s->task->description, item) : xformat("%s", "");
	size_t n = 0;

	for (size_t i = 0; s->examples && n < s->number && i < s->examples->n; i++)
		if (!subject || !strcmp(subject, shot[i].subject)) {
			char *longer = xformat("%s%s", text, shot[i].text);

			if (!strcmp(prompt, shot[i].prompt))
				warn("is also example %zu of %s: its answer is in its prompt", n + 1,
					s->examples->name);
			free(text);
			text = longer;
			n++;
		}
	if (n < s->number)
		die("%s has %zu examples%s%s, expected %zu", s->examples->name, n,
			subject ? " of the subject " : "", subject ? subject : "", s->number);
	return text;
}

static char *name_of(const struct task *t, const char *subject)
{
	char *name = xformat("%s%s%s", t->name, subject ? "_" : "", subject ? subject : "");

	for (char *s = name; *s; s++)
		if (*s == ' ')
			*s = '_';
	return name;
}

static json_t *prefixed(const char *begin, const json_t *texts)
{
	json_t *list = json_array(), *v;
	size_t i;

	json_array_foreach(texts, i, v)
		json_array_append_new(list, json_sprintf("%s%s", begin, json_string_value(v)));
	return list;
}

static json_t *texts_of(const char *const *text)
{
	json_t *list = json_array();

	for (; *text; text++)
		json_array_append_new(list, json_string(*text));
	return list;
}

static json_t *make_question(const struct task_settings *s, const struct shot *shot, json_t *item)
{
	const char *subject = set_subject(s, item);
	struct reading r = read_item(s, item, false);
	char *prompt = prompt_of(s->task, item), *name = name_of(s->task, subject);
	char *begin = begin_context(s, shot, item, subject, prompt);
	json_t *y = json_object();

	json_object_set_new(y, "task", json_string(name));
	if (r.contexts)
		json_object_set_new(y, "contexts", prefixed(begin, r.contexts));
	else
		json_object_set_new(y, "context", json_sprintf("%s%s", begin, prompt));
	if (r.answer) {
		json_object_set_new(y, "answer", json_string(r.answer));
		json_object_set_new(y, "match", json_string(s->task->match));
		json_object_set_new(y, "until", texts_of(s->task->until));
	} else {
		json_object_set_new(y, "choices", prefixed(" ", r.choices));
		json_object_set_new(y, "gold", json_integer((json_int_t)r.gold));
	}
	free(begin), free(prompt), free(name);
	reading_free(&r);
	return y;
}

char *task_questions(const struct task_settings *s, const struct items *items, size_t *n)
{
	struct shot *shot = read_shots(s);
	char *text;
	FILE *to = open_memstream(&text, n);

	if (!to)
		die("not enough memory");
	for (size_t i = 0; i < items->n; i++) {
		json_t *question;
		char *line;

		items_prefix(items, i);
		question = make_question(s, shot, items->item[i].json);
		line = json_dumps(question, 0);
		if (!line || fprintf(to, "%s\n", line) < 0)
			die("not enough memory");
		free(line);
		json_decref(question);
	}
	error_prefix(NULL);
	if (fclose(to))
		die("not enough memory");
	for (size_t i = 0; s->examples && i < s->examples->n; i++)
		free(shot[i].prompt), free(shot[i].text);
	free(shot);
	return text;
}
