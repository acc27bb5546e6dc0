/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_tokenizer_private.h -- a tokenizer.json for the tokenizer in a GGUF file: its ids, but for the cases
 * below
 *
 * Kinds (tokenizer.ggml.model) are "gpt2", byte-level BPE by merges, whose pre-tokenizer is named by
 * tokenizer.ggml.pre, and "llama", the BPE of SentencePiece: of all pairs of neighbours that together are a
 * token, the one of the highest score is merged first, the leftmost of several. A tokenizer.json has a list
 * of merges by rank instead. It is made of every way to cut a token into two tokens, by descending score;
 * cuts of equal score by the length of the left part, longest first, then of the right part, then by the
 * ids, as transformers orders them. Where two cuts of one token, or two tokens of one score, compete in a
 * text, the rank decides and not the place; so it is in the tokenizer.json of Llama and Mistral.
 *
 * Control tokens become special added tokens, user-defined ones added tokens that are always read in a text.
 * No normalizer is made but SentencePiece's, as llama.cpp has none (Qwen2's tokenizer.json has NFC).
 *
 * Source: https://github.com/ggml-org/llama.cpp, src/llama-vocab.cpp, which names each family's pattern and
 * the original tokenizer.json's where it differs in form.
 */
#ifndef IMPORT_GGUF_TOKENIZER_PRIVATE_H
#define IMPORT_GGUF_TOKENIZER_PRIVATE_H
#include "import/gguf.h"

/* The text, free() it, or NULL where the file has no tokenizer; path is for messages. A file that holds a
 * tokenizer.json (tokenizer.huggingface.json) gives that. Dies on a kind that is not known, and on lists
 * that contradict each other. */
char *gguf_tokenizer(const struct gguf *g, const char *path);
#endif
