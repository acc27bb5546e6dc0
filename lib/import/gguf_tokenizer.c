/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_tokenizer.c -- the tokens of a file, and the kinds of tokenizers; see gguf_tokenizer_private.h */
#include "import/gguf_tokenizer_private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_table.h"
#include "import/gguf_vocabulary_private.h"

enum { LIST = 512 };

json_t *gguf_json_checked(const struct gguf_vocabulary *v, json_t *json)
{
	if (!json)
		die("%s: out of memory", v->path);
	return json;
}

static void put_member(const struct gguf_vocabulary *v, json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, gguf_json_checked(v, value)))
		die("%s: out of memory", v->path);
}

void gguf_append(const struct gguf_vocabulary *v, json_t *array, json_t *value)
{
	if (json_array_append_new(array, gguf_json_checked(v, value)))
		die("%s: out of memory", v->path);
}

int64_t gguf_token_type(const struct gguf_vocabulary *v, size_t id)
{
	return v->type ? v->type[id] : GGUF_NORMAL;
}

int64_t gguf_find_token(const struct gguf_vocabulary *v, const char *token)
{
	const json_t *id = json_object_get(v->ids, token);

	return id ? json_integer_value(id) : -1;
}

static void read_tokens(struct gguf_vocabulary *v)
{
	static const char key[] = GGUF_TOKENS;
	size_t types;
	struct gguf_text *token = gguf_strings(v->g, key, &v->n);

	if (!v->n)
		die("%s: %s: is %s, expected the tokens by their ids", v->path, key,
			token ? "empty" : "missing");
	v->type = gguf_integers(v->g, GGUF_TOKEN_TYPES, &types);
	if (v->type && types != v->n)
		die("%s: " GGUF_TOKEN_TYPES ": has %zu elements, expected one for each of %zu tokens",
			v->path, types, v->n);
	v->token = xalloc(v->n, sizeof *v->token);
	for (size_t i = 0; i < v->n; i++) {
		const struct gguf_text t = token[i];
		int64_t other;

		if (!t.n || t.n > INT32_MAX || memchr(t.s, 0, t.n))
			die("%s: %s: number %zu is %s, expected a text", v->path, key, i,
				t.n ? "with a NUL byte" : "empty");
		v->token[i] = xformat("%.*s", (int)t.n, t.s);
		other = gguf_find_token(v, v->token[i]);
		if (other >= 0)
			die("%s: %s: '%s' occurs twice, as %jd and %zu", v->path, key, v->token[i],
				(intmax_t)other, i);
		if (json_object_set_new(v->ids, v->token[i],
			gguf_json_checked(v, json_integer((json_int_t)i))))
			die("%s: %s: number %zu is not valid UTF-8", v->path, key, i);
	}
	free(token);
}

int64_t gguf_token_id(const struct gguf_vocabulary *v, const char *key)
{
	int64_t id = -1;

	if (gguf_integer(v->g, key, &id) && (id < 0 || (uint64_t)id >= v->n))
		die("%s: %s: is %jd, expected an id from 0 to %zu", v->path, key, (intmax_t)id, v->n - 1);
	return id;
}

json_t *gguf_token_text(const struct gguf_vocabulary *v, size_t id)
{
	return gguf_json_checked(v, json_string(v->token[id]));
}

char *gguf_text_part(const char *s, size_t n)
{
	return xformat("%.*s", (int)n, s);
}

json_t *gguf_added_tokens(const struct gguf_vocabulary *v)
{
	json_t *list = gguf_json_checked(v, json_array());

	for (size_t i = 0; i < v->n; i++) {
		const int64_t type = gguf_token_type(v, i);

		if (type != GGUF_CONTROL && type != GGUF_USER_DEFINED &&
		    (type != GGUF_UNKNOWN || gguf_token_id(v, GGUF_UNKNOWN_ID) != (int64_t)i))
			continue;
		gguf_append(v, list,
			json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i, "content",
				gguf_token_text(v, i), "single_word", 0, "lstrip", 0, "rstrip", 0,
				"normalized", 0, "special", type != GGUF_USER_DEFINED));
	}
	return list;
}

static json_t *special(const struct gguf_vocabulary *v, size_t id)
{
	return json_pack("{s:{s:o, s:i}}", "SpecialToken", "id", gguf_token_text(v, id), "type_id", 0);
}

json_t *gguf_post_processor(const struct gguf_vocabulary *v, bool bos, bool eos)
{
	const int64_t ids[2] = { gguf_token_id(v, GGUF_BOS_ID), gguf_token_id(v, GGUF_EOS_ID) };
	static const struct { const char *add, *id; } keys[2] = { { GGUF_ADD_BOS, GGUF_BOS_ID },
		{ GGUF_ADD_EOS, GGUF_EOS_ID } };
	json_t *single = gguf_json_checked(v, json_array()), *tokens = gguf_json_checked(v, json_object()),
		*twice;
	bool wanted[2] = { bos, eos };

	for (int i = 0; i < 2; i++) {
		gguf_flag(v->g, keys[i].add, wanted + i);
		if (wanted[i] && ids[i] < 0)
			die("%s: %s: is true, but %s is missing", v->path, keys[i].add, keys[i].id);
	}
	for (int i = 0; i < 2; i++) {
		if (i)
			gguf_append(v, single,
				json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
		if (!wanted[i])
			continue;
		gguf_append(v, single, special(v, (size_t)ids[i]));
		put_member(v, tokens, v->token[ids[i]], json_pack("{s:o, s:[I], s:[o]}",
			"id", gguf_token_text(v, (size_t)ids[i]), "ids", (json_int_t)ids[i],
			"tokens", gguf_token_text(v, (size_t)ids[i])));
	}
	if (!wanted[0] && !wanted[1]) {
		json_decref(single);
		json_decref(tokens);
		return json_null();
	}
	twice = gguf_json_checked(v, json_deep_copy(single));
	json_array_extend(twice, single);
	return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair",
		twice, "special_tokens", tokens);
}

static const struct { const char *name; json_t *(*make)(const struct gguf_vocabulary *v); } kinds[] = {
	{ "gpt2", gguf_byte_bpe }, { "llama", gguf_sentencepiece },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

char *gguf_tokenizer(const struct gguf *g, const char *path)
{
	struct gguf_vocabulary v = { .g = g, .path = path };
	char *name = gguf_string(g, GGUF_TOKENIZER),
	     *text = gguf_string(g, GGUF_TOKENIZER_JSON);
	char known[LIST] = "";
	json_t *root = NULL;
	bool none = !name || !strcmp(name, "none") || !strcmp(name, "no_vocab");

	for (size_t i = 0; !text && !none && !root && i < KINDS; i++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", kinds[i].name);
		if (strcmp(name, kinds[i].name))
			continue;
		v.ids = gguf_json_checked(&v, json_object());
		read_tokens(&v);
		root = gguf_json_checked(&v, kinds[i].make(&v));
	}
	if (!text && !none && !root)
		die("%s: " GGUF_TOKENIZER ": '%s' is not known, expected one of %s", path, name, known);
	if (root) {
		text = json_dumps(root, JSON_COMPACT);
		if (!text)
			die("%s: out of memory", path);
		json_decref(root);
		json_decref(v.ids);
	}
	for (size_t i = 0; v.token && i < v.n; i++)
		free(v.token[i]);
	free(v.token);
	free(v.type);
	free(name);
	return text;
}
