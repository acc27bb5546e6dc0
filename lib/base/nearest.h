/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nearest.h -- how far a word is from one that may have been meant */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* Levenshtein's distance; case does not matter, nor what stands behind 31 letters. */
int nearest_distance(const char *a, const char *b);
#endif
