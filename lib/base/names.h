/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * names.h -- the names of the rows of a table, for messages
 *
 *	static const struct kind { const char *name; int bits; } kinds[] = { { "a", 1 }, { NULL } };
 *	misuse("... expected one of %s", names_of_rows(kinds, sizeof *kinds));
 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H
#include <stddef.h>

/* "a, b, c"; free() it. The name is the first member of a row. The row after the last one has the name NULL.
 * size: bytes of a row. */
char *names_of_rows(const void *rows, size_t size);
#endif
