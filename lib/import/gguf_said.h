/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_said.h -- a tokenizer.json as keys of a GGUF file: the inverse of gguf_tokenizer_private.h
 *
 *	char *why = gguf_put_tokenizer(out, "model.gguf", &texts, config);
 *
 * A tokenizer is only written if it gives the same ids in llama.cpp and when it is imported again. So the
 * pre-tokenizer must be one that has a name in tokenizer.ggml.pre.
 *
 * A file stores only the score of each token of SentencePiece's BPE. So the merges must be all ways to cut
 * each token into two, token by token. The score of a token is its position in this sequence. If two cuts of
 * one token compete in a text, llama.cpp takes the leftmost.
 *
 * llama.cpp does not support the following, which is left out with a warning: the normalizer NFC; lstrip,
 * rstrip and single_word of added tokens; that Metaspace adds a space only before the first word of a text.
 */
#ifndef IMPORT_GGUF_SAID_H
#define IMPORT_GGUF_SAID_H
#include <jansson.h>
#include "import/gguf_output.h"
#include "import/texts.h"
#include "model/config.h"

/*
 * Writes all keys of the tokenizer and returns NULL, or writes none and returns the reason; free() it. to:
 * the file, for warnings. text: the texts of import/texts.h; tokenizer_config.json may name the padding
 * token.
 */
char *gguf_put_tokenizer(struct gguf_output *o, const char *to, char *const text[TEXTS],
	const struct config *c);
#endif
