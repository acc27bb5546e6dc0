/* SPDX-License-Identifier: GPL-3.0-or-later */
/* same.h -- objects of two parts compared: attributes, numbers, texts */
#ifndef IO_SAME_H
#define IO_SAME_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"

/* Paths of all objects of the part, groups before what is in them, in natural order;
 * tree_free_paths() them. */
char **same_objects(const struct part *part, size_t *n);
/*
 * Whether both parts have the object, with the same attributes, and of datasets the same type, extents and
 * data; of groups also all that is below. A tied head is the same as a copy of it. Data that are neither
 * numbers nor one text count as the same where their size is.
 */
bool same_object(const struct part *a, const struct part *b, const char *path);
/* Whether an object of both has the same attributes. */
bool same_attributes(const struct part *a, const struct part *b, const char *path);
#endif
