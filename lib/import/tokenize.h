/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenize.h -- texts as tokens files and back, by the tokenizer of a model
 */
#ifndef IMPORT_TOKENIZE_H
#define IMPORT_TOKENIZE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"
#include "model/config.h"
#include "text/tokenizer.h"

/* Where ids come from: a model file, a source of a model, or bytes (t NULL). */
struct vocabulary {
	const char *path;		/* of the model, or "--bytes" */
	char *name, *json;		/* of the tokenizer, and its text */
	struct tokenizer *t;
	struct part *part;		/* of a model file */
	size_t size;
	long bos;
	bool add_bos;
};

/* path: a model file, or a source that model-import takes (import/source.h); NULL: ids are bytes, NUL is the
 * BOS. Dies where the model has no tokenizer, or one that cannot be read. */
struct vocabulary vocabulary_open(const char *path);
/* Of the model that `part` is the first part of, which need not stay. Without a tokenizer 256 ids are
 * bytes, and its BOS is the config's, or NUL; dies where there are more or fewer. */
struct vocabulary vocabulary_of(const struct part *part, const struct config *c);
void vocabulary_close(struct vocabulary *v);
/* Ids of n bytes of text, n = 0: none. special: special tokens are looked for in it. Dies where an id is not
 * below `size`. Free them by encoding_free(). */
struct encoding vocabulary_ids(const struct vocabulary *v, size_t n, const char text[n], bool special);
/* The text at path as a tokens file. null: there are as many texts, each a sequence (/sequence), as NULs end;
 * the last one may do without. Dies where a text is empty. */
void vocabulary_encode(const struct vocabulary *v, const char *path, const char *to, bool special, bool null);
/* The tokens file at path as a text. Warns where another tokenizer made it; dies where that had another
 * number of ids, or an id has no token. */
void vocabulary_decode(const struct vocabulary *v, const char *path, const char *to);
#endif
