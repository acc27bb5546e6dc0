/* SPDX-License-Identifier: GPL-3.0-or-later */
/* chat.c -- see chat.h */
#include "import/chat.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "text/template.h"

struct chat {
	char *name;			/* of the template, for messages */
	const char *date;
	char *text;			/* of the template */
	struct template *template;
	json_t *tokens;			/* special tokens, by their variables */
};

/* An object of a text of the model; NULL: absent. */
static json_t *object_of(const char *model, char *const text[TEXTS], int i)
{
	json_error_t error;
	json_t *o;

	if (!text[i])
		return NULL;
	o = json_loads(text[i], JSON_ALLOW_NUL, &error);
	if (!json_is_object(o))
		die("%s: %s: %s", model, text_rows[i].file, o ? "is not an object" : error.text);
	return o;
}

/* A token is a text, or an object as of an added token. */
static void add_tokens(json_t *to, const json_t *from)
{
	static const char *const names[] = { "bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
		"cls_token", "mask_token" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		json_t *token = json_object_get(from, names[i]);

		if (json_is_object(token))
			token = json_object_get(token, "content");
		if (json_is_string(token) && !json_object_get(to, names[i]) &&
		    json_object_set(to, names[i], token))
			die("out of memory");
	}
}

const char *chat_string(const json_t *v)
{
	const char *y = json_string_value(v);

	return y && strlen(y) == json_string_length(v) ? y : NULL;
}

const char *chat_template(char *const text[TEXTS], const json_t *templates, const char *name)
{
	const bool is_default = !strcmp(name, "default");

	if (is_default && text[TEXT_CHAT])
		return text[TEXT_CHAT];
	for (size_t i = 0; i < json_array_size(templates); i++) {
		const json_t *t = json_array_get(templates, i);
		const char *is = chat_string(json_object_get(t, "name"));

		if (is && !strcmp(is, name))
			return chat_string(json_object_get(t, "template"));
	}
	return is_default ? chat_string(templates) : NULL;
}

/* The names of all templates, for messages. */
static char *names_of(char *const text[TEXTS], const json_t *templates)
{
	char *y = xformat("%s", text[TEXT_CHAT] || json_is_string(templates) ? "default" : "");

	for (size_t i = 0; i < json_array_size(templates); i++) {
		const char *name = json_string_value(json_object_get(json_array_get(templates, i), "name"));
		char *before = y;

		if (!name || (text[TEXT_CHAT] && !strcmp(name, "default")))
			continue;
		y = xformat("%s%s%s", before, *before ? ", " : "", name);
		free(before);
	}
	return y;
}

/* Fatal error unless chat_template of tokenizer_config.json is a text, or a list of texts with names. At most
 * one of them has this name. */
static void check_templates(const char *model, const json_t *templates, const char *name)
{
	bool had = false;

	if (json_is_string(templates) && !chat_string(templates))
		die("%s: tokenizer_config.json: chat_template is not a text: it has a NUL", model);
	if (templates && !json_is_null(templates) && !json_is_string(templates) && !json_is_array(templates))
		die("%s: tokenizer_config.json: chat_template is neither a text nor a list", model);
	for (size_t i = 0; i < json_array_size(templates); i++) {
		const json_t *t = json_array_get(templates, i);
		const char *is = chat_string(json_object_get(t, "name"));

		if (!is || !chat_string(json_object_get(t, "template")))
			die("%s: tokenizer_config.json: chat_template: number %zu is not an object with the "
				"texts name and template, without NUL", model, i);
		if (strcmp(is, name))
			continue;
		if (had)
			die("%s: tokenizer_config.json: chat_template: two templates are called '%s', "
				"expected one", model, name);
		had = true;
	}
}

struct chat *chat_open(const char *model, char *const text[TEXTS], const char *name, const char *date)
{
	struct chat *c = xalloc(1, sizeof *c);
	json_t *config = object_of(model, text, TEXT_TOKENIZER_CONFIG);
	json_t *map = object_of(model, text, TEXT_SPECIAL_TOKENS);
	const json_t *templates = json_object_get(config, "chat_template");
	const bool in_file = text[TEXT_CHAT] && !strcmp(name, "default");
	const char *found;

	if (!in_file)
		check_templates(model, templates, name);
	found = chat_template(text, templates, name);
	if (!found) {
		char *names = names_of(text, templates);

		if (*names)
			die("%s: has no chat template '%s', expected --template with one of: %s", model, name,
				names);
		die("%s: has no chat template, expected a model with chat_template.jinja or with "
			"chat_template in tokenizer_config.json", model);
	}
	c->name = strcmp(name, "default") ? xformat("%s: chat template '%s'", model, name) :
		xformat("%s: chat template", model);
	c->date = date;
	c->text = xformat("%s", found);
	c->tokens = json_object();
	if (!c->tokens)
		die("out of memory");
	add_tokens(c->tokens, config);
	add_tokens(c->tokens, map);
	c->template = template_read(c->name, strlen(c->text), c->text);
	json_decref(config);
	json_decref(map);
	return c;
}

void chat_close(struct chat *c)
{
	template_free(c->template);
	json_decref(c->tokens);
	free(c->name), free(c->text);
	free(c);
}

char *chat_digest(const struct chat *c)
{
	return digest_of(strlen(c->text), c->text);
}

/* The parts of a content that is a list must be texts: nothing here reads images. */
static void check_content(size_t number, const json_t *content)
{
	for (size_t i = 0; i < json_array_size(content); i++) {
		const json_t *part = json_array_get(content, i);
		const char *type = json_string_value(json_object_get(part, "type"));

		if (!type || strcmp(type, "text") || !json_is_string(json_object_get(part, "text")))
			die("message %zu: part %zu of its content is of type '%s', expected texts only",
				number, i, type ? type : "none");
	}
}

static void check_messages(const json_t *messages)
{
	if (!json_is_array(messages))
		die("the messages are not a list");
	if (!json_array_size(messages))
		die("the conversation has no messages");
	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *m = json_array_get(messages, i);

		if (!json_is_object(m))
			die("message %zu is not an object", i);
		if (!json_is_string(json_object_get(m, "role")))
			die("message %zu has no role, expected {\"role\": ..., \"content\": ...}", i);
		check_content(i, json_object_get(m, "content"));
	}
}

static void check_tools(const json_t *tools)
{
	if (tools && !json_is_null(tools) && !json_is_array(tools))
		die("'tools' is not a list");
	for (size_t i = 0; i < json_array_size(tools); i++)
		if (!json_is_object(json_array_get(tools, i)))
			die("'tools': number %zu is not an object", i);
}

/* The variables of a conversation. */
static json_t *variables_of(const struct chat *c, json_t *conversation)
{
	const bool is_object = json_is_object(conversation);
	json_t *messages = is_object ? json_object_get(conversation, "messages") : conversation;
	json_t *tools = json_object_get(conversation, "tools"), *y = json_copy(c->tokens), *v;
	const char *key;

	json_object_foreach(conversation, key, v)
		if (strcmp(key, "messages") && strcmp(key, "tools"))
			die("the member '%s' is not supported, expected messages and tools", key);
	if (!messages)
		die("has no member 'messages'");
	check_messages(messages);
	check_tools(tools);
	if (!y || json_object_set(y, "messages", messages) ||
	    json_object_set(y, "tools", tools ? tools : json_null()) ||
	    json_object_set(y, "documents", json_null()) ||
	    json_object_set(y, "add_generation_prompt", json_false()))
		die("out of memory");
	return y;
}

char *chat_text(const struct chat *c, json_t *conversation, size_t *length)
{
	json_t *variables = variables_of(c, conversation);
	char *y = template_run(c->template, variables, c->date, length);

	json_decref(variables);
	return y;
}
