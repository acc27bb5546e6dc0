/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer_private.h -- the struct of a tokenizer, shared by tokenizer.c, tokenizer_encode.c and
 * tokenizer_decode.c
 *
 * Internal to lib/text; tokenizer.h has the functions. The steps of an encoding: bytes that are not valid
 * UTF-8 become U+FFFD · added tokens are cut out · normalizer · added tokens that are matched in normalized
 * text are cut out · pre-tokenizer · BPE of each word.
 *
 * Source: https://github.com/huggingface/tokenizers (tokenizer/added_vocabulary).
 */
#ifndef TEXT_TOKENIZER_PRIVATE_H
#define TEXT_TOKENIZER_PRIVATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "text/bpe.h"
#include "text/normalize.h"
#include "text/pretokenize.h"
#include "text/tokenizer_decode_private.h"
#include "text/vocabulary.h"

enum { ADDED_MAX = 512 };	/* most bytes of an added token */

struct added { int32_t id; bool special, lstrip, rstrip, single_word; };

/* Added tokens that are matched in the raw text, or in the normalized one. */
struct finder {
	struct words words;	/* content → index into added */
	bool first[256], length[ADDED_MAX + 1];	/* first bytes and lengths that occur */
	size_t longest;
};

struct tokenizer {
	const char *name;
	json_t *root;		/* owns the strings of the tables */
	struct bpe bpe;
	struct steps normalizer;
	struct cuts pretokenizer;
	struct decoders decoder;
	struct finder raw, normal;
	struct added *added;
	char **owned;		/* normalized contents */
	size_t addeds, size;	/* size: largest id + 1 */
	struct regex *letter;	/* a character of words; NULL: no added token is a single word */
	struct spelled { int32_t id; const char *text; } *token;	/* [tokens] by id, each once */
	size_t tokens;
	int32_t bos;		/* or NONE */
};
#endif
