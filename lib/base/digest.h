/* SPDX-License-Identifier: GPL-3.0-or-later */
/* digest.h -- SHA-256 (FIPS 180-4), by libmd */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include <stddef.h>

/* 64 hexadecimal digits; free() them. */
char *digest_of(size_t n, const char text[n]);
#endif
