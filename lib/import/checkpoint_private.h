/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint_private.h -- functions shared by checkpoint.c and checkpoint_expect.c */
#ifndef IMPORT_CHECKPOINT_PRIVATE_H
#define IMPORT_CHECKPOINT_PRIVATE_H
#include "import/checkpoint.h"

/* The entry of the path, or NULL. Only valid before entries are sorted into parts. */
struct entry *checkpoint_find(const struct checkpoint *k, const char *path);
struct entry *checkpoint_member(const struct checkpoint *k, const char *group, const char *name);
/* Marks the entries of the class of the configuration as known, or as unused. It is a fatal error if one is
 * missing or has another shape. */
void checkpoint_expect(const struct checkpoint *k);
#endif
