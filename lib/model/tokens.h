/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokens.h -- a tokens file: ids, and what they were made for
 */
#ifndef MODEL_TOKENS_H
#define MODEL_TOKENS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"

/* Whether the text ends in a newline: no, or not known; its last id stands for that alone; for more. */
enum newline { NEWLINE_NONE, NEWLINE_ALONE, NEWLINE_WITHIN };

/* An image, and the tokens that stand for it: views of the file. */
struct token_image {
	size_t number;			/* in the file */
	size_t first, n;		/* tokens first .. first + n - 1, all of them visual */
	size_t frames, rows, columns;	/* of patches, as the model's processor makes them */
	size_t h, w;
	const uint8_t *rgb;		/* [h, w, 3] as decoded; NULL: the file at path is decoded for it */
	char *path;
	size_t line;			/* of the file that names it */
};

struct tokens {
	size_t n;
	const int32_t *id;		/* [n], views of the file */
	const uint16_t *bytes;		/* [n] length of each token's text, or NULL */
	int32_t bos;			/* -1: the tokenizer has none */
	bool add_bos;			/* the tokenizer puts it before a text */
	size_t vocab;			/* of the tokenizer; 0: not known */
	enum newline newline;
	/* The place of each token where the file says so, views; NULL: the usual one (docs/format.md). */
	size_t sequences;		/* texts of their own; 0: all are one */
	const int64_t *sequence;	/* [sequences + 1] first token of each, then n */
	const int32_t *position, *index;	/* [n], from 0; position [n][axes] */
	size_t axes;			/* numbers of a position; 0: 1 */
	const uint8_t *modality;	/* [n] 0: text, 1: visual */
	/* Images, in the order of their tokens, which do not overlap and lie within a sequence each. If
	 * there are any, a token is visual exactly where it is of one. */
	size_t images;
	const struct token_image *image;	/* [images] */
	/* [n] the visual token that this is, of all images counted from 0; -1: none. NULL: no images. */
	const int64_t *feature;
};

/*
 * The ids of a tokens file for a model, of which `model` is the first part (NULL: no model) and vocab the
 * size of its vocabulary. Dies if an id is not below it, or if the file was made for a vocabulary of another
 * size, unless `force`; warns if it was made by another tokenizer. limit: first ids only; 0: all, and of the
 * sequences those that they begin; of a reordered sequence, and of an image, all tokens or none.
 */
struct tokens tokens_read(const struct part *part, const struct part *model, size_t vocab, bool force,
	size_t limit);

/* Of any tokens file only n, id, sequences, sequence, index and modality, whatever made it. */
struct tokens tokens_order(const struct part *part);

/* Warns if the file says that it was made by another tokenizer than this tokenizer.json of `name`. */
void tokens_compare(const struct part *part, const char *name, const char *tokenizer);

/* SHA-256 of the ids, little-endian: the attribute tokens_sha256 of /tokens, which aifs-order keeps, or of
 * the ids as they are; free() it. And writes it of n ids. */
char *tokens_digest(const struct part *part);
void tokens_sign(struct output *out, size_t n, const int32_t id[n]);

/* The attributes of /tokens, by tokenizer.json's text (NULL: none) and what it or the config says. */
void tokens_describe(struct output *out, const char *tokenizer, long bos, bool add_bos, size_t vocab);

/* The row of --force-tokens. */
#define OPTION_FORCE_TOKENS(var) { 0, "force-tokens", OPTION_BOOL(var), NULL, \
	"take tokens that were made for a vocabulary of another size" }

/*
 * Visual tokens first, text after, each in its order (MQuant section 4.1, AIFS: vision/aifs.h).
 * order[i]: the token of a sequence that comes to place i. modality: 0 text, else visual. index: what the
 * tokens' places were before, 0 .. n - 1 each once; NULL: they stand in their places.
 */
void tokens_visual_first(size_t n, size_t order[n], const uint8_t modality[n], const int32_t *index);
#endif
