/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * seal.h -- the header of each part in a file of finished parts (io/resume.h): its length and its digest
 *
 * Three lines of text, SEAL bytes in all (docs/format.md). It is written when the part is on the disk: a
 * part that fits its seal is complete and unchanged.
 */
#ifndef IO_SEAL_H
#define IO_SEAL_H
#include <stdbool.h>
#include <stddef.h>

enum { SEAL = 128 };		/* bytes: datasets stay aligned */
/* Makes that of a part of n bytes. */
void seal_make(char seal[SEAL + 1], size_t n, const void *image);
/*
 * Checks the n > 0 bytes of a mapped file from where a seal should begin. SEAL_WHOLE: stores the part's
 * length. SEAL_CUT: the seal is all zero, so that the part was being written. SEAL_DAMAGED: anything else.
 */
enum seal_state { SEAL_WHOLE, SEAL_CUT, SEAL_DAMAGED };
enum seal_state seal_check(size_t n, const unsigned char at[n], size_t *length);
/* Whether the n bytes are those of a seal's first line, as far as either goes. */
bool seal_begins(size_t n, const unsigned char at[n]);
#endif
