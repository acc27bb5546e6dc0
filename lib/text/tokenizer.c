/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.c -- reads tokenizer.json; see tokenizer.h
 *
 * It fills struct tokenizer (tokenizer_private.h), which tokenizer_encode.c runs. A part of an unknown type
 * is refused by name.
 *
 * Source: https://github.com/huggingface/tokenizers (the serialization of each part).
 */
#include "text/tokenizer.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/fields.h"
#include "text/patterns.h"
#include "text/tokenizer_private.h"

static int32_t read_id(const struct tokenizer *t, const json_t *v, const char *token)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= INT32_MAX)
		die("%s: token '%s': its id is not a number from 0 to %d", t->name, token, INT32_MAX - 1);
	return (int32_t)json_integer_value(v);
}

static void note_id(struct tokenizer *t, int32_t id)
{
	if ((size_t)id >= t->size)
		t->size = (size_t)id + 1;
}

static int by_id(const void *a, const void *b)
{
	const struct spelled *x = a, *y = b;

	return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : strcmp(x->text, y->text);
}

/* Lists all tokens by their ids. Two tokens with one id are refused: merges are found by id, so they would
 * join characters that have no seam, and the text of the id would not be defined. */
static void list_tokens(struct tokenizer *t)
{
	const struct words *w = &t->bpe.vocab;
	const json_t *array = json_object_get(t->root, "added_tokens");
	size_t n = 0, kept = 0;

	t->token = xalloc(json_object_size(json_object_get(json_object_get(t->root, "model"), "vocab")) +
		t->addeds, sizeof *t->token);
	for (size_t i = 0; i <= w->mask; i++)
		if (w->slot[i].text)
			t->token[n++] = (struct spelled){ w->slot[i].id, w->slot[i].text };
	for (size_t i = 0; i < t->addeds; i++)
		t->token[n++] = (struct spelled){ t->added[i].id,
			json_string_value(json_object_get(json_array_get(array, i), "content")) };
	qsort(t->token, n, sizeof *t->token, by_id);
	for (size_t i = 0; i < n; i++) {
		const struct spelled *s = t->token + i, *last = kept ? t->token + kept - 1 : NULL;

		if (!last || last->id != s->id)
			t->token[kept++] = *s;
		else if (strcmp(last->text, s->text))
			die("%s: two tokens have the id %d, '%s' and '%s'", t->name, s->id, last->text,
				s->text);
	}
	t->tokens = kept;
}

static void read_vocab(struct tokenizer *t, const json_t *model)
{
	const json_t *vocab = field(t->name, model, "vocab", JSON_OBJECT);
	const char *unknown = field_string(t->name, model, "unk_token"), *token;
	json_t *value;

	if (!vocab || !json_object_size(vocab))
		die("%s: model: has no vocab", t->name);
	t->bpe.vocab = words_make(json_object_size(vocab));
	json_object_foreach((json_t *)vocab, token, value) {
		int32_t id = read_id(t, value, token);

		words_put(&t->bpe.vocab, token, strlen(token), id);
		note_id(t, id);
	}
	t->bpe.unknown = unknown ? words_find(&t->bpe.vocab, unknown, strlen(unknown)) : NONE;
	for (int i = 0; i < 256; i++) {
		char code[8];

		snprintf(code, sizeof code, "<0x%02X>", i);
		t->bpe.byte[i] = t->bpe.fallback ? words_find(&t->bpe.vocab, code, strlen(code)) : NONE;
	}
}

/* Finds the two parts of a merge, "a b" or ["a", "b"]; false for any other value. */
static bool merge_parts(const json_t *v, const char *part[2], size_t length[2])
{
	const char *s = json_string_value(v), *gap;

	if (s) {
		gap = strchr(s, ' ');
		if (!gap || strchr(gap + 1, ' '))
			return false;
		part[0] = s;
		length[0] = (size_t)(gap - s);
		part[1] = gap + 1;
	} else {
		part[0] = json_string_value(json_array_get(v, 0));
		part[1] = json_string_value(json_array_get(v, 1));
		if (json_array_size(v) != 2 || !part[0] || !part[1])
			return false;
		length[0] = strlen(part[0]);
	}
	length[1] = strlen(part[1]);
	return length[0] && length[1];
}

static bool is_byte_token(const struct tokenizer *t, int32_t id)
{
	for (int i = 0; i < 256; i++)
		if (t->bpe.byte[i] == id)
			return true;
	return false;
}

static void read_merge(struct tokenizer *t, const json_t *v, size_t rank)
{
	const char *part[2];
	size_t length[2];
	int32_t id[2], whole;
	char *joined;

	if (!merge_parts(v, part, length))
		die("%s: merges: number %zu is neither \"a b\" nor [\"a\", \"b\"]", t->name, rank);
	joined = xformat("%.*s%s", (int)length[0], part[0], part[1]);
	id[0] = words_find(&t->bpe.vocab, part[0], length[0]);
	id[1] = words_find(&t->bpe.vocab, part[1], length[1]);
	whole = words_find(&t->bpe.vocab, joined, strlen(joined));
	if (id[0] < 0 || id[1] < 0 || whole < 0)
		die("%s: merges: number %zu: '%s', or a part of it, is not in the vocab", t->name, rank,
			joined);
	free(joined);
	*merges_slot(&t->bpe.merges, id[0], id[1]) = (struct merge){ id[0], id[1], (int32_t)rank, whole };

	seams_put(t->bpe.seam, part[0], length[0], part[1], length[1]);
	for (int i = 0; i < 2; i++)
		t->bpe.uncut |= id[i] == t->bpe.unknown ||
			(t->bpe.fallback && part[i][0] == '<' && is_byte_token(t, id[i]));
}

static void read_merges(struct tokenizer *t, const json_t *model)
{
	const json_t *merges = field(t->name, model, "merges", JSON_ARRAY);
	size_t n = json_array_size(merges);

	if (!merges || n >= INT32_MAX)
		die("%s: model: has no list of merges", t->name);
	t->bpe.merges = merges_make(n);
	t->bpe.seam = seams_make();
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(merges, i);
		const char *s = json_string_value(v);

		if (!s || strncmp(s, "#version", 8))
			read_merge(t, v, i);
	}
}

static void finder_put(struct tokenizer *t, struct finder *f, const char *s, size_t n, int32_t index)
{
	if (n > ADDED_MAX)
		die("%s: added_tokens: number %d has a text of %zu bytes, expected at most %d", t->name,
			index, n, ADDED_MAX);
	words_put(&f->words, s, n, index);
	f->first[(unsigned char)*s] = true;
	f->length[n] = true;
	if (n > f->longest)
		f->longest = n;
}

static void read_added_token(struct tokenizer *t, const json_t *o, size_t index)
{
	const char *text = json_is_object(o) ? field_string(t->name, o, "content") : NULL;
	struct added *a = t->added + index;

	if (!text || !*text)
		die("%s: added_tokens: number %zu has no content", t->name, index);
	a->id = read_id(t, json_object_get(o, "id"), text);
	a->special = field_flag(t->name, o, "special", false);
	a->lstrip = field_flag(t->name, o, "lstrip", false);
	a->rstrip = field_flag(t->name, o, "rstrip", false);
	a->single_word = field_flag(t->name, o, "single_word", false);
	if (a->single_word && !t->letter)
		t->letter = regex_make(t->name, "[" PATTERN_WORD "]",
			DIALECT_PCRE2);
	note_id(t, a->id);
	if (field_flag(t->name, o, "normalized", !a->special)) {
		struct weighted b = { .room = weighted_room(strlen(text)), .name = t->name }, spare = b;

		weighted_put(&b, strlen(text), text, 0);
		steps_run(&t->normalizer, &b, &spare);
		t->owned[index] = xformat("%.*s", (int)b.n, b.text);
		finder_put(t, &t->normal, t->owned[index], b.n, (int32_t)index);
		weighted_free(&b);
		weighted_free(&spare);
	} else {
		finder_put(t, &t->raw, text, strlen(text), (int32_t)index);
	}
}

static void read_added(struct tokenizer *t)
{
	const json_t *array = field(t->name, t->root, "added_tokens", JSON_ARRAY);

	t->addeds = json_array_size(array);
	t->added = xalloc(t->addeds, sizeof *t->added);
	t->owned = xalloc(t->addeds, sizeof *t->owned);
	t->raw.words = words_make(t->addeds);
	t->normal.words = words_make(t->addeds);
	for (size_t i = 0; i < t->addeds; i++)
		read_added_token(t, json_array_get(array, i), i);
}

/* Reads BOS: the only special token before the text in a TemplateProcessing. */
static void read_template(const char *name, const json_t *o, void *to)
{
	struct tokenizer *t = to;
	const json_t *single = field(name, o, "single", JSON_ARRAY);

	for (size_t i = 0; i < json_array_size(single); i++) {
		const json_t *piece = json_array_get(single, i);
		const json_t *token = json_object_get(piece, "SpecialToken"), *entry, *ids;
		const char *word = json_string_value(json_object_get(token, "id"));

		if (json_object_get(piece, "Sequence"))
			return;
		entry = word ? json_object_get(json_object_get(o, "special_tokens"), word) : NULL;
		ids = json_object_get(entry, "ids");
		if (json_array_size(ids) != 1)
			die("%s: post_processor: number %zu is not a special token with one id", name, i);
		if (t->bos != NONE)
			die("%s: post_processor: puts several tokens before the text, expected one BOS",
				name);
		t->bos = read_id(t, json_array_get(ids, 0), word);
		note_id(t, t->bos);
	}
}

/* ByteLevel changes offsets, but not ids. */
static void read_nothing(const char *name, const json_t *o, void *to)
{
	(void)name, (void)o, (void)to;
}

static const struct field_row processors[] = {
	{ "TemplateProcessing", read_template }, { "ByteLevel", read_nothing }, { NULL, NULL },
};

static void read_bpe(struct tokenizer *t)
{
	const json_t *model = json_object_get(t->root, "model");
	const char *const affix[] = { "continuing_subword_prefix", "end_of_word_suffix" };
	const json_t *dropout = json_object_get(model, "dropout");

	if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
		die("%s: model: dropout makes the ids random, expected null", t->name);
	for (size_t i = 0; i < 2; i++) {
		const char *s = field_string(t->name, model, affix[i]);

		if (s && *s)
			die("%s: model: %s is not supported", t->name, affix[i]);
	}
	t->bpe.fallback = field_flag(t->name, model, "byte_fallback", false);
	t->bpe.fuse_unknown = field_flag(t->name, model, "fuse_unk", false);
	t->bpe.ignore_merges = field_flag(t->name, model, "ignore_merges", false);
	read_vocab(t, model);
	read_merges(t, model);
	t->normalizer = steps_read(t->name, t->root);
	t->pretokenizer = cuts_read(t->name, t->root);
	t->decoder = decoders_read(t->name, t->root);
	read_added(t);
	list_tokens(t);
	field_parts(t->name, t->root, "post_processor", "processors", processors, t);
}

static bool is_bpe(const json_t *root)
{
	const json_t *model = json_object_get(root, "model");
	const char *type = json_string_value(json_object_get(model, "type"));

	/* old files lack it */
	return type ? !strcmp(type, "BPE") :
		json_object_get(model, "merges") && json_object_get(model, "vocab");
}

struct tokenizer *tokenizer_read(const char *name, const char *json)
{
	struct tokenizer *t = xalloc(1, sizeof *t);
	json_error_t error;
	const char *type;

	t->name = name;
	t->bos = NONE;
	t->root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
	if (!t->root)
		die("%s:%d: not valid JSON: %s", name, error.line, error.text);
	if (!json_is_object(t->root) || !json_is_object(json_object_get(t->root, "model")))
		die("%s: is not a tokenizer.json: it has no object named model", name);
	if (!is_bpe(t->root)) {
		type = json_string_value(json_object_get(json_object_get(t->root, "model"), "type"));
		die("%s: a tokenizer of kind %s is not supported, expected BPE", name,
			type ? type : "unknown");
	}
	read_bpe(t);
	return t;
}

void tokenizer_close(struct tokenizer *t)
{
	for (size_t i = 0; i < t->addeds; i++)
		free(t->owned[i]);
	steps_free(&t->normalizer);
	cuts_free(&t->pretokenizer);
	decoders_free(&t->decoder);
	regex_free(t->letter);
	free(t->token);
	free(t->owned);
	free(t->added);
	free(t->bpe.vocab.slot);
	free(t->bpe.merges.slot);
	free(t->raw.words.slot);
	free(t->normal.words.slot);
	free(t->bpe.seam);
	json_decref(t->root);
	free(t);
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
	return t->bos;
}

size_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->size;
}
