/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.c -- reading tokenizer.json; see tokenizer.h
 *
 * It fills struct tokenizer (encode.h), which encode.c runs. A part of an unknown type is refused, by name.
 *
 * Source: https://github.com/huggingface/tokenizers (the serialization of each part).
 */
#include "text/tokenizer.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/encode.h"

enum { SEQUENCE_DEPTH = 16 };	/* Sequences within each other; more are refused */

static const json_t *absent(const json_t *v)
{
	return json_is_null(v) ? NULL : v;
}

/* A member of an object, which must have that type; NULL if there is none, or it is null. */
static const json_t *member(const struct tokenizer *t, const json_t *o, const char *key, json_type type)
{
	static const char *const names[] = { [JSON_OBJECT] = "object", [JSON_ARRAY] = "array",
		[JSON_STRING] = "string", [JSON_INTEGER] = "whole number" };
	const json_t *v = absent(json_object_get(o, key));

	if (v && json_typeof(v) != type)
		die("%s: %s: has a value that is not of type %s", t->name, key, names[type]);
	return v;
}

static bool flag(const struct tokenizer *t, const json_t *o, const char *key, bool otherwise)
{
	const json_t *v = absent(json_object_get(o, key));

	if (v && !json_is_boolean(v))
		die("%s: %s: is neither true nor false", t->name, key);
	return v ? json_is_true(v) : otherwise;
}

static const char *string(const struct tokenizer *t, const json_t *o, const char *key)
{
	return json_string_value(member(t, o, key, JSON_STRING));
}

static const char *required_string(const struct tokenizer *t, const json_t *o, const char *key)
{
	const char *s = string(t, o, key);

	if (!s || !*s)
		die("%s: %s: expected a string that is not empty", t->name, key);
	return s;
}

static const char *type_of(const struct tokenizer *t, const json_t *o, const char *what)
{
	const char *type;

	if (!json_is_object(o))
		die("%s: %s: is not an object", t->name, what);
	type = string(t, o, "type");
	if (!type)
		die("%s: %s: has no type", t->name, what);
	return type;
}

static void read_prepend(struct tokenizer *t, const json_t *o)
{
	struct step *s = steps_add(&t->normalizer);

	step_strings(s, "", required_string(t, o, "prepend"));
	s->run = step_prepend;
}

static void read_replace(struct tokenizer *t, const json_t *o)
{
	const json_t *pattern = member(t, o, "pattern", JSON_OBJECT);
	struct step *s;

	if (!pattern || !json_object_get(pattern, "String"))
		die("%s: normalizer Replace: expected a pattern of kind String", t->name);
	s = steps_add(&t->normalizer);
	step_strings(s, required_string(t, pattern, "String"), required_string(t, o, "content"));
	s->run = step_replace;
}

static void read_metaspace(struct tokenizer *t, const json_t *o)
{
	const char *scheme = string(t, o, "prepend_scheme");
	const char *replacement = required_string(t, o, "replacement");
	struct step *s = steps_add(&t->pretokenizer);

	if (!flag(t, o, "add_prefix_space", true))
		scheme = "never";
	if (!scheme || !strcmp(scheme, "always"))
		s->scheme = SCHEME_ALWAYS;
	else if (!strcmp(scheme, "first"))
		s->scheme = SCHEME_FIRST;
	else if (!strcmp(scheme, "never"))
		s->scheme = SCHEME_NEVER;
	else
		die("%s: Metaspace: prepend_scheme %s is none of always, first, never", t->name, scheme);
	step_strings(s, " ", replacement);
	s->run = step_metaspace;
	if (flag(t, o, "split", true)) {
		if (t->delimiter)
			die("%s: two pre-tokenizers split the text, expected one", t->name);
		t->delimiter = xformat("%s", replacement);
	}
}

/* A list of parts, which are known by their types. A part of type Sequence holds a list of others. */
struct pipeline {
	const char *name, *list;
	struct reader { const char *type; void (*read)(struct tokenizer *t, const json_t *o); } reader[3];
};

static const struct pipeline
	normalizer = { "normalizer", "normalizers",
		{ { "Prepend", read_prepend }, { "Replace", read_replace } } },
	pretokenizer = { "pre_tokenizer", "pretokenizers", { { "Metaspace", read_metaspace } } };

static void read_pipeline(struct tokenizer *t, const struct pipeline *p, const json_t *o, int depth)
{
	const char *type;

	if (!absent(o))
		return;
	type = type_of(t, o, p->name);
	if (!strcmp(type, "Sequence")) {
		const json_t *array = member(t, o, p->list, JSON_ARRAY);

		if (!array || depth > SEQUENCE_DEPTH)
			die("%s: %s: a Sequence has no list of %s, or is nested too deeply",
				t->name, p->name, p->list);
		for (size_t i = 0; i < json_array_size(array); i++)
			read_pipeline(t, p, json_array_get(array, i), depth + 1);
		return;
	}
	for (const struct reader *r = p->reader; r->type; r++)
		if (!strcmp(r->type, type)) {
			r->read(t, o);
			return;
		}
	die("%s: %s %s is not supported", t->name, p->name, type);
}

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

static int by_number(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* Merges are found by id: with one id for two strings, they would join characters that have no seam. */
static void check_ids(const struct tokenizer *t, size_t n)
{
	int32_t *id = xalloc(n, sizeof *id);
	size_t k = 0;

	for (size_t i = 0; i <= t->vocab.mask; i++)
		if (t->vocab.slot[i].text)
			id[k++] = t->vocab.slot[i].id;
	qsort(id, n, sizeof *id, by_number);
	for (size_t i = 1; i < n; i++)
		if (id[i] == id[i - 1])
			die("%s: vocab: two tokens have the id %d", t->name, id[i]);
	free(id);
}

static void read_vocab(struct tokenizer *t, const json_t *model)
{
	const json_t *vocab = member(t, model, "vocab", JSON_OBJECT);
	const char *unknown = string(t, model, "unk_token"), *token;
	json_t *value;

	if (!vocab || !json_object_size(vocab))
		die("%s: model: has no vocab", t->name);
	t->vocab = words_make(json_object_size(vocab));
	json_object_foreach((json_t *)vocab, token, value) {
		int32_t id = read_id(t, value, token);

		words_put(&t->vocab, token, strlen(token), id);
		note_id(t, id);
	}
	check_ids(t, json_object_size(vocab));
	t->unknown = unknown ? words_find(&t->vocab, unknown, strlen(unknown)) : NONE;
	for (int i = 0; i < 256; i++) {
		char code[8];

		snprintf(code, sizeof code, "<0x%02X>", i);
		t->byte[i] = t->fallback ? words_find(&t->vocab, code, strlen(code)) : NONE;
	}
}

/* The two parts of a merge, "a b" or ["a", "b"]; false if it is neither. */
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
		if (t->byte[i] == id)
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
	id[0] = words_find(&t->vocab, part[0], length[0]);
	id[1] = words_find(&t->vocab, part[1], length[1]);
	whole = words_find(&t->vocab, joined, strlen(joined));
	if (id[0] < 0 || id[1] < 0 || whole < 0)
		die("%s: merges: number %zu: '%s', or a part of it, is not in the vocab", t->name, rank,
			joined);
	free(joined);
	*merges_slot(&t->merges, id[0], id[1]) = (struct merge){ id[0], id[1], (int32_t)rank, whole };

	seams_put(t->seam, part[0], length[0], part[1], length[1]);
	for (int i = 0; i < 2; i++)
		t->uncut |= id[i] == t->unknown ||
			(t->fallback && part[i][0] == '<' && is_byte_token(t, id[i]));
}

static void read_merges(struct tokenizer *t, const json_t *model)
{
	const json_t *merges = member(t, model, "merges", JSON_ARRAY);
	size_t n = json_array_size(merges);

	if (!merges || n >= INT32_MAX)
		die("%s: model: has no list of merges", t->name);
	t->merges = merges_make(n);
	t->seam = seams_make();
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(merges, i);
		const char *s = json_string_value(v);

		if (!s || strncmp(s, "#version", 8))
			read_merge(t, v, i);
	}
}

static void finder_put(struct tokenizer *t, struct finder *f, const char *s, size_t n, int32_t index)
{
	if (n > ADDED_MOST)
		die("%s: added_tokens: number %d has a text of %zu bytes, expected at most %d", t->name,
			index, n, ADDED_MOST);
	words_put(&f->words, s, n, index);
	f->first[(unsigned char)*s] = true;
	f->length[n] = true;
	if (n > f->longest)
		f->longest = n;
}

static void read_added_token(struct tokenizer *t, const json_t *o, size_t index)
{
	const char *text = json_is_object(o) ? string(t, o, "content") : NULL;
	struct added *a = t->added + index;

	if (!text || !*text)
		die("%s: added_tokens: number %zu has no content", t->name, index);
	a->id = read_id(t, json_object_get(o, "id"), text);
	a->special = flag(t, o, "special", false);
	a->lstrip = flag(t, o, "lstrip", false);
	a->rstrip = flag(t, o, "rstrip", false);
	if (flag(t, o, "single_word", false))
		die("%s: added_tokens: '%s': single_word is not supported", t->name, text);
	note_id(t, a->id);
	if (flag(t, o, "normalized", !a->special)) {
		struct weighted b = { 0 }, spare = { 0 };

		weighted_put(&b, strlen(text), text, 0);
		steps_run(&t->normalizer, &b, &spare, true);
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
	const json_t *array = member(t, t->root, "added_tokens", JSON_ARRAY);

	t->addeds = json_array_size(array);
	t->added = xalloc(t->addeds, sizeof *t->added);
	t->owned = xalloc(t->addeds, sizeof *t->owned);
	t->raw.words = words_make(t->addeds);
	t->normal.words = words_make(t->addeds);
	for (size_t i = 0; i < t->addeds; i++)
		read_added_token(t, json_array_get(array, i), i);
}

/* Reads BOS: the one special token before the text in a TemplateProcessing. */
static void read_template(struct tokenizer *t, const json_t *o)
{
	const json_t *single = member(t, o, "single", JSON_ARRAY);

	for (size_t i = 0; i < json_array_size(single); i++) {
		const json_t *piece = json_array_get(single, i);
		const json_t *token = json_object_get(piece, "SpecialToken"), *entry, *ids;
		const char *name = json_string_value(json_object_get(token, "id"));

		if (json_object_get(piece, "Sequence"))
			return;
		entry = name ? json_object_get(json_object_get(o, "special_tokens"), name) : NULL;
		ids = json_object_get(entry, "ids");
		if (json_array_size(ids) != 1)
			die("%s: post_processor: number %zu is not a special token with one id", t->name, i);
		if (t->bos != NONE)
			die("%s: post_processor: puts several tokens before the text, expected one BOS",
				t->name);
		t->bos = read_id(t, json_array_get(ids, 0), name);
		note_id(t, t->bos);
	}
}

static const struct pipeline processor =
	{ "post_processor", "processors", { { "TemplateProcessing", read_template } } };

static void read_bpe(struct tokenizer *t)
{
	const json_t *model = json_object_get(t->root, "model");
	const char *const affix[] = { "continuing_subword_prefix", "end_of_word_suffix" };
	const json_t *dropout = absent(json_object_get(model, "dropout"));

	if (dropout && json_number_value(dropout) != 0)
		die("%s: model: dropout makes the ids random, expected null", t->name);
	for (size_t i = 0; i < 2; i++) {
		const char *s = string(t, model, affix[i]);

		if (s && *s)
			die("%s: model: %s is not supported", t->name, affix[i]);
	}
	t->fallback = flag(t, model, "byte_fallback", false);
	t->fuse_unknown = flag(t, model, "fuse_unk", false);
	t->ignore_merges = flag(t, model, "ignore_merges", false);
	read_vocab(t, model);
	read_merges(t, model);
	read_pipeline(t, &normalizer, json_object_get(t->root, "normalizer"), 0);
	read_pipeline(t, &pretokenizer, json_object_get(t->root, "pre_tokenizer"), 0);
	read_added(t);
	read_pipeline(t, &processor, json_object_get(t->root, "post_processor"), 0);
}

/* Whether a part of the pipeline, or one in its Sequences, is of that type. */
static bool mentions(const json_t *o, const char *type, int depth)
{
	const char *s = json_string_value(json_object_get(o, "type"));
	const char *key;
	json_t *v;

	if (s && !strcmp(s, type))
		return true;
	if (s && !strcmp(s, "Sequence") && depth < SEQUENCE_DEPTH)
		json_object_foreach((json_t *)o, key, v)
			for (size_t i = 0; i < json_array_size(v); i++)
				if (mentions(json_array_get(v, i), type, depth + 1))
					return true;
	return false;
}

static bool is_byte_level(const json_t *root)
{
	static const char *const places[] = { "pre_tokenizer", "decoder", "normalizer" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (mentions(json_object_get(root, places[i]), "ByteLevel", 0))
			return true;
	return false;
}

static bool is_bpe(const json_t *root)
{
	const json_t *model = json_object_get(root, "model");
	const char *type = json_string_value(json_object_get(model, "type"));

	/* old files have no type */
	return type ? !strcmp(type, "BPE") :
		json_object_get(model, "merges") && json_object_get(model, "vocab");
}

/* The first row that fits is the kind; read NULL: it is known, but not supported yet. */
static const struct kind {
	const char *name;
	bool (*is)(const json_t *root);
	void (*read)(struct tokenizer *t);
} kinds[] = {
	{ "byte-level (GPT-2, Llama 3, Qwen)", is_byte_level, NULL },
	{ "SentencePiece-style BPE", is_bpe, read_bpe },
	{ NULL, NULL, NULL },
};

static _Noreturn void refuse(const struct tokenizer *t, const struct kind *k)
{
	const char *type = json_string_value(json_object_get(json_object_get(t->root, "model"), "type"));

	die("%s: a tokenizer of kind %s is not supported; %s is", t->name,
		k->name ? k->name : type ? type : "unknown", kinds[1].name);
}

struct tokenizer *tokenizer_read(const char *name, const char *json)
{
	struct tokenizer *t = xalloc(1, sizeof *t);
	const struct kind *k = kinds;
	json_error_t error;

	t->name = name;
	t->bos = NONE;
	t->root = json_loads(json, 0, &error);
	if (!t->root)
		die("%s:%d: not valid JSON: %s", name, error.line, error.text);
	if (!json_is_object(t->root) || !json_is_object(json_object_get(t->root, "model")))
		die("%s: is not a tokenizer.json: it has no object named model", name);
	while (k->is && !k->is(t->root))
		k++;
	if (!k->read)
		refuse(t, k);
	k->read(t);
	return t;
}

void tokenizer_close(struct tokenizer *t)
{
	for (size_t i = 0; i < t->addeds; i++)
		free(t->owned[i]);
	steps_free(&t->normalizer);
	steps_free(&t->pretokenizer);
	free(t->owned);
	free(t->added);
	free(t->delimiter);
	free(t->vocab.slot);
	free(t->merges.slot);
	free(t->raw.words.slot);
	free(t->normal.words.slot);
	free(t->seam);
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
