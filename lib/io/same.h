/* SPDX-License-Identifier: GPL-3.0-or-later */
/* same.h -- comparison of objects of two parts: attributes, numbers, texts */
#ifndef IO_SAME_H
#define IO_SAME_H
#include <stdbool.h>
#include <stddef.h>
#include "io/part.h"

/* The paths of all objects of the part, in natural order, each group before its members. Free them with
 * tree_free_paths(). */
char **same_objects(const struct part *part, size_t *n);
/*
 * Whether both parts have the object with equal attributes. Datasets must have equal types, extents and
 * data, groups equal members. A tied head equals a copy of it. Data that are neither numbers nor one text
 * are equal if their sizes are.
 */
bool same_object(const struct part *a, const struct part *b, const char *path);
/* Whether the object has equal attributes in both parts, except tied_to. */
bool same_attributes(const struct part *a, const struct part *b, const char *path);
#endif
