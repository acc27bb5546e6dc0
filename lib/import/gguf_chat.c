/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_chat.c -- see gguf_chat.h */
#include "import/gguf_chat.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/chat.h"
#include "import/gguf_table.h"

#define DEFAULT "default"

/* --- reading --- */

static void put(const char *path, json_t *o, const char *key, json_t *value)
{
	if (!value || json_object_set_new(o, key, value))
		die("%s: %s: is not valid UTF-8", path, key);
}

/* The id of a special token: that of config.json, which has the defaults of GGUF, or of a key; -1: none. */
static int64_t special_id(const struct gguf *g, const json_t *config, const char *member, const char *key)
{
	const json_t *id = json_object_get(config, member);
	int64_t y = -1;

	if (json_is_array(id))
		id = json_array_get(id, 0);
	if (json_is_integer(id))
		return json_integer_value(id);
	gguf_integer(g, key, &y);
	return y;
}

/* The token of an id: of the list of the file, or of tokenizer.json, which a file without a list may have. */
static json_t *token_of(size_t n, const struct gguf_text token[n], const json_t *tokenizer, int64_t id)
{
	const json_t *added = json_object_get(tokenizer, "added_tokens");

	if (id >= 0 && (uint64_t)id < n)
		return json_stringn(token[id].s, token[id].n);
	for (size_t i = 0; i < json_array_size(added); i++)
		if (json_integer_value(json_object_get(json_array_get(added, i), "id")) == id)
			return json_incref(json_object_get(json_array_get(added, i), "content"));
	return NULL;
}

static void read_tokens(const struct gguf *g, const char *path, char *const text[TEXTS], json_t *to)
{
	static const struct { const char *member, *key, *name; } rows[] = {
		{ "bos_token_id", GGUF_BOS_ID, "bos_token" }, { "eos_token_id", GGUF_EOS_ID, "eos_token" },
		{ "unk_token_id", GGUF_UNKNOWN_ID, "unk_token" },
		{ "pad_token_id", GGUF_PADDING_ID, "pad_token" } };
	size_t n = 0;
	struct gguf_text *token = gguf_strings(g, GGUF_TOKENS, &n);
	json_t *config = json_loads(text[TEXT_CONFIG], 0, NULL);
	json_t *tokenizer = !token && text[TEXT_TOKENIZER] ? json_loads(text[TEXT_TOKENIZER], 0, NULL) : NULL;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int64_t id = special_id(g, config, rows[i].member, rows[i].key);
		json_t *is = token_of(n, token, tokenizer, id);

		if (is)
			put(path, to, rows[i].name, is);
	}
	json_decref(config);
	json_decref(tokenizer);
	free(token);
}

/* The templates with a name of their own; NULL: none. */
static json_t *named_templates(const struct gguf *g, const char *path)
{
	size_t n = 0;
	struct gguf_text *name = gguf_strings(g, GGUF_CHATS, &n);
	json_t *y = n ? json_array() : NULL;

	for (size_t i = 0; i < n; i++) {
		const size_t length = name[i].n < UINT16_MAX ? name[i].n : UINT16_MAX;	/* of a key */
		char *key = xformat("%s.%.*s", GGUF_CHAT, (int)length, name[i].s);
		char *text = gguf_string(g, key);

		if (!text)
			die("%s: %s: is missing, " GGUF_CHATS " names it", path, key);
		if (json_array_append_new(y, json_pack("{s:s%, s:s}", "name", name[i].s, name[i].n,
			"template", text)))
			die("%s: %s: is not valid UTF-8", path, key);
		free(key), free(text);
	}
	free(name);
	return y;
}

void gguf_read_chat(const struct gguf *g, const char *path, char *text[TEXTS])
{
	json_t *o = json_object(), *named;

	if (!o)
		die("%s: out of memory", path);
	text[TEXT_CHAT] = gguf_string(g, GGUF_CHAT);
	read_tokens(g, path, text, o);
	named = named_templates(g, path);
	if (named)
		put(path, o, "chat_template", named);
	text[TEXT_TOKENIZER_CONFIG] = json_object_size(o) ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
}

/* --- writing --- */

static const char *member(const json_t *templates, size_t i, const char *key)
{
	return chat_string(json_object_get(json_array_get(templates, i), key));
}

static bool is_among(size_t n, char *const names[n], const char *name)
{
	while (n && strcmp(names[n - 1], name))
		n--;
	return n;
}

/* Writes the templates of a list, each under its name. */
static void put_named(struct gguf_output *o, const char *path, const json_t *templates)
{
	const size_t all = json_array_size(templates);
	char **names = xalloc(all, sizeof *names);
	size_t n = 0;

	for (size_t i = 0; i < all; i++) {
		const char *name = member(templates, i, "name"), *text = member(templates, i, "template");
		char *key;

		if (name && text && !strcmp(name, DEFAULT))
			continue;
		if (!name || !text || is_among(n, names, name)) {
			warn("%s: tokenizer_config.json: chat_template: number %zu is left out: it is not an "
				"object with a name of its own and a template, without NUL", path, i);
			continue;
		}
		key = xformat("%s.%s", GGUF_CHAT, name);
		gguf_put_text(o, key, text);
		free(key);
		names[n++] = xformat("%s", name);
	}
	if (n)
		gguf_put_texts(o, GGUF_CHATS, n, names);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

void gguf_put_chat(struct gguf_output *o, const char *path, char *const text[TEXTS])
{
	const char *config = text[TEXT_TOKENIZER_CONFIG], *chat;
	json_t *root = config ? json_loads(config, JSON_ALLOW_NUL, NULL) : NULL;
	const json_t *templates = json_object_get(root, "chat_template");

	if (json_is_string(templates) && !chat_string(templates))
		warn("%s: tokenizer_config.json: chat_template is left out: it has a NUL", path);
	chat = chat_template(text, templates, DEFAULT);
	if (chat)
		gguf_put_text(o, GGUF_CHAT, chat);
	put_named(o, path, templates);
	json_decref(root);
}
