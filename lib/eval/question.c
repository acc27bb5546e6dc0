/* SPDX-License-Identifier: GPL-3.0-or-later */
/* question.c -- see question.h */
#include "eval/question.h"
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/nearest.h"
#include "io/contents.h"
#include "text/json_lines.h"
#include "text/strip.h"
#include "vision/image.h"

static const size_t MAX = (size_t)1 << 30;	/* bytes of a file */

const char *const bos_names[] = { [BOS_AUTO] = "auto", [BOS_YES] = "yes", [BOS_NO] = "no", NULL };

/* An array of texts, none of them empty; free() it. */
static const char **texts_of(const json_t *o, const char *key, size_t *n)
{
	const json_t *list = json_object_get(o, key);
	const char **text;

	*n = json_array_size(list);
	if (!*n)
		die("'%s' is %s, expected an array of texts", key,
			!list ? "missing" : "not an array, or empty");
	text = xalloc(*n, sizeof *text);
	for (size_t i = 0; i < *n; i++) {
		text[i] = json_string_value(json_array_get(list, i));
		if (!text[i] || !*text[i])
			die("'%s': number %zu is %s, expected a text", key, i,
				text[i] ? "empty" : "not a text");
	}
	return text;
}

static void read_context(struct question *q)
{
	q->contexts = 1;
	q->context = xalloc(1, sizeof *q->context);
	*q->context = json_member_text(q->json, "context");
}

static void read_answer(struct question *q)
{
	const char *match;
	char *form;

	read_context(q);
	q->answer = json_member_text(q->json, "answer");
	match = json_member_text(q->json, "match");
	q->match = match_of(match);
	if (!q->match) {
		char *names = match_names();

		die("'match' is '%s', expected one of %s", match, names);
	}
	form = match_form(q->match, q->answer);
	if (!*form)
		die("'answer' is empty, expected a text");
	free(form);
	if (json_object_get(q->json, "until"))
		q->until = texts_of(q->json, "until", &q->untils);
}

/* Reads a context for each choice. A single choice is the choice of each context. */
static void read_contexts(struct question *q)
{
	if (json_object_get(q->json, "context") || json_object_get(q->json, "images"))
		die("'contexts' is given with '%s', expected one of them",
			json_object_get(q->json, "context") ? "context" : "images");
	q->context = texts_of(q->json, "contexts", &q->contexts);
	if (q->choices != 1 && q->choices != q->contexts)
		die("'contexts' has %zu texts, 'choices' has %zu: expected as many, or one choice",
			q->contexts, q->choices);
	q->choice = xgrow(q->choice, q->contexts, sizeof *q->choice);
	for (; q->choices < q->contexts; q->choices++)
		q->choice[q->choices] = *q->choice;
}

static void read_choices(struct question *q)
{
	const json_t *gold = json_object_get(q->json, "gold");
	const bool several = json_object_get(q->json, "contexts");

	if (!several)
		read_context(q);
	q->choice = texts_of(q->json, "choices", &q->choices);
	if (several)
		read_contexts(q);
	if (!json_is_integer(gold) || json_integer_value(gold) < 0 ||
	    (size_t)json_integer_value(gold) >= q->choices)
		die("'gold' is %s, expected the number of a choice, 0 to %zu",
			gold ? "not a choice" : "missing", q->choices - 1);
	q->gold = (size_t)json_integer_value(gold);
}

static const struct form {
	const char *tool;		/* that measures these questions */
	const char *key;		/* a member that only they have */
	void (*read)(struct question *q);
	const char *members[7];		/* NULL-terminated */
} forms[] = {
	[QUESTION_CHOICES] = { "eval-choice", "choices", read_choices,
		{ "task", "context", "contexts", "choices", "gold", "images" } },
	[QUESTION_ANSWER] = { "eval-generate", "answer", read_answer,
		{ "task", "context", "answer", "match", "until", "images" } },
};

/* Fatal error for a question of another form. */
static void check_form(enum question_form form, const json_t *question)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (!json_object_get(question, forms[form].key) && json_object_get(question, forms[i].key))
			die("'%s' is missing; a question with '%s' is for %s", forms[form].key,
				forms[i].key, forms[i].tool);
}

/* Adds ignored members to `unknown`. A name close to that of a known member is a fatal error. */
static void check_members(enum question_form form, json_t *question, json_t *unknown)
{
	const char *const *known = forms[form].members;
	const char *key;
	json_t *v;

	json_object_foreach(question, key, v) {
		bool found = false;

		for (size_t i = 0; known[i]; i++)
			found |= !strcmp(key, known[i]);
		for (size_t i = 0; !found && known[i]; i++)
			if (nearest_distance(key, known[i]) <= 1)
				die("'%s' is not a member of a question, expected '%s'", key, known[i]);
		if (!found)
			json_object_set_new(unknown, key, json_null());
	}
}

/* Prints one warning for all ignored members, with the first names. */
static void warn_of(const char *name, json_t *unknown)
{
	enum { NAMED = 5 };
	const size_t n = json_object_size(unknown);
	char *list = xformat("%s", "");
	const char *key;
	size_t k = 0;
	json_t *v;

	json_object_foreach(unknown, key, v) {
		char *longer = xformat("%s%s'%s'", list, k ? ", " : "", key);

		free(list);
		list = longer;
		if (++k == NAMED)
			break;
	}
	if (n > NAMED)
		warn("%s: ignored members: %s and %zu more", name, list, n - NAMED);
	else if (n)
		warn("%s: ignored members: %s", name, list);
	free(list);
}

static struct question read_question(enum question_form form, json_t *json, json_t *unknown)
{
	struct question q = { .json = json };
	const json_t *images;

	check_form(form, q.json);
	check_members(form, q.json, unknown);
	q.task = json_member_text(q.json, "task");
	if (!*q.task || !strcmp(q.task, "all"))
		die("'task' is '%s', expected a name other than 'all', the row of all tasks", q.task);
	forms[form].read(&q);
	images = json_object_get(q.json, "images");
	if (images && !json_is_array(images))
		die("'images' is not an array, expected the names of files");
	q.images = json_array_size(images);
	for (size_t i = 0; i < q.images; i++) {
		const char *name = json_string_value(json_array_get(images, i));

		if (!name || !*name)
			die("'images': number %zu is %s, expected the name of a file", i,
				name ? "empty" : "not a text");
	}
	return q;
}

/* The path of an image, whose name is relative to the folder of the file of questions. */
static char *image_path(const char *file, const char *name)
{
	const char *slash = *name == '/' ? NULL : strrchr(file, '/');

	return xformat("%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, name);
}

/* Adds the images of a question to the digest, which is made with the first one. */
static void digest_images(const char *file, const struct question *q, struct digest **d)
{
	const json_t *names = json_object_get(q->json, "images");

	for (size_t i = 0; i < q->images; i++) {
		char *path = image_path(file, json_string_value(json_array_get(names, i)));
		size_t n;
		char *bytes = contents_read(path, IMAGE_BYTES, &n);

		if (!*d)
			*d = digest_begin();
		digest_add(*d, n, bytes);
		free(path), free(bytes);
	}
}

struct questions questions_read(const char *path, size_t limit, enum question_form form)
{
	struct questions q = { .name = strcmp(path, "-") ? path : "<stdin>" };
	struct digest *images = NULL;
	size_t n, capacity = 0;
	json_t *unknown = json_object(), *json;
	char *text = contents_read(path, MAX, &n);
	struct json_lines lines = { .name = q.name, .n = n, .text = text };

	q.digest = digest_of(n, text);
	while (!(limit && q.n == limit) && (json = json_lines_next(&lines))) {
		if (q.n == capacity)
			q.item = xgrow(q.item, capacity = 2 * capacity + 64, sizeof *q.item);
		q.item[q.n] = read_question(form, json, unknown);
		q.item[q.n].line = lines.line;
		digest_images(q.name, &q.item[q.n], &images);
		q.contexts += q.item[q.n].contexts;
		q.choices += q.item[q.n++].choices;
	}
	error_prefix(NULL);
	if (!q.n)
		die("%s: holds no question, expected JSON objects, one per line", q.name);
	warn_of(q.name, unknown);
	q.images = images ? digest_end(images) : NULL;
	json_decref(unknown);
	free(text);
	return q;
}

void questions_free(struct questions *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->item[i].choice), free(q->item[i].context), free(q->item[i].until);
		json_decref(q->item[i].json);
	}
	free(q->item), free(q->digest), free(q->images), free(q->settings);
}

/* The tokens of a context, with a BOS if it gets one. *n: number of tokens of the text. */
static struct prompt_tokens encode_context(const struct encode *e, const char *text, bool special, size_t *n)
{
	struct encoding k = vocabulary_ids(e->v, strlen(text), text, special);
	const bool bos = e->bos == BOS_YES || (e->bos == BOS_AUTO && e->v->add_bos) || !k.n;
	struct prompt_tokens y = { .n = bos + k.n, .id = xalloc(bos + k.n, sizeof *y.id) };

	if (bos && e->v->bos < 0)
		die("%s: has no BOS, which a question %s needs", e->v->name,
			k.n ? "under --bos yes" : "without a context");
	if (bos)
		y.id[0] = (int32_t)e->v->bos;
	if (k.n)
		memcpy(y.id + bos, k.id, k.n * sizeof *y.id);
	*n = k.n;
	encoding_free(&k);
	return y;
}

/* The tokens of context, choice and end, without the first `skip`. */
static struct prompt_tokens encode_choice(const struct encode *e, const struct question *q,
	const char *context, size_t choice, const char *end, size_t skip)
{
	char *text = xformat("%s%s%s", context, q->choice[choice], end);
	struct encoding k = vocabulary_ids(e->v, strlen(text), text, e->special || q->images);
	struct prompt_tokens y = { .n = k.n > skip ? k.n - skip : 0 };

	if (!y.n)
		die("choice %zu has no token after the context", choice);
	y.id = xalloc(y.n, sizeof *y.id);
	memcpy(y.id, k.id + skip, y.n * sizeof *y.id);
	for (size_t i = 0; e->config->vision.class && i < y.n; i++)
		if (y.id[i] == e->config->vision.placeholder)
			die("choice %zu has a placeholder of an image, expected it in the context only",
				choice);
	encoding_free(&k);
	free(text);
	return y;
}

/* Adds an image. file: of the questions. first: its first token. Returns its number of tokens. */
static size_t add_image(const struct encode *e, const struct processor *processor, const struct question *q,
	const char *file, const char *name, size_t first)
{
	char *path = image_path(file, name);
	const struct image image = image_extents(path);
	struct token_image y = vision_image(e->config, processor, path, image.h, image.w);
	struct prompt_images *all = e->images;

	y.number = all->n, y.first = first, y.path = path, y.line = q->line;
	all->image = xgrow(all->image, all->n + 1, sizeof *all->image);
	all->image[all->n++] = y;
	return y.n;
}

/* Sets multimodal rotary positions of the context and the continuations. */
static void place_context(const struct encode *e, struct prompt *p, size_t images)
{
	const struct token_image *image = e->images->image + e->images->n - images;
	const size_t past = p->context.n;

	for (size_t k = 0; k < p->continuations; k++) {
		struct prompt_tokens *c = &p->continuation[k];
		int32_t (*position)[AXES] = xalloc(past + c->n, sizeof *position);

		vision_positions(e->config, past + c->n, position, 0, images, image);
		c->position = xalloc(c->n, sizeof *position);
		memcpy(c->position, position + past, c->n * sizeof *position);
		if (!k) {
			p->context.position = xalloc(past, sizeof *position);
			memcpy(p->context.position, position, past * sizeof *position);
		}
		free(position);
	}
}

/* Replaces each placeholder by as many tokens as its image has. */
static void put_images(const struct encode *e, const struct processor *processor, const struct question *q,
	const char *file, struct prompt *p)
{
	const json_t *names = json_object_get(q->json, "images");
	const struct prompt_tokens old = p->context;
	struct prompt_tokens y = { 0 };
	size_t image = 0;

	for (size_t i = 0; i < old.n; i++)
		image += old.id[i] == e->config->vision.placeholder;
	if (image != q->images)
		die("'context' has %zu placeholders of images (id %d), 'images' has %zu", image,
			e->config->vision.placeholder, q->images);
	image = 0;
	for (size_t i = 0; i < old.n; i++) {
		const bool visual = old.id[i] == e->config->vision.placeholder;
		size_t n = 1;

		if (visual)
			n = add_image(e, processor, q, file,
				json_string_value(json_array_get(names, image++)), y.n);
		y.id = xgrow(y.id, y.n + n, sizeof *y.id);
		y.feature = xgrow(y.feature, y.n + n, sizeof *y.feature);
		for (const size_t end = y.n + n; y.n < end; y.n++) {
			y.id[y.n] = old.id[i];
			y.feature[y.n] = visual ? (int64_t)e->images->features++ : -1;
		}
	}
	free(old.id);
	p->context = y;
	if (config_last(e->config)->axes == AXES)
		place_context(e, p, q->images);
	if (e->aifs)
		prompt_visual_first(p, AXES);
}

/* Fatal error if the context of a question without images has a placeholder, even if special tokens are not
 * recognized. */
static void check_words(const struct encode *e, const char *context)
{
	struct encoding k = { 0 };

	if (e->config->vision.class)
		k = vocabulary_ids(e->v, strlen(context), context, true);
	for (size_t i = 0; i < k.n; i++)
		if (k.id[i] == e->config->vision.placeholder)
			die("'context' has a placeholder of an image (id %d), 'images' has none", k.id[i]);
	encoding_free(&k);
}

/* The prompt of a context with its choices. */
static struct prompt encode_prompt(const struct encode *e, const struct processor *processor,
	const struct question *q, size_t number, const char *file)
{
	const char *whole = q->context[number];
	const size_t first = q->contexts > 1 ? number : 0, choices = q->contexts > 1 ? 1 : q->choices;
	const bool ends = e->until && q->gold >= first && q->gold < first + choices;
	const size_t n = q->answer ? 1 : choices + ends;
	struct prompt p = { .continuations = n, .continuation = xalloc(n, sizeof *p.continuation) };
	const size_t length = q->answer ? strlen(whole) : strip_end(whole);
	char *context = xformat("%.*s", (int)length, whole);
	size_t tokens;

	if (q->images && !e->config->vision.class)
		die("has images, expected none: the model has no encoder of images");
	p.context = encode_context(e, context, e->special || q->images, &tokens);
	if (!q->images)
		check_words(e, context);
	for (size_t i = 0; i < choices && !q->answer; i++)
		p.continuation[i] = encode_choice(e, q, whole, first + i, "", tokens);
	if (ends)
		p.continuation[choices] = encode_choice(e, q, whole, q->gold, e->until, tokens);
	if (q->answer)
		p.continuation->n = e->room;
	if (q->images)
		put_images(e, processor, q, file, &p);
	for (size_t i = 0; i < n && !q->answer && e->config->positions; i++)
		if (p.continuation[i].n > e->config->positions)
			die("a choice has %zu tokens, expected at most the %zu positions of the model",
				p.continuation[i].n, e->config->positions);
	if (q->answer && e->config->positions && p.context.n >= e->config->positions)
		die("'context' has %zu tokens, expected fewer than the %zu positions of the model",
			p.context.n, e->config->positions);
	free(context);
	return p;
}

struct prompt *questions_encode(const struct questions *q, const struct encode *e)
{
	struct prompt *p = xalloc(q->contexts, sizeof *p);
	struct processor processor = { 0 };
	bool images = false;

	for (size_t i = 0; i < q->n; i++)
		images |= q->item[i].images != 0;
	if (images && e->config->vision.class)
		processor = processor_of(e->model);
	for (size_t i = 0, n = 0; i < q->n; i++) {
		json_lines_prefix(q->name, q->item[i].line);
		for (size_t k = 0; k < q->item[i].contexts; k++)
			p[n++] = encode_prompt(e, &processor, &q->item[i], k, q->name);
	}
	error_prefix(NULL);
	return p;
}
