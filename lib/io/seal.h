/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * seal.h -- the header of each part in FILE.part (io/resume.h): its length and its digest
 *
 * A seal is three lines of text of SEAL bytes in all (docs/format.md). It is written after the part is on
 * the disk, so a part that matches its seal is complete and unchanged.
 */
#ifndef IO_SEAL_H
#define IO_SEAL_H
#include <stdbool.h>
#include <stddef.h>

enum { SEAL = 128 };		/* bytes: datasets stay aligned */
/* Makes the seal of a part of n bytes. */
void seal_make(char seal[SEAL + 1], size_t n, const void *image);
/*
 * Checks a seal and its part at the start of n > 0 bytes of a mapped file. SEAL_WHOLE: both match, and
 * *length is the length of the part. SEAL_CUT: the seal is all zero, so the part was not finished.
 * SEAL_DAMAGED: anything else.
 */
enum seal_state { SEAL_WHOLE, SEAL_CUT, SEAL_DAMAGED };
enum seal_state seal_check(size_t n, const unsigned char at[n], size_t *length);
/* Whether the n bytes start with the first line of a seal, or are its first n bytes. */
bool seal_begins(size_t n, const unsigned char at[n]);
#endif
