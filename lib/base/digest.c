/* SPDX-License-Identifier: GPL-3.0-or-later */
/* digest.c -- see digest.h */
#include "base/digest.h"
#include <sha2.h>
#include <sys/types.h>
#include "base/error.h"

char *digest_of(size_t n, const char text[n])
{
	char *hex = xalloc(SHA256_DIGEST_STRING_LENGTH, 1);

	if (!SHA256Data((const uint8_t *)text, n, hex))
		die("out of memory");
	return hex;
}
