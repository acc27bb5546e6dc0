/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.h -- text to token ids and back, by a Hugging Face tokenizer.json
 *
 * BPE is supported: byte-level (GPT-2, GPT-NeoX, Llama 3, SmolLM, Qwen2, Qwen3) and in the style of
 * SentencePiece (Llama 1 and 2, Mistral, tinyllamas). The other parts of a tokenizer are rows of tables:
 * steps of normalization (normalize.h), pre-tokenizers (pretokenize.h), decoders
 * (tokenizer_decode_private.h). Ids are equal to those of the `tokenizers` library. No BOS is added;
 * tokenizer_bos() returns it.
 *
 * Calling sequence: tokenizer_read(); tokenizer_encode() or tokenizer_decode(), any number of times;
 * tokenizer_close().
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
	uint16_t *bytes;	/* of the text per token; their sum is its length */
};

/* Reads the text of a tokenizer.json; name is for messages, borrowed. Fatal error on features that are not
 * supported. */
struct tokenizer *tokenizer_read(const char *name, const char *json);
void tokenizer_close(struct tokenizer *t);

/*
 * The ids of n bytes of text; encoding_free() them.
 *
 * special: added tokens that are marked special ("<s>") are recognized in the text; if false they are plain
 * text. Other added tokens are always recognized. White space that belongs to an added token (lstrip,
 * rstrip) is counted once; the library may count it twice.
 *
 * Bytes that are not valid UTF-8 first become U+FFFD (utf8.h). A token that is a part of a character counts
 * its own bytes of the character. Text that a pre-tokenizer removes is counted for the next token.
 *
 * Fatal error on a character without a token if there is no unknown token, and on a token for more than
 * 65535 bytes of text.
 */
struct encoding tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special);
void encoding_free(struct encoding *e);

/*
 * The text of ids, including special tokens, as the tokenizer's decoder makes it (t NULL: ids are bytes);
 * *length is its length. The caller frees it. If the decoder does so, bytes that are not valid UTF-8, such
 * as the first half of a character at the end, become U+FFFD. Fatal error on an id without a token. from:
 * the source of the ids, for messages.
 */
char *tokenizer_decode(const struct tokenizer *t, const char *from, size_t n, const int32_t id[n],
	size_t *length);
/* Decodes each sequence, tokens sequence[i] to sequence[i + 1] - 1, and adds a newline after it. */
char *tokenizer_decode_each(const struct tokenizer *t, const char *from, size_t sequences,
	const int64_t sequence[sequences + 1], const int32_t id[], size_t *length);

/* Each byte of the text as an id 0..255, for byte-level models. */
struct encoding encoding_of_bytes(size_t n, const char text[n]);

int32_t tokenizer_bos(const struct tokenizer *t);	/* first token by the post-processor, or -1 */
size_t tokenizer_vocab(const struct tokenizer *t);	/* largest id + 1, added tokens included */
#endif
