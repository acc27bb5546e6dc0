/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_said_private.h -- a tokenizer.json as keys of a GGUF file: the way of gguf_tokenizer_private.h
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
#ifndef IMPORT_GGUF_SAID_PRIVATE_H
#define IMPORT_GGUF_SAID_PRIVATE_H
#include <jansson.h>
#include "import/gguf_output.h"
#include "import/gguf_vocabulary_private.h"
#include "import/texts.h"
#include "model/config.h"

/* What the keys are to say beside tokens and types. */
struct gguf_said {
	const char *pre;		/* tokenizer.ggml.pre; NULL: there is none */
	bool prefix;			/* a blank before a text */
	float *score;			/* [tokens], or NULL */
	int64_t unknown;		/* -1: there is no such token */
	const char *note;		/* what is left out; NULL: nothing */
};

/* Kinds, of the tokenizer.json and its tokens: NULL, or why a file cannot say it; free() it. */
char *gguf_byte_bpe_said(const struct gguf_vocabulary *v, const json_t *root, struct gguf_said *s);
char *gguf_sentencepiece_said(const struct gguf_vocabulary *v, const json_t *root, struct gguf_said *s);

/* Of a step of a tokenizer.json, null counting as none: its parts, one after the other, of which a Sequence
 * has several in its `list`; those beyond `room` are counted only. */
size_t gguf_said_parts(const json_t *step, const char *list, size_t room, const json_t *part[room]);
bool gguf_said_type(const json_t *part, const char *type);

/*
 * Writes all keys of the tokenizer, or none: then it returns why; free() it. to: the file, for warnings;
 * text: those of import/texts.h, of which tokenizer_config.json may say which token is padding.
 */
char *gguf_put_tokenizer(struct gguf_output *o, const char *to, char *const text[TEXTS],
	const struct config *c);
/* tokenizer.chat_template, of chat_template.jinja or of tokenizer_config.json. */
void gguf_put_chat(struct gguf_output *o, char *const text[TEXTS]);
#endif
