/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_said_private.h -- what a file says of each kind of tokenizer; see gguf_said.h */
#ifndef IMPORT_GGUF_SAID_PRIVATE_H
#define IMPORT_GGUF_SAID_PRIVATE_H
#include <jansson.h>
#include "import/gguf_said.h"
#include "import/gguf_vocabulary_private.h"

/* What the keys are to say besides tokens and types. */
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
#endif
