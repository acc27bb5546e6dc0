/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_tokenizer_private.h -- a tokenizer.json for the tokenizer in a GGUF file, with the same ids except in
 * the cases below
 *
 * There are two kinds (tokenizer.ggml.model). "gpt2" is byte-level BPE with merges; tokenizer.ggml.pre names
 * its pre-tokenizer. "llama" is SentencePiece's BPE: of all neighbouring pairs that form a token, the pair
 * with the highest score is merged first, and of equal scores the leftmost pair.
 *
 * A tokenizer.json has a list of merges by rank instead of scores. The list has every way to cut a token into
 * two tokens, by descending score. Cuts of equal score are in the order of transformers: by the length of the
 * left part, longest first, then of the right part, then by ids. If two cuts of one token, or two tokens of
 * equal score, compete in a text, the rank decides and not the position. This also holds for the
 * tokenizer.json of Llama and Mistral.
 *
 * Control tokens become special added tokens. User-defined tokens become added tokens that are always matched
 * in a text. The only normalizer is SentencePiece's, since llama.cpp has no other (Qwen2's tokenizer.json has
 * NFC).
 *
 * Source: https://github.com/ggml-org/llama.cpp, src/llama-vocab.cpp, which has the pattern of each family,
 * and the pattern of the original tokenizer.json if it differs in form.
 */
#ifndef IMPORT_GGUF_TOKENIZER_PRIVATE_H
#define IMPORT_GGUF_TOKENIZER_PRIVATE_H
#include "import/gguf.h"

/* The text, free() it; NULL: the file has no tokenizer. path is for messages. If the file stores a
 * tokenizer.json (tokenizer.huggingface.json), it is returned. An unsupported kind and contradictory lists
 * are fatal errors. */
char *gguf_tokenizer(const struct gguf *g, const char *path);
#endif
