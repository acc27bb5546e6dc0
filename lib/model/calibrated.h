/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrated.h -- the token ids on which a file was calibrated: root attribute `calibration`
 *
 * It has a line for each text, "DIGEST FIRST END": the digest of all ids of a tokens file
 * (tokens_digest()), and the range of used ids, FIRST to END - 1. Hessians have it, and models that were
 * made with Hessians or calibrated on tokens.
 */
#ifndef MODEL_CALIBRATED_H
#define MODEL_CALIBRATED_H
#include <stddef.h>
#include "base/digest.h"
#include "io/part.h"

#define CALIBRATED "calibration"	/* the name of the attribute */

/* A line: its digest, of DIGEST_DIGITS characters, is the start of the line. */
struct calibrated_range { const char *digest; size_t first, end; };
/* Calls visit for every valid line of the text of an attribute; NULL: none. */
void calibrated_each(const char *text, void (*visit)(void *arg, const struct calibrated_range *r), void *arg);

/* The line of the first n ids of a tokens file; the caller frees it. */
char *calibrated_line(const struct part *tokens, size_t n);
/* Writes the lines of n files (NULL: skipped) without duplicates, and `line` (NULL: none). Called between
 * begin and end of part 0. */
void calibrated_write(struct output *out, size_t n, const struct part *const from[n], const char *line);
/* Warns if the model was calibrated on some of the first n ids of the tokens file. */
void calibrated_warn(const struct part *model, const struct part *tokens, size_t n);
/* Warns if two of n files that are summed were calibrated on the same ids; names the first such pair. */
void calibrated_twice(size_t n, const struct part *const from[n]);
#endif
