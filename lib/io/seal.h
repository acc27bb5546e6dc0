/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * seal.h -- what stands before each image in a file that keeps finished parts: how long it is, and its digest
 *
 * Three lines of text, SEAL bytes in all. It is written when the image is on the disk: where it is, and fits
 * what follows it, the image is whole and as it was written.
 */
#ifndef IO_SEAL_H
#define IO_SEAL_H
#include <stdbool.h>
#include <stddef.h>

enum { SEAL = 128 };		/* bytes: datasets stay aligned */
/* Of an image of n bytes. */
void seal_make(char seal[SEAL + 1], size_t n, const void *image);
/*
 * Looks at the n > 0 bytes that a file has from where a seal should be: SEAL_WHOLE, and stores the image's
 * length; SEAL_CUT: the image was being written, nothing of the seal is there; SEAL_DAMAGED: anything else.
 */
enum seal_state { SEAL_WHOLE, SEAL_CUT, SEAL_DAMAGED };
enum seal_state seal_check(size_t n, const unsigned char at[n], size_t *length);
/* Whether the bytes begin as a seal does, as far as they go. */
bool seal_begins(size_t n, const unsigned char at[n]);
#endif
