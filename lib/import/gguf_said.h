/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_said.h -- a tokenizer.json as keys of a GGUF file: the way of gguf_tokenizer_private.h
 * backwards
 *
 *	char *why = gguf_put_tokenizer(out, "model.gguf", &texts, config);
 *
 * What is written gives the same ids in llama.cpp, and when it is imported again, or it is not written. So
 * the cuts of words must be those that a name of tokenizer.ggml.pre stands for. Of SentencePiece's BPE a file
 * has the score of each token alone: merges must be all ways to cut each token into two, token by token, and
 * the place of the token among them is its score. Where two cuts of one token compete in a text, llama.cpp
 * takes the leftmost.
 *
 * Left out with a warning, since llama.cpp has nothing for it: NFC; blanks that an added token takes to
 * itself, and words that it must be; that Metaspace puts a blank before the first word of a text alone.
 */
#ifndef IMPORT_GGUF_SAID_H
#define IMPORT_GGUF_SAID_H
#include <jansson.h>
#include "import/gguf_output.h"
#include "import/texts.h"
#include "model/config.h"

/*
 * Writes all keys of the tokenizer, or none: then it returns why; free() it. to: the file, for warnings;
 * text: those of import/texts.h, of which tokenizer_config.json may say which token is padding.
 */
char *gguf_put_tokenizer(struct gguf_output *o, const char *to, char *const text[TEXTS],
	const struct config *c);
/* tokenizer.chat_template, of chat_template.jinja or of tokenizer_config.json. */
void gguf_put_chat(struct gguf_output *o, char *const text[TEXTS]);
#endif
