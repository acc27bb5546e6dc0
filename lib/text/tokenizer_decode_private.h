/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer_decode_private.h -- decoders: from the texts of tokens to a text
 *
 * Internal to lib/text. The kinds of decoders are rows of a table in tokenizer_decode.c: Replace,
 * ByteFallback, Fuse, Strip, Metaspace, ByteLevel. Without a decoder, tokens are joined by spaces.
 *
 * Source: https://github.com/huggingface/tokenizers (decoders).
 */
#ifndef TEXT_TOKENIZER_DECODE_PRIVATE_H
#define TEXT_TOKENIZER_DECODE_PRIVATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "text/normalize.h"

/* A list of texts, stored one after the other. */
struct texts {
	char *text;
	size_t length, capacity;
	size_t n, max;
	size_t *end;		/* [n] the end of each text */
	size_t room;		/* largest length, beyond it `name` is refused; 0: no limit */
	const char *name;	/* of the tokenizer, for messages */
};

struct decoder {
	void (*run)(const struct decoder *d, const struct texts *from, struct texts *to);
	struct step replace;
	const char *string;	/* borrowed from the JSON */
	size_t start, stop;	/* Strip: most strings removed at either end */
	bool strip_first;	/* Metaspace: the first token has no spaces */
};

struct decoders {
	const char *name;	/* of the tokenizer */
	size_t n;
	struct decoder *decoder;
};

/* Reads the member "decoder" of a tokenizer.json; name: a name for messages. */
struct decoders decoders_read(const char *name, const json_t *root);
void decoders_run(const struct decoders *d, struct texts *tokens);	/* the result is in tokens->text */
void decoders_free(struct decoders *d);

void texts_put(struct texts *t, const char *s, size_t n);	/* appends to the last text */
void texts_end(struct texts *t);				/* ends the last text */
void texts_free(struct texts *t);
#endif
