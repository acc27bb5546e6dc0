/* SPDX-License-Identifier: GPL-3.0-or-later */
/* question.c -- see question.h */
#include "eval/question.h"
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "io/text.h"

static const size_t MOST = (size_t)1 << 30;	/* bytes of a file */

const char *const bos_names[] = { [BOS_AUTO] = "auto", [BOS_YES] = "yes", [BOS_NO] = "no", NULL };

/* Messages are about the line, until error_about(NULL). */
static void enter(const struct questions *q, size_t line)
{
	char *where = xformat("%s:%zu", q->name, line);

	error_about(where);
	free(where);
}

static const char *text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		die("'%s' is %s, expected a text", key, v ? "no text" : "missing");
	return json_string_value(v);
}

static void read_choices(struct question *q)
{
	const json_t *list = json_object_get(q->json, "choices"), *gold = json_object_get(q->json, "gold");

	q->choices = json_array_size(list);
	if (!q->choices)
		die("'choices' is %s, expected an array of texts", !list ? "missing" : "no array, or empty");
	q->choice = xalloc(q->choices, sizeof *q->choice);
	for (size_t i = 0; i < q->choices; i++) {
		q->choice[i] = json_string_value(json_array_get(list, i));
		if (!q->choice[i] || !*q->choice[i])
			die("'choices': number %zu is %s, expected a text", i,
				q->choice[i] ? "empty" : "none");
	}
	if (!json_is_integer(gold) || json_integer_value(gold) < 0 ||
	    (size_t)json_integer_value(gold) >= q->choices)
		die("'gold' is %s, expected the number of a choice, 0 to %zu",
			gold ? "none of them" : "missing", q->choices - 1);
	q->gold = (size_t)json_integer_value(gold);
}

static struct question read_question(size_t n, const char text[n])
{
	json_error_t error;
	struct question q = { .json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error) };
	const json_t *images;

	if (!q.json)
		die("is not valid JSON: %s", error.text);
	if (!json_is_object(q.json))
		die("is no JSON object, expected one a line");
	q.task = text_of(q.json, "task");
	if (!*q.task || !strcmp(q.task, "all"))
		die("'task' is '%s', which names no task: 'all' is the sum of them", q.task);
	q.context = text_of(q.json, "context");
	read_choices(&q);
	images = json_object_get(q.json, "images");
	if (images && !json_is_array(images))
		die("'images' is no array, expected the names of files");
	q.images = json_array_size(images);
	for (size_t i = 0; i < q.images; i++)
		if (!json_is_string(json_array_get(images, i)))
			die("'images': number %zu is no text, expected the name of a file", i);
	return q;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_blank(size_t n, const char text[n])
{
	while (n && is_space(text[n - 1]))
		n--;
	return !n;
}

struct questions questions_read(const char *path, size_t limit)
{
	struct questions q = { .name = strcmp(path, "-") ? path : "<stdin>" };
	size_t n, capacity = 0, line = 0;
	char *text = text_read(path, MOST, &n);

	q.digest = digest_of(n, text);
	for (size_t at = 0, length; at < n && !(limit && q.n == limit); at += length + 1) {
		const char *end = memchr(text + at, '\n', n - at);

		length = end ? (size_t)(end - (text + at)) : n - at;
		line++;
		if (is_blank(length, text + at))
			continue;
		enter(&q, line);
		if (q.n == capacity)
			q.item = xgrow(q.item, capacity = 2 * capacity + 64, sizeof *q.item);
		q.item[q.n] = read_question(length, text + at);
		q.item[q.n].line = line;
		q.choices += q.item[q.n++].choices;
	}
	error_about(NULL);
	if (!q.n)
		die("%s: holds no question, expected JSON objects, one a line", q.name);
	free(text);
	return q;
}

void questions_free(struct questions *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->item[i].choice);
		json_decref(q->item[i].json);
	}
	free(q->item), free(q->digest);
}

static struct encoding encode(const struct encode *e, const char *text)
{
	const struct vocabulary *v = e->v;
	const size_t n = strlen(text);
	struct encoding y = { 0 };

	if (n)
		y = v->t ? tokenizer_encode(v->t, n, text, e->special) : encoding_of_bytes(n, text);
	for (size_t i = 0; i < y.n; i++)
		if ((size_t)y.id[i] >= v->size)
			die("%s: id %d is not below the %zu of the model's vocabulary", v->name, y.id[i],
				v->size);
	return y;
}

/* Behind a BOS, if it is to have one; *n: the tokens of the text. */
static struct stretch encode_context(const struct encode *e, const char *text, size_t *n)
{
	struct encoding k = encode(e, text);
	const bool bos = e->bos == BOS_YES || (e->bos == BOS_AUTO && e->v->add_bos) || !k.n;
	struct stretch y = { .n = bos + k.n, .id = xalloc(bos + k.n, sizeof *y.id) };

	if (bos && e->v->bos < 0)
		die("%s: names no BOS, which a question %s needs", e->v->name,
			k.n ? "under --bos yes" : "without a context");
	if (bos)
		y.id[0] = (int32_t)e->v->bos;
	if (k.n)
		memcpy(y.id + bos, k.id, k.n * sizeof *y.id);
	*n = k.n;
	encoding_free(&k);
	return y;
}

/* What follows the first `skip` tokens of context, choice and end. */
static struct stretch encode_choice(const struct encode *e, const struct question *q, size_t choice,
	const char *end, size_t skip)
{
	char *text = xformat("%s%s%s", q->context, q->choice[choice], end);
	struct encoding k = encode(e, text);
	struct stretch y = { .n = k.n > skip ? k.n - skip : 0 };

	if (!y.n)
		die("choice %zu has no token of its own behind the context", choice);
	y.id = xalloc(y.n, sizeof *y.id);
	memcpy(y.id, k.id + skip, y.n * sizeof *y.id);
	encoding_free(&k);
	free(text);
	return y;
}

static struct prompt encode_question(const struct encode *e, const struct question *q)
{
	const size_t n = q->choices + (e->until != NULL);
	struct prompt p = { .continuations = n, .continuation = xalloc(n, sizeof *p.continuation) };
	size_t length = strlen(q->context), tokens;
	char *context;

	if (q->images)
		die("has images: images need a model with an encoder");
	while (length && is_space(q->context[length - 1]))
		length--;
	context = xformat("%.*s", (int)length, q->context);
	p.context = encode_context(e, context, &tokens);
	for (size_t i = 0; i < q->choices; i++)
		p.continuation[i] = encode_choice(e, q, i, "", tokens);
	if (e->until)
		p.continuation[q->choices] = encode_choice(e, q, q->gold, e->until, tokens);
	free(context);
	return p;
}

struct prompt *questions_encode(const struct questions *q, const struct encode *e)
{
	struct prompt *p = xalloc(q->n, sizeof *p);

	for (size_t i = 0; i < q->n; i++) {
		enter(q, q->item[i].line);
		p[i] = encode_question(e, &q->item[i]);
	}
	error_about(NULL);
	return p;
}
