/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.h -- text to token ids, as a Hugging Face tokenizer.json says
 *
 * Kinds are rows of a table in tokenizer.c. The only one so far is BPE in the style
 * of SentencePiece with byte fallback (Llama 1 and 2, Mistral, Gemma, tinyllamas):
 * normalizers Prepend and Replace, pre-tokenizer Metaspace, merges by rank. Ids are
 * those of the `tokenizers` library. No BOS is added; tokenizer_bos() returns it.
 *
 * Source: https://github.com/huggingface/tokenizers (models/bpe, pre_tokenizers/
 * metaspace, tokenizer/added_vocabulary), and Sennrich et al., "Neural Machine
 * Translation of Rare Words with Subword Units", ACL 2016.
 */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

struct encoding {
	size_t n;
	int32_t *id;
	uint16_t *bytes;	/* of the text, for each token; their sum is its length */
};

/* Reads the text of a tokenizer.json; name is for messages. Dies on what is not supported. */
struct tokenizer *tokenizer_read(const char *name, const char *json);
void tokenizer_close(struct tokenizer *t);

/*
 * Ids of n bytes of text. special: added tokens that are marked special ("<s>") are recognized in it;
 * otherwise they are plain text. Other added tokens are always recognized. White space that belongs to one
 * (lstrip, rstrip) is counted once; the library may count it twice. A byte that is not part of valid UTF-8
 * is a character by itself: a byte token with byte fallback, otherwise unknown. Dies on a character without
 * a token where there is no unknown token, and on a token that stands for more than 65535 bytes of text.
 */
struct encoding tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special);
void encoding_free(struct encoding *e);

/* Each byte of the text as an id 0..255, as byte-level models read it. */
struct encoding encoding_of_bytes(size_t n, const char text[n]);

int32_t tokenizer_bos(const struct tokenizer *t);	/* that the post-processor puts first, or -1 */
size_t tokenizer_vocab(const struct tokenizer *t);	/* largest id + 1, added tokens included */
#endif
