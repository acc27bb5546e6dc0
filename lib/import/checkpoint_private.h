/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint_private.h -- what checkpoint.c and checkpoint_expect.c share */
#ifndef IMPORT_CHECKPOINT_PRIVATE_H
#define IMPORT_CHECKPOINT_PRIVATE_H
#include "import/checkpoint.h"

/* The entry of the path, or NULL; before there are parts. */
struct entry *checkpoint_find(const struct checkpoint *k, const char *path);
struct entry *checkpoint_member(const struct checkpoint *k, const char *group, const char *name);
/* Marks the entries that the class of the configuration has as known, or unused. Dies where one is
 * missing or of another shape. */
void checkpoint_expect(const struct checkpoint *k);
#endif
