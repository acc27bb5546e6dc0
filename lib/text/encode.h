/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * encode.h -- a tokenizer as tokenizer.c reads it and encode.c runs it
 *
 * Internal to lib/text; tokenizer.h has the functions. The steps of a text: added
 * tokens are cut out · normalizer · added tokens that are looked for in normalized
 * text are cut out · pre-tokenizer · BPE of each word.
 *
 * Source: https://github.com/huggingface/tokenizers (models/bpe, tokenizer/added_vocabulary).
 */
#ifndef TEXT_ENCODE_H
#define TEXT_ENCODE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "text/normalize.h"
#include "text/vocabulary.h"

enum { ADDED_MOST = 512 };	/* bytes of an added token */

struct added { int32_t id; bool special, lstrip, rstrip; };

/* Added tokens that are looked for in the raw text, or in the normalized one. */
struct finder {
	struct words words;	/* content → index into added */
	bool first[256], length[ADDED_MOST + 1];	/* first bytes and lengths that occur */
	size_t longest;
};

struct tokenizer {
	const char *name;
	json_t *root;		/* owns the strings of the tables */
	struct words vocab;
	struct merges merges;
	uint64_t *seam;		/* pairs of characters that a merge joins, see vocabulary.h */
	bool uncut;		/* a text is not cut: some merge joins byte tokens or the unknown token */
	struct steps normalizer, pretokenizer;
	char *delimiter;	/* a word starts at each; NULL: the text is one word */
	struct finder raw, normal;
	struct added *added;
	char **owned;		/* normalized contents */
	size_t addeds, size;	/* size: largest id + 1 */
	bool fallback, fuse_unknown, ignore_merges;
	int32_t byte[256], unknown, bos;	/* ids, or NONE */
};
#endif
