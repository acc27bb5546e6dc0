/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokens.h -- a tokens file: ids, and their sequences, order and images
 *
 * Datasets and attributes are in docs/format.md. A file that is not valid is a fatal error.
 */
#ifndef MODEL_TOKENS_H
#define MODEL_TOKENS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"

/* Whether the text ends in a newline: no, or not known; the last id is the newline alone; the last id has
 * more text. */
enum newline { NEWLINE_NONE, NEWLINE_ALONE, NEWLINE_WITHIN };

/* An image and its tokens; views of the file. */
struct token_image {
	size_t number;			/* its number in the file */
	size_t first, n;		/* tokens first .. first + n - 1, all of them visual */
	size_t frames, rows, columns;	/* its patches, by the model's processor */
	size_t h, w;
	const uint8_t *rgb;		/* [h, w, 3] decoded; NULL: the file at path is decoded when needed */
	char *path;
	size_t line;			/* line in the file that names it */
};

struct tokens {
	size_t first;			/* ids of the file that are left out before these */
	size_t n;
	const int32_t *id;		/* [n], a view of the file */
	const uint16_t *bytes;		/* [n] length of each token's text, or NULL */
	int32_t bos;			/* -1: the tokenizer has none */
	bool add_bos;			/* the tokenizer inserts it */
	size_t vocab;			/* of the tokenizer; 0: unknown */
	enum newline newline;
	/* The position of each token, if the file has it; views; NULL: the default (docs/format.md). */
	size_t sequences;		/* separate sequences; 0: one */
	const int64_t *sequence;	/* [sequences + 1] first token of each, and n at the end */
	const int32_t *position, *index;	/* [n], from 0; position [n][axes] */
	size_t axes;			/* coordinates of a position; 0: 1 */
	const uint8_t *modality;	/* [n] 0: text, 1: visual */
	/* Images, in the order of their tokens. Images do not overlap, and each lies within one sequence.
	 * If there are images, a token is visual exactly if it belongs to one. */
	size_t images;
	const struct token_image *image;	/* [images] */
	/* [n] the number of the visual token, counted over all images from 0; -1: text. NULL: no images. */
	const int64_t *feature;
};

/*
 * Reads ids skip .. skip + limit - 1 of a tokens file for a model. model: its first part (NULL: no model).
 * vocab: the size of its vocabulary. limit 0: all ids from `skip` on. A sequence may be cut at both ends. A
 * reordered sequence and an image are kept whole or dropped.
 *
 * Fatal error if no id is left, if an id is not below vocab, or if the file was made for a vocabulary of
 * another size, unless `force`. Warns if another tokenizer made it.
 */
struct tokens tokens_read(const struct part *part, const struct part *model, size_t vocab, bool force,
	size_t skip, size_t limit);

/* Reads only n, id, sequences, sequence, index, modality and images, without a model. */
struct tokens tokens_order(const struct part *part);

/* Warns if the file was made by another tokenizer than this tokenizer.json of `name`. */
void tokens_compare(const struct part *part, const char *name, const char *tokenizer);

/*
 * tokens_digest(): SHA-256 of the little-endian ids: the attribute tokens_sha256 of /tokens, which
 * aifs-order keeps, or, if it is absent, the digest of the stored ids; the caller frees it.
 * tokens_write_digest() writes the attribute for n ids.
 */
char *tokens_digest(const struct part *part);
void tokens_write_digest(struct output *out, size_t n, const int32_t id[n]);

/* Writes the attributes of /tokens. tokenizer: the text of tokenizer.json (NULL: none). The other values
 * are from it, or from the config. */
void tokens_describe(struct output *out, const char *tokenizer, long bos, bool add_bos, size_t vocab);

/* The option --force-tokens. */
#define OPTION_FORCE_TOKENS(var) { 0, "force-tokens", OPTION_BOOL(var), NULL, \
	"accept tokens of another vocabulary size" }

/*
 * The order with visual tokens first, then text, each in its order (MQuant section 4.1, AIFS:
 * vision/aifs.h). order[i]: the token at new place i of a sequence. modality: 0 text, other values visual.
 * index: the original places of the tokens, 0 .. n - 1 each once; NULL: tokens are in their original
 * places.
 */
void tokens_visual_first(size_t n, size_t order[n], const uint8_t modality[n], const int32_t *index);
#endif
