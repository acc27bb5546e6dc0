/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bpe.h -- byte-pair encoding of words
 *
 * Internal to lib/text. The pair of neighbours whose merge has the lowest rank is merged, the leftmost of
 * several, until no pair has a merge. Characters that are not in the vocabulary are byte tokens, or
 * unknown.
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
	bool uncut;		/* a word is not cut: some merge joins byte tokens or the unknown token */
	bool fallback, fuse_unknown, ignore_merges;
	int32_t byte[256], unknown;	/* ids, or NONE */
};

/* A text on its way to tokens; work space and words that were met before are kept from word to word. */
struct coder;

/* name: of the tokenizer, for messages. */
struct coder *coder_make(const struct bpe *bpe, const char *name);
/* Appends the tokens of a word. Dies on a character without a token where there is no unknown token. */
void coder_word(struct coder *c, struct piece word);
/* Appends a token that stands for `weight` bytes of the text. */
void coder_token(struct coder *c, int32_t id, size_t weight);
/* Bytes of the text that no word holds: the next token stands for them too, behind the last one the last. */
void coder_skip(struct coder *c, size_t weight);
struct encoding coder_end(struct coder *c);	/* frees it */
#endif
