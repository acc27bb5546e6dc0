/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * encode.h -- a tokenizer as tokenizer.c reads it and encode.c runs it
 *
 * Internal to lib/text; tokenizer.h has the functions. A text runs through: added tokens cut out of the raw
 * text · normalizer · added tokens cut out of the normalized text · pre-tokenizer · BPE of each word.
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

enum { LONGEST = 512 };	/* bytes of an added token */

struct added { int32_t id; bool special, lstrip, rstrip; };

/* Added tokens that are looked for in the raw text, or in the normalized one. */
struct finder {
	struct words words;	/* content → index into added */
	bool first[256], length[LONGEST + 1];	/* bytes one starts with, lengths there are */
	size_t longest;
};

struct tokenizer {
	const char *name;
	json_t *root;		/* owns the strings of the tables */
	struct words vocab;
	struct merges merges;
	uint64_t *seam;		/* whether two characters may stand at the seam of a merge: one bit a hash */
	bool uncut;		/* merges of byte or unknown tokens: a text cannot be cut at its seams */
	struct steps normalizer, pretokenizer;
	char *delimiter;	/* a word starts at each, or NULL: one word */
	struct finder raw, normal;
	struct added *added;
	char **owned;		/* normalized contents */
	size_t addeds, size;	/* size: largest id + 1 */
	bool fallback, fuse_unknown, ignore_merges;
	int32_t byte[256], unknown, bos;	/* ids, or NONE */
};
#endif
