/* SPDX-License-Identifier: GPL-3.0-or-later */
/* seal.c -- see seal.h */
#include "io/seal.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/number.h"
#include "base/size.h"
#include "io/file.h"

static const char title[] = "ptqtools: a finished part   \nbytes ";
enum {
	TITLE = sizeof title - 1,
	LENGTH = 20,			/* digits, or spaces before them */
	DIGEST_AT = SEAL - DIGEST_DIGITS - 1,
};
_Static_assert(TITLE + LENGTH + sizeof "\nsha256 " - 1 + DIGEST_DIGITS + 1 == SEAL, "a seal has SEAL bytes");

static void put_seal(char seal[SEAL + 1], size_t n, const char *digest)
{
	snprintf(seal, SEAL + 1, "%s%*zu\nsha256 %s\n", title, LENGTH, n, digest);
}

void seal_make(char seal[SEAL + 1], size_t n, const void *image)
{
	char *digest = digest_pieces(n, (void *)(uintptr_t)image, NULL);

	put_seal(seal, n, digest);
	free(digest);
}

/* The length of the part in a seal; 0 if there is no seal, or if the part does not fit into n bytes. */
static size_t length_of(size_t n, const unsigned char at[n])
{
	char text[LENGTH + 1] = "";
	const char *end;
	size_t y;

	if (n < SEAL)
		return 0;
	memcpy(text, at + TITLE, LENGTH);
	end = number_size(text + strspn(text, " "), &y);
	return end && !*end && y <= n - SEAL ? y : 0;
}

enum seal_state seal_check(size_t n, const unsigned char at[n], size_t *length)
{
	static const unsigned char none[SEAL];
	char seal[SEAL + 1], *digest;

	*length = length_of(n, at);
	if (!*length)
		return memcmp(at, none, min(n, SEAL)) ? SEAL_DAMAGED : SEAL_CUT;
	digest = digest_pieces(*length, (void *)(uintptr_t)(at + SEAL), file_drop);
	put_seal(seal, *length, digest);
	free(digest);
	return memcmp(seal + DIGEST_AT, at + DIGEST_AT, DIGEST_DIGITS) ? SEAL_DAMAGED : SEAL_WHOLE;
}

bool seal_begins(size_t n, const unsigned char at[n])
{
	return !memcmp(at, title, min(n, TITLE));
}
