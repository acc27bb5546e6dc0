/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * digest.h -- SHA-256 (FIPS 180-4), by Nettle
 *
 * Digests are DIGEST_DIGITS hexadecimal digits in lower case, to be freed by the caller.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include <stddef.h>

enum { DIGEST_DIGITS = 64 };
/* Digest of n bytes. */
char *digest_of(size_t n, const char text[n]);
/* Digest of data that is added chunk by chunk: begin, add as often as needed, end. digest_end() frees d. */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *d, size_t n, const void *data);
char *digest_end(struct digest *d);
/* Digest of large data, by all threads. The data is divided into pieces of DIGEST_PIECE bytes; the last piece
 * may be shorter. The result is the digest of the concatenated binary digests of the pieces. done: NULL, or
 * called with each piece after it was read. */
enum { DIGEST_PIECE = 16 << 20 };
char *digest_pieces(size_t n, void *data, void (*done)(void *piece, size_t n));
#endif
