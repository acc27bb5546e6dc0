/* SPDX-License-Identifier: GPL-3.0-or-later */
/* digest.h -- SHA-256 (FIPS 180-4), by libmd */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include <stddef.h>

enum { DIGEST_DIGITS = 64 };
/* 64 hexadecimal digits; free() them. */
char *digest_of(size_t n, const char text[n]);
/* The same of what is added piece by piece; digest_end() frees d. */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *d, size_t n, const void *data);
char *digest_end(struct digest *d);
/* Of large data, by all threads: the digest of the digests, in binary and one after the other, of pieces of
 * DIGEST_PIECE bytes, the last of which may be shorter. done: called with each piece that was read, or
 * NULL. */
enum { DIGEST_PIECE = 16 << 20 };
char *digest_pieces(size_t n, void *data, void (*done)(void *piece, size_t n));
#endif
