/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * windows.h -- a tokens file, and how it is cut into windows
 *
 * A window is `ctx` token ids that a model sees at once; its targets are the
 * ids at positions first .. end - 1, each predicted from the position before.
 * Conventions (SPEC section 10) are rows of a table in windows.c.
 */
#ifndef MODEL_WINDOWS_H
#define MODEL_WINDOWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/image.h"

struct tokens {
	size_t n;
	const int32_t *id;		/* [n], views of the file */
	const uint16_t *bytes;		/* [n] length of each token's text, or NULL */
	int32_t bos;			/* -1: the tokenizer has none */
	bool add_bos;			/* the tokenizer puts it before a text */
	size_t vocab;			/* of the tokenizer; 0: not known */
};

/*
 * The ids of a tokens file for a model, of which `part` is the first part (NULL: no model) and vocab the size of its
 * vocabulary. Dies if an id is not below it, or if the file was made for a vocabulary of another size, unless `force`;
 * warns if it was made by another tokenizer. limit: first ids only; 0: all.
 */
struct tokens tokens_read(const struct image *image, const struct image *part, size_t vocab, bool force, size_t limit);

/* The attributes of /tokens, by tokenizer.json's text (NULL: none) and what it or the config says. */
void tokens_describe(struct output *out, const char *tokenizer, long bos, bool add_bos, size_t vocab);

/* The row of --force-tokens. */
#define OPTION_FORCE_TOKENS(var) { 0, "force-tokens", OPTION_BOOL, var, NULL, \
	.help = "take tokens that were made for a vocabulary of another size" }

struct windows {
	size_t n, ctx;
	int32_t *id;			/* [n][ctx] */
	size_t *first, *end;		/* [n] targets of each window */
	int64_t *source;		/* [n] place in the tokens of position 0; BOS there may make it -1 or no place */
	size_t targets;			/* of all windows */
	uint64_t bytes;			/* of the text of all targets; 0: not known */
};

/* Names of the conventions, NULL-terminated, for an OPTION_CHOICE; the index is what windows_cut() takes. */
extern const char *const windows_conventions[];

enum { WINDOWS_LONGEST = 1 << 24 };
/* The ctx that is meant when none is given: the model's, at most 2048. */
size_t windows_ctx(size_t ctx, size_t positions);
/* Dies when the tokens do not fill one window, or the convention needs a BOS that the file does not name. */
struct windows windows_cut(const char *name, const struct tokens *t, int convention, size_t ctx);
/* Id that position `row` of all windows (window · ctx + position) predicts, or -1 where that is no target. */
int64_t windows_target(const struct windows *w, size_t row);
/* Keeps windows i, i + n, i + 2n, ... counted from 1. */
void windows_shard(struct windows *w, size_t i, size_t n);
void windows_free(struct windows *w);
#endif
