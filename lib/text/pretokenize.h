/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pretokenize.h -- a text cut into words, which tokens do not cross
 *
 * Internal to lib/text. Kinds are rows of a table in pretokenize.c: Split, Digits, Punctuation, Whitespace,
 * WhitespaceSplit, CharDelimiterSplit, ByteLevel, Metaspace. Each is made of cuts, which cut or rewrite
 * what the one before hands on, piece by piece, so that work space is a piece.
 *
 * Source: https://github.com/huggingface/tokenizers (pre_tokenizers, tokenizer/normalizer.rs).
 */
#ifndef TEXT_PRETOKENIZE_H
#define TEXT_PRETOKENIZE_H
#include <jansson.h>
#include <stddef.h>
#include "text/normalize.h"

/* What becomes of matches of a pattern and of what stands between them; both are spans. */
enum behavior {
	BEHAVIOR_REMOVED,	/* matches are dropped */
	BEHAVIOR_ISOLATED,	/* each span is a piece */
	BEHAVIOR_PREVIOUS,	/* a match belongs to what stands between it and the match before */
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

/* The member "pre_tokenizer" of a tokenizer.json; name: for messages. */
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
