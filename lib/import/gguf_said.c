/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_said.c -- see gguf_said.h */
#include "import/gguf_said.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_said_private.h"
#include "import/gguf_table.h"

static const char *word(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

bool gguf_step_is(const json_t *part, const char *type)
{
	const char *name = word(part, "type");

	return name && !strcmp(name, type);
}

static void add_parts(const json_t *step, const char *list, size_t room, const json_t *part[room], size_t *n)
{
	if (!step || json_is_null(step))
		return;
	if (!gguf_step_is(step, "Sequence")) {
		if (*n < room)
			part[*n] = step;
		++*n;
		return;
	}
	for (size_t i = 0; i < json_array_size(json_object_get(step, list)); i++)
		add_parts(json_array_get(json_object_get(step, list), i), list, room, part, n);
}

size_t gguf_step_parts(const json_t *step, const char *list, size_t room, const json_t *part[room])
{
	size_t n = 0;

	add_parts(step, list, room, part, &n);
	return n;
}

/* --- tokens --- */

static char *put_token(struct gguf_vocabulary *v, const char *text, const json_t *id, int64_t type)
{
	const json_int_t i = json_integer_value(id);

	if (!text || !*text || !json_is_integer(id) || i < 0 || (size_t)i >= v->n)
		return xformat("its token '%s' has no id from 0 to %zu", text ? text : "", v->n - 1);
	if (v->token[i] ? strcmp(v->token[i], text) != 0 : gguf_find_token(v, text) >= 0)
		return xformat("its token '%s' has two ids, or its id has two tokens", text);
	if (!v->token[i])
		v->token[i] = xformat("%s", text);
	v->type[i] = type;
	json_object_set_new(v->ids, text, gguf_json_checked(v, json_integer(i)));
	return NULL;
}

static char *put_added(struct gguf_vocabulary *v, const json_t *root, struct gguf_tokenizer_keys *s)
{
	const json_t *list = json_object_get(root, "added_tokens");
	char *why = NULL;

	for (size_t i = 0; !why && i < json_array_size(list); i++) {
		const json_t *a = json_array_get(list, i);
		const bool special = json_is_true(json_object_get(a, "special"));

		if (json_is_true(json_object_get(a, "lstrip")) ||
		    json_is_true(json_object_get(a, "rstrip")) ||
		    json_is_true(json_object_get(a, "single_word")))
			s->note = "lstrip, rstrip and single_word of added tokens";
		why = put_token(v, word(a, "content"), json_object_get(a, "id"),
			special ? GGUF_CONTROL : GGUF_USER_DEFINED);
	}
	return why;
}

/* Adds tokens for ids without one. */
static char *put_padding(struct gguf_vocabulary *v)
{
	char *why = NULL;

	for (size_t i = 0; !why && i < v->n; i++) {
		char *text = v->token[i] ? NULL : xformat("[PAD%zu]", i);
		json_t *id = gguf_json_checked(v, json_integer((json_int_t)i));

		if (text)
			why = put_token(v, text, id, GGUF_UNUSED);
		json_decref(id);
		free(text);
	}
	return why;
}

static char *take_tokens(struct gguf_vocabulary *v, json_t *root, struct gguf_tokenizer_keys *s)
{
	json_t *list = json_object_get(json_object_get(root, "model"), "vocab"), *id;
	const char *text;
	char *why = NULL;

	json_object_foreach(list, text, id)
		if (!why)
			why = put_token(v, text, id, GGUF_NORMAL);
	if (!why)
		why = put_added(v, root, s);
	return why ? why : put_padding(v);
}

/* --- BOS and EOS --- */

struct ends { int64_t bos, eos; };	/* -1: none */

static char *take_template(const struct gguf_vocabulary *v, const json_t *step, struct ends *e)
{
	const json_t *single = json_object_get(step, "single");
	bool behind = false;

	for (size_t i = 0; i < json_array_size(single); i++) {
		const json_t *item = json_array_get(single, i);
		const char *token = word(json_object_get(item, "SpecialToken"), "id");
		int64_t *to = behind ? &e->eos : &e->bos;

		behind |= json_object_get(item, "Sequence") != NULL;
		if (!token)
			continue;
		if (*to >= 0 || gguf_find_token(v, token) < 0)
			return xformat("it adds several tokens before or after a text, or an unknown token");
		*to = gguf_find_token(v, token);
	}
	return NULL;
}

static char *take_ends(const struct gguf_vocabulary *v, const json_t *root, const struct config *c,
	struct ends *e)
{
	enum { PARTS = 4 };
	const json_t *part[PARTS];
	const size_t n = gguf_step_parts(json_object_get(root, "post_processor"), "processors", PARTS, part);
	char *why = n > PARTS ? xformat("its post-processor has %zu parts", n) : NULL;

	for (size_t i = 0; !why && i < n; i++) {
		if (gguf_step_is(part[i], "TemplateProcessing"))
			why = take_template(v, part[i], e);
		else if (!gguf_step_is(part[i], "ByteLevel"))
			why = xformat("its post-processor is of type %s", word(part[i], "type"));
	}
	if (!why && e->bos >= 0 && c->bos >= 0 && e->bos != c->bos)
		why = xformat("it adds %jd before a text, config.json has %ld", (intmax_t)e->bos, c->bos);
	if (!why && e->eos >= 0 && c->eos_count && e->eos != c->eos[0])
		why = xformat("it adds %jd after a text, config.json has %ld", (intmax_t)e->eos, c->eos[0]);
	return why;
}

/* --- keys --- */

static void put_list(struct gguf_output *o, const struct gguf_vocabulary *v)
{
	int32_t *type = xalloc(v->n, sizeof *type);

	for (size_t i = 0; i < v->n; i++)
		type[i] = (int32_t)v->type[i];
	gguf_put_texts(o, GGUF_TOKENS, v->n, v->token);
	gguf_put_integers(o, GGUF_TOKEN_TYPES, v->n, type);
	free(type);
}

/* "left right" of a merge, which is such a text or a pair. */
static char *merge_text(const json_t *m)
{
	return json_is_array(m) ? xformat("%s %s", json_string_value(json_array_get(m, 0)),
		json_string_value(json_array_get(m, 1))) : xformat("%s", json_string_value(m));
}

static void put_merges(struct gguf_output *o, const json_t *root)
{
	const json_t *list = json_object_get(json_object_get(root, "model"), "merges");
	const size_t n = json_array_size(list);
	char **text = xalloc(n, sizeof *text);

	for (size_t i = 0; i < n; i++)
		text[i] = merge_text(json_array_get(list, i));
	gguf_put_texts(o, GGUF_MERGES, n, text);
	for (size_t i = 0; i < n; i++)
		free(text[i]);
	free(text);
}

static void put_ends(struct gguf_output *o, const struct config *c, const struct ends *e)
{
	gguf_put_flag(o, GGUF_ADD_BOS, e->bos >= 0);
	gguf_put_flag(o, GGUF_ADD_EOS, e->eos >= 0);
	if (e->bos >= 0 && c->bos < 0)	/* else gguf_put_config() wrote it */
		gguf_put_size(o, GGUF_BOS_ID, (size_t)e->bos);
	if (e->eos >= 0 && !c->eos_count)
		gguf_put_size(o, GGUF_EOS_ID, (size_t)e->eos);
}

static void put_keys(struct gguf_output *o, const struct gguf_vocabulary *v, const json_t *root,
	const struct gguf_tokenizer_keys *s)
{
	gguf_put_text(o, GGUF_TOKENIZER, s->pre ? "gpt2" : "llama");
	put_list(o, v);
	if (s->pre) {
		gguf_put_text(o, GGUF_PRE, s->pre);
		put_merges(o, root);
	} else {
		gguf_put_reals(o, GGUF_SCORES, v->n, s->score);
		gguf_put_flag(o, GGUF_ADD_PREFIX, s->prefix);
	}
	if (s->unknown >= 0)
		gguf_put_size(o, GGUF_UNKNOWN_ID, (size_t)s->unknown);
}

static bool is_byte_level(const json_t *root)
{
	enum { PARTS = 8 };
	const json_t *part[PARTS];
	const size_t n = gguf_step_parts(json_object_get(root, "pre_tokenizer"), "pretokenizers", PARTS,
		part);

	for (size_t i = 0; i < n && i < PARTS; i++)
		if (gguf_step_is(part[i], "ByteLevel"))
			return true;
	return false;
}

/* The model must be BPE, without members that neither kind supports. */
static char *check_model(const json_t *root)
{
	static const char *const absent[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix" };
	const json_t *model = json_object_get(root, "model");

	if (!gguf_step_is(model, "BPE"))
		return xformat("its model is %s, not BPE",
			word(model, "type") ? word(model, "type") : "not named");
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
		const json_t *x = json_object_get(model, absent[i]);

		if (x && !json_is_null(x) && json_string_length(x) + json_is_number(x) > 0)
			return xformat("it has a %s", absent[i]);
	}
	return NULL;
}

/* A token of tokenizer_config.json is a text, or an object as of an added token. */
static void put_padding_id(struct gguf_output *o, const struct gguf_vocabulary *v, const char *json)
{
	json_t *root = json ? json_loads(json, 0, NULL) : NULL;
	const json_t *token = json_object_get(root, "pad_token");
	const char *text = json_is_object(token) ? word(token, "content") : json_string_value(token);

	if (text && gguf_find_token(v, text) >= 0)
		gguf_put_size(o, GGUF_PADDING_ID, (size_t)gguf_find_token(v, text));
	json_decref(root);
}

char *gguf_put_tokenizer(struct gguf_output *o, const char *to, char *const text[TEXTS],
	const struct config *c)
{
	struct gguf_vocabulary v = { .path = to, .n = c->vocab };
	struct gguf_tokenizer_keys s = { .unknown = -1 };
	struct ends ends = { -1, -1 };
	json_t *root = json_loads(text[TEXT_TOKENIZER], 0, NULL);
	char *why = root ? check_model(root) : xformat("it is not valid JSON");

	v.ids = gguf_json_checked(&v, json_object());
	v.token = xalloc(v.n, sizeof *v.token);
	v.type = xalloc(v.n, sizeof *v.type);
	if (!why)
		why = take_tokens(&v, root, &s);
	if (!why)
		why = take_ends(&v, root, c, &ends);
	if (!why)
		why = (is_byte_level(root) ? gguf_byte_bpe_keys : gguf_sentencepiece_keys)(&v, root, &s);
	if (!why) {
		put_keys(o, &v, root, &s);
		put_ends(o, c, &ends);
		put_padding_id(o, &v, text[TEXT_TOKENIZER_CONFIG]);
		if (s.note)
			warn("%s: tokenizer.ggml.model: leaves out %s", to, s.note);
	}
	for (size_t i = 0; i < v.n; i++)
		free(v.token[i]);
	free(v.token), free(v.type), free(s.score);
	json_decref(v.ids);
	json_decref(root);
	return why;
}
