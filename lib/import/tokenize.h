/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenize.h -- conversion of texts to tokens files and back, with the tokenizer of a model
 *
 *	struct vocabulary v = vocabulary_open(path);
 *
 *	vocabulary_encode(&v, text, tokens, special, null);
 *	vocabulary_encode_chat(&v, text, tokens, template, date);
 *	vocabulary_decode(&v, tokens, text);
 *	vocabulary_close(&v);
 *
 * Errors are fatal.
 */
#ifndef IMPORT_TOKENIZE_H
#define IMPORT_TOKENIZE_H
#include <stdbool.h>
#include <stddef.h>
#include "import/texts.h"
#include "io/part.h"
#include "model/config.h"
#include "text/tokenizer.h"

/* The ids of a model file, of a source (import/source.h), or bytes (t NULL). */
struct vocabulary {
	const char *path;		/* of the model, or "--bytes" */
	char *name, *json;		/* of the tokenizer, and its text */
	char *text[TEXTS];		/* of a source, for chat templates; NULL: absent */
	struct tokenizer *t;
	struct part *part;		/* of a model file */
	size_t size;
	long bos;
	bool add_bos;
};

/* path: a model file or a source for model-import, as vocabulary_of(); NULL: ids are bytes, and NUL is the
 * BOS. An unsupported tokenizer is an error. */
struct vocabulary vocabulary_open(const char *path);
/* The vocabulary of the model with the first part `part`, which may be closed afterwards. Without a tokenizer
 * the model must have 256 ids, which are bytes; the BOS is that of the config, or NUL. c NULL: no config. */
struct vocabulary vocabulary_of(const struct part *part, const struct config *c);
void vocabulary_close(struct vocabulary *v);
/* Ids of n bytes of text, none for n = 0; free them by encoding_free(). special: special tokens in the text
 * are recognized. An id that is not below `size` is an error. */
struct encoding vocabulary_ids(const struct vocabulary *v, size_t n, const char text[n], bool special);
/* Writes the text at `path` as a tokens file. null: the input has several texts, each ended by NUL (optional
 * after the last), and each becomes a sequence (/sequence). An empty text is an error. */
void vocabulary_encode(const struct vocabulary *v, const char *path, const char *to, bool special, bool null);
/* Writes the conversations at `path`, JSON lines (import/chat.h), as a tokens file: each becomes a sequence,
 * the text that the model's chat template of this name makes of it, with special tokens read. Blank lines
 * are skipped. The attribute add_bos is 0, since templates write the BOS. date: "YYYY-MM-DD" or NULL. */
void vocabulary_encode_chat(const struct vocabulary *v, const char *path, const char *to,
	const char *template, const char *date);
/* Writes the tokens file at `path` as a text. If another tokenizer made it, a warning is printed. A file of
 * another number of ids, or an id without a token, is an error. */
void vocabulary_decode(const struct vocabulary *v, const char *path, const char *to);
#endif
