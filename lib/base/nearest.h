/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nearest.h -- edit distance between a misspelled word and a known word */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* Levenshtein distance: the number of inserted, deleted or replaced letters. known: in lower case; the case
 * of `word` is ignored. Only the first 31 letters of each are compared. */
int nearest_distance(const char *word, const char *known);
#endif
