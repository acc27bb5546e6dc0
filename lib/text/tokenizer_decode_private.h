/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer_decode_private.h -- from the texts of tokens to a text
 *
 * Internal to lib/text. Kinds are rows of a table in tokenizer_decode.c: Replace, ByteFallback, Fuse, Strip,
 * Metaspace, ByteLevel. Without any, tokens are joined by spaces.
 *
 * Source: https://github.com/huggingface/tokenizers (decoders).
 */
#ifndef TEXT_TOKENIZER_DECODE_PRIVATE_H
#define TEXT_TOKENIZER_DECODE_PRIVATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "text/normalize.h"

/* Texts one after the other. */
struct texts {
	char *text;
	size_t length, capacity;
	size_t n, max;
	size_t *end;		/* [n] of each, in text */
	size_t room;		/* bytes that it may have, beyond which `name` is refused; 0: any number */
	const char *name;	/* of the tokenizer, for messages */
};

struct decoder {
	void (*run)(const struct decoder *d, const struct texts *from, struct texts *to);
	struct step replace;
	const char *string;	/* borrowed from the JSON */
	size_t start, stop;	/* how many Strip takes, at most */
	bool strip_first;	/* Metaspace: the first token has no spaces */
};

struct decoders {
	const char *name;	/* of the tokenizer */
	size_t n;
	struct decoder *decoder;
};

/* The member "decoder" of a tokenizer.json; name: for messages. */
struct decoders decoders_read(const char *name, const json_t *root);
void decoders_run(const struct decoders *d, struct texts *tokens);	/* what is left is the text */
void decoders_free(struct decoders *d);

void texts_put(struct texts *t, const char *s, size_t n);	/* appends to the text that ends next */
void texts_end(struct texts *t);				/* ends it */
void texts_free(struct texts *t);
#endif
