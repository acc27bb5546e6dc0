/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * calibrated.h -- which token ids a file was calibrated on: root attribute `calibration`
 *
 * A line for each text, "DIGEST FIRST END": the digest of all ids of a tokens file (tokens_digest()), and
 * which of them were used, FIRST to END - 1. Hessians have it, and models that were made with Hessians or
 * calibrated on tokens.
 */
#ifndef MODEL_CALIBRATED_H
#define MODEL_CALIBRATED_H
#include <stddef.h>
#include "io/part.h"

/* The line of the first n ids of a tokens file; free() it. */
char *calibrated_line(const struct part *tokens, size_t n);
/* Writes the lines of n files (NULL: none), each once, and `line` (NULL: none), between begin and end of
 * part 0. */
void calibrated_write(struct output *out, size_t n, const struct part *const from[n], const char *line);
/* Warns if the model was calibrated on some of the first n ids of the tokens file. */
void calibrated_warn(const struct part *model, const struct part *tokens, size_t n);
/* Warns of the first two of n files, which become one sum, that were calibrated on the same ids. */
void calibrated_twice(size_t n, const struct part *const from[n]);
#endif
