/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * chat.h -- conversations as texts, by the chat template of a model
 *
 * The template is that of the first of these that has one of the name: chat_template.jinja (its name is
 * "default"), and chat_template of tokenizer_config.json, which is a text ("default") or a list of objects
 * with name and template. A GGUF file has them as tokenizer.chat_template and tokenizer.chat_template.NAME.
 *
 * Its variables are those of transformers' apply_chat_template(): messages, tools (none, or those of the
 * conversation), documents (none), add_generation_prompt (false), and the special tokens of
 * tokenizer_config.json and special_tokens_map.json (bos_token, eos_token, ...), as texts.
 *
 *	struct chat *c = chat_open(model, text, name, date);
 *
 *	text = chat_text(c, conversation, &length);	for each conversation
 *	chat_close(c);
 *
 * Errors are fatal. Source: https://github.com/huggingface/transformers (utils/chat_template_utils.py).
 */
#ifndef IMPORT_CHAT_H
#define IMPORT_CHAT_H
#include <jansson.h>
#include <stddef.h>
#include "import/texts.h"

struct chat;

/* A text without NUL, borrowed; NULL: another value. */
const char *chat_string(const json_t *v);

/* A template by these rules, borrowed; NULL: none. templates: chat_template of tokenizer_config.json. */
const char *chat_template(char *const text[TEXTS], const json_t *templates, const char *name);

/* model: for messages. text: those of the model, NULL: absent. name: of the template. date: "YYYY-MM-DD", for
 * templates that ask for one, or NULL. All are borrowed. */
struct chat *chat_open(const char *model, char *const text[TEXTS], const char *name, const char *date);
void chat_close(struct chat *c);
/* SHA-256 of the template; free() it. */
char *chat_digest(const struct chat *c);
/* The text of a conversation: a list of messages, or an object with the members messages and tools. Each
 * message is an object with a role. *length: bytes of the text. The caller frees it. */
char *chat_text(const struct chat *c, json_t *conversation, size_t *length);
#endif
