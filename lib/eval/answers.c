/* SPDX-License-Identifier: GPL-3.0-or-later */
/* answers.c -- see answers.h */
#include "eval/answers.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "eval/mark.h"
#include "text/utf8.h"

_Static_assert((int)MATCH_FILTERS <= MARKS, "a table has room for all marks");

static const char member[] = "/question/tokens";	/* numbers of ids */

struct part *answers_open_earlier(const char *path, const struct questions *q)
{
	return marks_open_earlier(path, q, "eval-generate", member);
}

size_t answers_ends(const struct part *model, const struct config *c, int32_t end[EOS])
{
	static const char path[] = "/generation_config";
	char *text = part_has(model, path) ? part_string(model, path) : NULL;
	json_error_t error;
	json_t *all = text ? json_loads(text, 0, &error) : NULL;
	const json_t *eos = json_object_get(all, "eos_token_id");
	const size_t listed = json_is_array(eos) ? json_array_size(eos) : 1;
	size_t n = 0;

	if (text && !json_is_object(all))
		die("%s: %s: is not a JSON object", part_name(model), path);
	if (eos && !json_is_null(eos)) {
		if (listed > EOS)
			die("%s: %s: 'eos_token_id' lists %zu ids, expected at most %d", part_name(model),
				path, listed, EOS);
		for (size_t i = 0; i < listed; i++) {
			const json_t *id = json_is_array(eos) ? json_array_get(eos, i) : eos;

			if (!json_is_integer(id))
				die("%s: %s: 'eos_token_id' is not an id", part_name(model), path);
			if (json_integer_value(id) >= 0 && json_integer_value(id) <= INT32_MAX)
				end[n++] = (int32_t)json_integer_value(id);
		}
	} else {
		for (; n < c->eos_count; n++)
			end[n] = (int32_t)c->eos[n];
	}
	json_decref(all);
	free(text);
	return n;
}

/* The text of ids as valid UTF-8 without NUL: other bytes become U+FFFD. free() it. */
static char *text_of(const struct vocabulary *v, size_t n, const int32_t id[n])
{
	size_t length = 0, to = 0;
	char *raw = n ? tokenizer_decode(v->t, v->name, n, id, &length) : NULL;
	char *y = xalloc(3 * length + 1, 1);

	for (size_t i = 0, k; i < length; i += k) {
		bool valid;

		k = utf8_character(raw + i, length - i, &valid);
		valid &= raw[i] != '\0';
		memcpy(y + to, valid ? raw + i : UTF8_REPLACEMENT, valid ? k : 3);
		to += valid ? k : 3;
	}
	free(raw);
	return y;
}

/* The first place of a text that ends the answer, or NULL. */
static char *end_of(const struct answers_until *u, const struct question *q, char *text)
{
	char *first = u->more ? strstr(text, u->more) : NULL;

	for (size_t i = 0; i < q->untils; i++) {
		char *at = strstr(text, q->until[i]);

		first = at && (!first || at < first) ? at : first;
	}
	return first;
}

bool answers_stop(void *arg, size_t question, size_t n, const int32_t id[n])
{
	const struct answers_until *u = arg;
	const struct question *q = &u->questions->item[question];
	bool found;
	char *text;

	if (!q->untils && !u->more)
		return false;
	text = text_of(u->v, n, id);
	found = end_of(u, q, text) != NULL;
	free(text);
	return found;
}

/* Whether the text of the first n tokens is the answer, for any n. */
static bool begins(const struct answers_until *u, const struct question *q, const struct generated *g,
	const char *right)
{
	bool same = false;

	for (size_t n = 0; !same && n <= g->n; n++) {
		char *text = text_of(u->v, n, g->id), *end = end_of(u, q, text), *form;

		if (end)
			*end = '\0';
		form = match_form(q->match, text);
		same = !strcmp(form, right);
		free(text), free(form);
	}
	return same;
}

static void take(struct answers *a, const struct answers_until *u, size_t i)
{
	const struct question *q = &a->questions->item[i];
	char *right = match_form(q->match, q->answer), *end;

	a->text[i] = text_of(u->v, a->generated[i].n, a->generated[i].id);
	end = end_of(u, q, a->text[i]);
	if (end)
		*end = '\0';
	for (int f = 0; f < MATCH_FILTERS; f++) {
		a->taken[f][i] = match_take(q->match, f, a->text[i]);
		a->mark[f][i] = !strcmp(a->taken[f][i], right);
	}
	if (q->match->tokens)
		a->mark[MATCH_FLEXIBLE][i] = begins(u, q, &a->generated[i], right);
	free(right);
}

struct answers answers_of(const struct answers_until *u, struct generated *generated)
{
	const size_t n = u->questions->n;
	struct answers a = { .questions = u->questions, .generated = generated,
		.text = xalloc(n, sizeof *a.text) };

	for (int f = 0; f < MATCH_FILTERS; f++) {
		a.taken[f] = xalloc(n, sizeof *a.taken[f]);
		a.mark[f] = xalloc(n, sizeof *a.mark[f]);
	}
	for (size_t i = 0; i < n; i++)
		take(&a, u, i);
	return a;
}

void answers_free(struct answers *a)
{
	for (size_t i = 0; i < a->questions->n; i++) {
		free(a->generated[i].id), free(a->text[i]);
		for (int f = 0; f < MATCH_FILTERS; f++)
			free(a->taken[f][i]);
	}
	free(a->generated), free(a->text);
	for (int f = 0; f < MATCH_FILTERS; f++)
		free(a->taken[f]), free(a->mark[f]);
}

static void marks_of(const struct answers *a, struct mark mark[MATCH_FILTERS])
{
	for (int f = 0; f < MATCH_FILTERS; f++)
		mark[f] = (struct mark){ match_filters[f], a->mark[f], NULL };
}

struct table answers_table(const struct answers *a, const struct part *before)
{
	struct mark mark[MATCH_FILTERS];

	marks_of(a, mark);
	return marks_table(a->questions, MATCH_FILTERS, mark, before, NULL);
}

/* Writes the ids of all answers, one after the other, and their numbers and ends. */
static void write_ids(struct output *out, const struct answers *a)
{
	const size_t n = a->questions->n;
	int32_t *tokens = xalloc(n, sizeof *tokens), *end = xalloc(n, sizeof *end), *id;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		tokens[i] = (int32_t)a->generated[i].n;
		end[i] = (int32_t)a->generated[i].end;
		total += a->generated[i].n;
	}
	id = xalloc(total, sizeof *id);
	for (size_t i = 0; i < n; at += a->generated[i++].n)
		if (tokens[i])
			memcpy(id + at, a->generated[i].id, a->generated[i].n * sizeof *id);
	output_write(out, member, tensor_1d(TENSOR_I32, tokens, n));
	output_write(out, "/question/end", tensor_1d(TENSOR_I32, end, n));
	output_write(out, "/token/id", tensor_1d(TENSOR_I32, id, total));
	free(tokens), free(end), free(id);
}

void answers_write(struct output *out, const struct answers *a, const struct table *t)
{
	const size_t n = a->questions->n;
	struct mark mark[MATCH_FILTERS];

	if (!out)
		return;
	marks_of(a, mark);
	marks_write(out, a->questions, MATCH_FILTERS, mark);
	write_ids(out, a);
	output_strings(out, "/question/text", n, (const char *const *)a->text);
	for (int f = 0; f < MATCH_FILTERS; f++) {
		char *path = xformat("/question/%s_taken", match_filters[f]);

		output_strings(out, path, n, (const char *const *)a->taken[f]);
		free(path);
	}
	table_write(t, out);
}
