/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nearest.h -- edit distance of a misspelled word from a known one */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* Levenshtein's: letters inserted, deleted or replaced. known: in lower case; the case of `word` does not
 * matter, nor what follows the 31st letter of either. */
int nearest_distance(const char *word, const char *known);
#endif
