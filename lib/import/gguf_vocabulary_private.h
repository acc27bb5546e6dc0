/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_vocabulary_private.h -- the tokens of a GGUF file, and the parts of a tokenizer.json that all kinds of
 * tokenizers have
 *
 * Shared by gguf_tokenizer.c, the kinds of tokenizers, and export (gguf_said.h).
 */
#ifndef IMPORT_GGUF_VOCABULARY_PRIVATE_H
#define IMPORT_GGUF_VOCABULARY_PRIVATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "import/gguf.h"

enum gguf_token_type {
	GGUF_NORMAL = 1, GGUF_UNKNOWN = 2, GGUF_CONTROL = 3, GGUF_USER_DEFINED = 4, GGUF_UNUSED = 5,
	GGUF_BYTE = 6
};

struct gguf_vocabulary {
	const struct gguf *g;
	const char *path;
	size_t n;
	char **token;			/* [n] */
	int64_t *type;			/* [n]; NULL: all are normal */
	json_t *ids;			/* token to id */
};

/* Kinds of tokenizers: the whole tokenizer.json. */
json_t *gguf_byte_bpe(const struct gguf_vocabulary *v);
json_t *gguf_sentencepiece(const struct gguf_vocabulary *v);

/* The pre-tokenizer of a family with byte-level BPE, by tokenizer.ggml.pre. */
enum { GGUF_SPLITS = 4 };
/* A pattern splits a text: matches are words, and so is the text between two matches. */
struct gguf_pre {
	const char *name;
	const char *split[GGUF_SPLITS];	/* patterns, one after the other; then NULL */
	bool digits;			/* every digit is a word */
	bool words;			/* the words of GPT-2 */
	bool ignore_merges;		/* a word that is a token is not merged */
	bool bos;			/* default for a BOS before a text */
};
/* The first row is the default for files without a name; ends with a row without a name. */
extern const struct gguf_pre gguf_pres[];

/* The value; a lack of memory is a fatal error. */
json_t *gguf_json_checked(const struct gguf_vocabulary *v, json_t *json);
void gguf_append(const struct gguf_vocabulary *v, json_t *array, json_t *value);

int64_t gguf_token_type(const struct gguf_vocabulary *v, size_t id);
int64_t gguf_find_token(const struct gguf_vocabulary *v, const char *token);	/* -1: no such token */
/* The id that a key stores; -1: no such key. An id without a token is a fatal error. */
int64_t gguf_token_id(const struct gguf_vocabulary *v, const char *key);
json_t *gguf_token_text(const struct gguf_vocabulary *v, size_t id);
char *gguf_text_part(const char *s, size_t n);	/* the first n bytes of a text; free() it */

json_t *gguf_added_tokens(const struct gguf_vocabulary *v);
/* BOS before a text, EOS after it; null for neither. bos, eos: defaults for keys that the file lacks. */
json_t *gguf_post_processor(const struct gguf_vocabulary *v, bool bos, bool eos);
#endif
