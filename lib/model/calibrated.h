/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrated.h -- the token ids on which a file was calibrated: root attribute `calibration`
 *
 * It has a line for each text, "DIGEST FIRST END": the digest of all ids of a tokens file
 * (tokens_digest()), and the range of used ids, FIRST to END - 1. For windows that were drawn from this
 * range, " random SEED WINDOWS" follows; they count as the whole range. Hessians have the attribute, and
 * models that were made with Hessians or calibrated on tokens. The record of an evaluation has one line as
 * attribute `evaluation`.
 */
#ifndef MODEL_CALIBRATED_H
#define MODEL_CALIBRATED_H
#include <stdbool.h>
#include <stddef.h>
#include "base/digest.h"
#include "io/part.h"

/* Names of the attributes. */
#define CALIBRATED "calibration"
#define EVALUATED "evaluation"

/* A line. digest: its DIGEST_DIGITS characters begin a text; windows 0: all ids, else windows drawn by the
 * seed. */
struct calibrated_range { const char *digest; size_t first, end, seed, windows; };
/* Calls visit for every valid line of the text of an attribute; NULL: none. */
void calibrated_each(const char *text, void (*visit)(void *arg, const struct calibrated_range *r), void *arg);

/* The line of the used ids of a tokens file; the caller frees it. used: without a digest. */
char *calibrated_line(const struct part *tokens, const struct calibrated_range *used);
/* Parses a line; false if it is not valid. */
bool calibrated_parse(const char *line, struct calibrated_range *r);
/* Writes the lines of n files (NULL: skipped) without duplicates, and `line` (NULL: none). Called between
 * begin and end of part 0. */
void calibrated_write(struct output *out, size_t n, const struct part *const from[n], const char *line);
/* Warns if the model was calibrated on some of the ids of this line. tokens: their file, for the message. */
void calibrated_warn(const struct part *model, const struct part *tokens, const char *line);
/* Warns if two of n files that are summed were calibrated on the same ids; names the first such pair. */
void calibrated_twice(size_t n, const struct part *const from[n]);
#endif
