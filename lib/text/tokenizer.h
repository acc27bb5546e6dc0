/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.h -- text to token ids, as a Hugging Face tokenizer.json says
 *
 * Kinds are rows of a table in tokenizer.c; so far SentencePiece-style BPE with byte fallback (Llama 1 and
 * 2, Mistral, Gemma, tinyllamas): normalizers Prepend and Replace, pre-tokenizer Metaspace, merges by rank.
 * Ids are those of the `tokenizers` library. No BOS is added; tokenizer_bos() tells it.
 *
 * Source: https://github.com/huggingface/tokenizers (models/bpe, pre_tokenizers/ metaspace,
 * tokenizer/added_vocabulary), and Sennrich et al., "Neural Machine Translation of Rare Words with Subword
 * Units", ACL 2016.
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
	uint16_t *bytes;	/* of the text, that each token stands for; their sum is its length */
};

/* From the text of a tokenizer.json; name is for messages. Dies on what it does not know. */
struct tokenizer *tokenizer_read(const char *name, const char *json);
void tokenizer_close(struct tokenizer *t);

/*
 * Ids of n bytes of text. special: added tokens marked special ("<s>") are recognized in it; without, they
 * are text like any other. Added tokens that are not special always are recognized. White space that one
 * takes along (lstrip, rstrip) is taken once; the library may find it a second time. A byte that is no part
 * of valid UTF-8 is one character: a byte token under byte fallback, else unknown. Dies on a character
 * without a token where there is no unknown token, and on a token of more than 65535 bytes of text.
 */
struct encoding tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special);
void encoding_free(struct encoding *e);

/* Every byte of the text its own id 0..255, as byte-level models read it. */
struct encoding encoding_of_bytes(size_t n, const char text[n]);

int32_t tokenizer_bos(const struct tokenizer *t);	/* what the post-processor puts first, or -1 */
size_t tokenizer_vocab(const struct tokenizer *t);	/* largest id + 1, added tokens counted */
#endif
