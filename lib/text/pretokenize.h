/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pretokenize.h -- cuts a text into words, which tokens do not cross
 *
 * Internal to lib/text. The kinds of pre-tokenizers are rows of a table in pretokenize.c: Split, Digits,
 * Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit, ByteLevel, Metaspace. Each consists of
 * cuts. A cut divides or rewrites the pieces from the cut before it, one by one, so the work space is one
 * piece.
 *
 * Calling sequence: cuts_read(); for each encoding cuts_begin(), cuts_run() on each text, cuts_end();
 * cuts_free().
 *
 * Source: https://github.com/huggingface/tokenizers (pre_tokenizers, tokenizer/normalizer.rs).
 */
#ifndef TEXT_PRETOKENIZE_H
#define TEXT_PRETOKENIZE_H
#include <jansson.h>
#include <stddef.h>
#include "text/normalize.h"

/* The treatment of the spans of a piece: matches of the pattern, and the text between matches. */
enum behavior {
	BEHAVIOR_REMOVED,	/* matches are removed */
	BEHAVIOR_ISOLATED,	/* each span is a piece */
	BEHAVIOR_PREVIOUS,	/* a match is joined to the span before it */
	BEHAVIOR_NEXT,
	BEHAVIOR_CONTIGUOUS,	/* neighbours of a kind are a piece */
};

enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER };	/* when something is put before a piece */

struct cutter;

struct cut {
	void (*run)(struct cutter *w, size_t i, struct piece p);
	struct regex *pattern;
	enum behavior behavior;
	bool invert;		/* what does not match is a match */
	enum scheme scheme;
	struct step replace;	/* of Metaspace; its `to` is also what a scheme puts */
};

struct cuts {
	size_t n;
	struct cut *cut;
};

/* The member "pre_tokenizer" of a tokenizer.json; name: a name for messages. */
struct cuts cuts_read(const char *name, const json_t *root);
void cuts_free(struct cuts *c);

/* Cuts texts, calling use for each word in turn, and drop for what a cut removes; valid until they return. */
struct cutter {
	const struct cuts *cuts;
	struct weighted *work;	/* [2 · cuts] */
	void (*use)(void *arg, struct piece word);
	void (*drop)(void *arg, struct piece gap);
	void *arg;
	size_t room;		/* bytes that steps may still make of all texts, together; 0: any number */
	const char *name;	/* of the tokenizer, for messages */
};
struct cutter cuts_begin(const struct cuts *c, void (*use)(void *arg, struct piece word),
	void (*drop)(void *arg, struct piece gap), void *arg);
void cuts_run(struct cutter *w, struct piece text);
void cuts_end(struct cutter *w);
#endif
