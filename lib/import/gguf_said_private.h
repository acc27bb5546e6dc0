/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_said_private.h -- the keys of each kind of tokenizer in a GGUF file; see gguf_said.h */
#ifndef IMPORT_GGUF_SAID_PRIVATE_H
#define IMPORT_GGUF_SAID_PRIVATE_H
#include <jansson.h>
#include "import/gguf_said.h"
#include "import/gguf_vocabulary_private.h"

/* Values of keys, except tokens and their types. */
struct gguf_tokenizer_keys {
	const char *pre;		/* tokenizer.ggml.pre; NULL: absent */
	bool prefix;			/* a space is added before a text */
	float *score;			/* [tokens], or NULL */
	int64_t unknown;		/* id of the unknown token; -1: absent */
	const char *note;		/* the feature that is left out; NULL: none */
};

/* Kinds: fill *s from the tokenizer.json. NULL, or the reason why a file cannot express it; free() it. */
char *gguf_byte_bpe_keys(const struct gguf_vocabulary *v, const json_t *root, struct gguf_tokenizer_keys *s);
char *gguf_sentencepiece_keys(const struct gguf_vocabulary *v, const json_t *root,
	struct gguf_tokenizer_keys *s);

/* The parts of a step of a tokenizer.json, in order. A Sequence has several in its member `list`, null has
 * none. Returns their number; parts beyond `room` are counted, but not stored. */
size_t gguf_step_parts(const json_t *step, const char *list, size_t room, const json_t *part[room]);
bool gguf_step_is(const json_t *part, const char *type);
#endif
