/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vocabulary.h -- hash tables of a tokenizer: tokens, merges, and seams
 *
 * Internal to lib/text. Tables use open addressing with linear probing and are at most half full. The
 * number of entries is set when a table is made, and must not be exceeded. The caller owns the strings, and
 * frees the slots.
 *
 * A seam is a pair of characters (c, d) such that a merge (x c, d y) exists. The set of seams is a table of
 * bits, one for each hash of a pair. It can report a pair that is not a seam, but never misses a seam.
 */
#ifndef TEXT_VOCABULARY_H
#define TEXT_VOCABULARY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NONE = -1 };	/* no such id, rank or index */

/* Strings to ids. */
struct words {
	size_t mask;
	struct word { const char *text; uint32_t length; int32_t id; } *slot;	/* text NULL: free */
};

/* Pairs of ids to the rank of their merge and the merged id. */
struct merges {
	size_t mask;
	struct merge { int32_t left, right, rank, id; } *slot;	/* rank < 0: free */
};

uint64_t text_hash(const char *s, size_t n);

struct words words_make(size_t n);
int32_t words_find(const struct words *w, const char *s, size_t n);	/* or NONE */
void words_put(struct words *w, const char *s, size_t n, int32_t id);	/* replaces an equal string */

struct merges merges_make(size_t n);
/* The slot of a pair; if the pair is not in the table, the free slot for it. */
struct merge *merges_slot(const struct merges *m, int32_t left, int32_t right);

uint64_t *seams_make(void);
/* Adds the seam of a merge of two strings that are not empty. */
void seams_put(uint64_t *seam, const char *left, size_t n, const char *right, size_t m);
/* Whether two characters, given by text_hash(), may be a seam. */
bool seams_have(const uint64_t *seam, uint64_t left, uint64_t right);
#endif
