/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokenize.c -- see tokenize.h */
#include "import/tokenize.h"
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/history.h"
#include "import/chat.h"
#include "import/source.h"
#include "io/contents.h"
#include "model/config.h"
#include "model/tokens.h"
#include "text/json_lines.h"

/* json: the tokenizer, or NULL. Takes the number of ids from a model's config, and the BOS if the tokenizer
 * has none. c NULL: no config. */
static void describe(struct vocabulary *v, char *json, const struct config *c)
{
	v->json = json;
	if (json) {
		v->t = tokenizer_read(v->name, json);
		v->bos = tokenizer_bos(v->t);
		v->add_bos = v->bos >= 0;
		v->size = c ? c->vocab : tokenizer_vocab(v->t);
		if (c && v->bos < 0)
			v->bos = c->bos;
		return;
	}
	if (!c)
		die("%s: is missing", v->name);
	if (c->vocab != 256)
		die("%s: is missing; without a tokenizer the vocabulary must be 256 bytes, not %zu ids",
			v->name, c->vocab);
	v->size = 256;
	v->bos = c->bos >= 0 ? c->bos : 0;
	v->add_bos = true;
}

static struct vocabulary of_source(const char *path)
{
	struct source *s = source_open(path);
	const struct config c = config_parse(s->config_name, s->text[TEXT_CONFIG]);
	struct vocabulary v = { .path = path, .name = xformat("%s: tokenizer", path) };

	describe(&v, s->text[TEXT_TOKENIZER], &c);
	for (int i = TEXT_TOKENIZER; i < TEXTS; i++) {
		v.text[i] = i == TEXT_TOKENIZER ? NULL : s->text[i];
		s->text[i] = NULL;		/* v owns them now */
	}
	config_free(&c);
	source_close(s);
	return v;
}

struct vocabulary vocabulary_of(const struct part *part, const struct config *c)
{
	struct vocabulary v = { .path = part_name(part), .name = xformat("%s: /tokenizer", part_name(part)) };

	describe(&v, part_has(part, "/tokenizer") ? part_string(part, "/tokenizer") : NULL, c);
	return v;
}

struct vocabulary vocabulary_open(const char *path)
{
	struct vocabulary v;
	struct part *part;

	if (!path)
		return (struct vocabulary){ .path = "--bytes", .size = 256, .add_bos = true };
	if (source_fits(path))
		return of_source(path);
	part = part_open(path, "model");
	if (part_has(part, "/config")) {
		const struct config c = config_read(part);

		v = vocabulary_of(part, &c);
		config_free(&c);
	} else {
		v = vocabulary_of(part, NULL);
	}
	v.path = path;
	v.part = part;
	return v;
}

void vocabulary_close(struct vocabulary *v)
{
	if (v->t)
		tokenizer_close(v->t);
	if (v->part)
		part_close(v->part);
	free(v->name), free(v->json);
	for (int i = 0; i < TEXTS; i++)
		free(v->text[i]);
}

struct encoding vocabulary_ids(const struct vocabulary *v, size_t n, const char text[n], bool special)
{
	struct encoding k = { 0 };

	if (n)
		k = v->t ? tokenizer_encode(v->t, n, text, special) : encoding_of_bytes(n, text);
	for (size_t i = 0; i < k.n; i++)
		if ((size_t)k.id[i] >= v->size)
			die("%s: id %d is not below the %zu of the model's vocabulary", v->name,
				k.id[i], v->size);
	return k;
}

/* Several texts, each a sequence. */
struct texts {
	struct encoding all;
	size_t n, room;
	int64_t *first;			/* [n + 1] */
	bool newline;			/* the last one ends in a newline */
};

/* Doubles the room when it is full, so that many texts take linear time. */
static void add_text(const struct vocabulary *v, struct texts *y, size_t n, const char text[n], bool special)
{
	struct encoding k = vocabulary_ids(v, n, text, special);

	if (y->all.n + k.n > y->room || !y->first) {
		y->room = 2 * (y->all.n + k.n) + 64;
		y->all.id = xgrow(y->all.id, y->room, sizeof *k.id);
		y->all.bytes = xgrow(y->all.bytes, y->room, sizeof *k.bytes);
	}
	y->first = xgrow(y->first, y->n + 2, sizeof *y->first);
	y->first[y->n++] = (int64_t)y->all.n;
	if (k.n) {
		memcpy(y->all.id + y->all.n, k.id, k.n * sizeof *k.id);
		memcpy(y->all.bytes + y->all.n, k.bytes, k.n * sizeof *k.bytes);
	}
	y->all.n += k.n;
	y->first[y->n] = (int64_t)y->all.n;
	y->newline = text[n - 1] == '\n';
	encoding_free(&k);
}

/* Texts that are each ended by NUL. */
static struct texts encode_each(const struct vocabulary *v, const char *name, size_t n, const char text[n],
	bool special)
{
	struct texts y = { 0 };

	for (size_t i = 0, length; i < n; i += length + 1) {
		const char *end = memchr(text + i, '\0', n - i);

		length = end ? (size_t)(end - text) - i : n - i;
		if (!length)
			die("%s: text %zu is empty", name, y.n);
		add_text(v, &y, length, text + i, special);
	}
	return y;
}

/* Conversations, one a line. */
static struct texts encode_conversations(const struct vocabulary *v, const struct chat *c, const char *name,
	size_t n, const char text[n])
{
	struct json_lines lines = { .name = name, .n = n, .text = text, .lists = true,
		.flags = JSON_ALLOW_NUL };
	struct texts y = { 0 };

	for (json_t *conversation; (conversation = json_lines_next(&lines)); json_decref(conversation)) {
		size_t bytes;
		char *made = chat_text(c, conversation, &bytes);

		if (!bytes)
			die("the chat template makes an empty text of this conversation");
		add_text(v, &y, bytes, made, true);
		free(made);
	}
	error_prefix(NULL);
	if (!y.n)
		die("%s: holds no conversation, expected JSON, one per line", name);
	return y;
}

/* Writes ids with what describes them. sequences NULL: one. */
static void write_tokens(const struct vocabulary *v, struct output *out, const struct encoding *k,
	bool newline, const struct texts *sequences, bool add_bos)
{
	output_start(out, 0, 1);
	if (v->part)
		output_history(out, "model", v->part);
	output_write(out, "/tokens", tensor_1d(TENSOR_I32, k->id, k->n));
	tokens_write_digest(out, k->n, k->id);
	tokens_describe(out, v->json, v->bos, add_bos, v->size);
	output_integer(out, "/tokens", "newline", !newline ? NEWLINE_NONE :
		k->bytes[k->n - 1] == 1 ? NEWLINE_ALONE : NEWLINE_WITHIN);
	output_write(out, "/bytes", tensor_1d(TENSOR_U16, k->bytes, k->n));
	if (sequences)
		output_write(out, "/sequence", tensor_1d(TENSOR_I64, sequences->first, sequences->n + 1));
	output_end(out);
	output_close(out);
}

/* Notes the digest of an input, or of a template. */
static void note(const char *what, char *digest)
{
	history_note(what, digest);
	free(digest);
}

void vocabulary_encode(const struct vocabulary *v, const char *path, const char *to, bool special, bool null)
{
	struct output *out = output_open(to, "tokens");
	const char *name = strcmp(path, "-") ? path : "<stdin>";
	size_t n;
	char *text = contents_read(path, SIZE_MAX / 4, &n);
	struct texts texts = { 0 };
	struct encoding k;
	bool newline;

	if (!n)
		die("%s: the text is empty", name);
	if (null)
		texts = encode_each(v, name, n, text, special);
	k = null ? texts.all : vocabulary_ids(v, n, text, special);
	newline = text[n - 1] == '\n';
	note("text-sha256", digest_of(n, text));
	free(text);
	write_tokens(v, out, &k, newline, null ? &texts : NULL, v->add_bos);
	encoding_free(&k);
	free(texts.first);
}

/* The texts of the model. */
static void texts_of(const struct vocabulary *v, char *text[TEXTS])
{
	for (int i = 0; i < TEXTS; i++)
		text[i] = v->part ? part_has(v->part, text_rows[i].path) ?
			part_string(v->part, text_rows[i].path) : NULL : v->text[i];
}

void vocabulary_encode_chat(const struct vocabulary *v, const char *path, const char *to,
	const char *template, const char *date)
{
	struct output *out = output_open(to, "tokens");
	const char *name = strcmp(path, "-") ? path : "<stdin>";
	char *of_model[TEXTS], *text;
	struct texts texts;
	struct chat *c;
	size_t n;

	if (!v->t)
		die("%s: is missing, --chat needs it", v->name);
	texts_of(v, of_model);
	c = chat_open(v->path, of_model, template, date);
	text = contents_read(path, SIZE_MAX / 4, &n);
	texts = encode_conversations(v, c, name, n, text);
	note("text-sha256", digest_of(n, text));
	note("template-sha256", chat_digest(c));
	free(text);
	chat_close(c);
	for (int i = 0; v->part && i < TEXTS; i++)
		free(of_model[i]);
	write_tokens(v, out, &texts.all, texts.newline, &texts, false);	/* the template writes a BOS */
	encoding_free(&texts.all);
	free(texts.first);
}

void vocabulary_decode(const struct vocabulary *v, const char *path, const char *to)
{
	struct contents_output out = contents_create(to);
	struct part *part = part_open(path, "tokens");
	const char *name = part_name(part);
	struct tokens k = tokens_read(part, NULL, v->size, false, 0, 0);
	size_t n;
	char *text;

	if (k.vocab && k.vocab != v->size)
		die("%s: /tokens: made for a vocabulary of %zu, %s has %zu, expected the "
			"model of these tokens", name, k.vocab, v->path, v->size);
	if (v->json)
		tokens_compare(part, v->path, v->json);
	text = k.sequences ? tokenizer_decode_each(v->t, name, k.sequences, k.sequence, k.id, &n) :
		tokenizer_decode(v->t, name, k.n, k.id, &n);
	contents_write(&out, n, text);
	free(text);
	part_close(part);
}
