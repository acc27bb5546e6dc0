/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bpe.h -- byte-pair encoding of words
 *
 * Internal to lib/text. Of all pairs of neighbours that have a merge, the pair with the lowest rank is
 * merged first, the leftmost if there are several, until no pair has a merge. A character that is not in
 * the vocabulary becomes byte tokens or the unknown token.
 *
 * Calling sequence: coder_make(); coder_word(), coder_token() and coder_skip() in the order of the text;
 * coder_end().
 *
 * Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", ACL 2016;
 * https://github.com/huggingface/tokenizers (models/bpe).
 */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "text/tokenizer.h"
#include "text/vocabulary.h"
#include "text/weighted.h"

struct bpe {
	struct words vocab;
	struct merges merges;
	uint64_t *seam;		/* pairs of characters that a merge joins, see vocabulary.h */
	bool uncut;		/* words must not be cut: a merge joins byte tokens or the unknown token */
	bool fallback, fuse_unknown, ignore_merges;
	int32_t byte[256], unknown;	/* ids, or NONE */
};

/* The encoding of a text; its work space and its table of known words are kept from word to word. */
struct coder;

/* name: the tokenizer's name, for messages. */
struct coder *coder_make(const struct bpe *bpe, const char *name);
/* Appends the tokens of a word. Fatal error on a character without a token if there is no unknown token. */
void coder_word(struct coder *c, struct piece word);
/* Appends a token for `weight` bytes of the text. */
void coder_token(struct coder *c, int32_t id, size_t weight);
/* Skips bytes of the text that belong to no word. They count as bytes of the next token, or of the last one
 * at the end. */
void coder_skip(struct coder *c, size_t weight);
struct encoding coder_end(struct coder *c);	/* frees c */
#endif
