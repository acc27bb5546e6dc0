/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.h -- text to token ids, as a Hugging Face tokenizer.json says
 *
 * BPE: byte-level (GPT-2, GPT-NeoX, Llama 3, SmolLM, Qwen2, Qwen3) and in the style of SentencePiece (Llama 1
 * and 2, Mistral, tinyllamas). What else there is to a tokenizer are parts, rows of tables: steps of
 * normalization (normalize.h), pre-tokenizers (pretokenize.h), decoders (tokenizer_decode_private.h). Ids are
 * those of the `tokenizers` library. No BOS is added; tokenizer_bos() returns it.
 *
 * Source: https://github.com/huggingface/tokenizers (version 0.23.3).
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
 * (lstrip, rstrip) is counted once; the library may count it twice. Before everything else bytes that are not
 * valid UTF-8 become U+FFFD (utf8.h). A token that is a part of a character stands for that many of its
 * bytes; what a pre-tokenizer removes, the next token stands for. Dies on a character without a token where
 * there is no unknown token, and on a token that stands for more than 65535 bytes of text.
 */
struct encoding tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special);
void encoding_free(struct encoding *e);

/*
 * The text of ids, special tokens too, as the tokenizer's decoder makes it (t NULL: ids are bytes); its
 * length, and free() it. What is not valid UTF-8 then, such as the first half of a character at the end, is
 * U+FFFD if the decoder says so. Dies on an id without a token; from: where the ids are, for messages.
 */
char *tokenizer_decode(const struct tokenizer *t, const char *from, size_t n, const int32_t id[n],
	size_t *length);
/* The same of each sequence, tokens sequence[i] to sequence[i + 1] - 1, and a newline behind it. */
char *tokenizer_decode_each(const struct tokenizer *t, const char *from, size_t sequences,
	const int64_t sequence[sequences + 1], const int32_t id[], size_t *length);

/* Each byte of the text as an id 0..255, as byte-level models read it. */
struct encoding encoding_of_bytes(size_t n, const char text[n]);

int32_t tokenizer_bos(const struct tokenizer *t);	/* that the post-processor puts first, or -1 */
size_t tokenizer_vocab(const struct tokenizer *t);	/* largest id + 1, added tokens included */
#endif
