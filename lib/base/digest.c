/* SPDX-License-Identifier: GPL-3.0-or-later */
/* digest.c -- see digest.h */
#include "base/digest.h"
#include <sha2.h>
#include <stdlib.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"

char *digest_of(size_t n, const char text[n])
{
	char *hex = xalloc(SHA256_DIGEST_STRING_LENGTH, 1);

	if (!SHA256Data((const uint8_t *)text, n, hex))
		die("out of memory");
	return hex;
}

struct digest { SHA2_CTX c; };

struct digest *digest_begin(void)
{
	struct digest *d = xalloc(1, sizeof *d);

	SHA256Init(&d->c);
	return d;
}

void digest_add(struct digest *d, size_t n, const void *data)
{
	SHA256Update(&d->c, data, n);
}

char *digest_end(struct digest *d)
{
	char *hex = xalloc(SHA256_DIGEST_STRING_LENGTH, 1);

	SHA256End(&d->c, hex);
	free(d);
	return hex;
}

char *digest_pieces(size_t n, void *data, void (*done)(void *piece, size_t n))
{
	const size_t pieces = n ? ceil_div(n, DIGEST_PIECE) : 1;
	unsigned char (*all)[SHA256_DIGEST_LENGTH] = xalloc(pieces, sizeof *all);
	char *hex;

	#pragma omp parallel for num_threads(threads_for(pieces)) schedule(dynamic)
	for (size_t i = 0; i < pieces; i++) {
		const size_t at = i * DIGEST_PIECE, m = min(DIGEST_PIECE, n - at);
		SHA2_CTX c;

		SHA256Init(&c);
		SHA256Update(&c, (const uint8_t *)data + at, m);
		SHA256Final(all[i], &c);
		if (done)
			done((char *)data + at, m);
	}
	hex = digest_of(pieces * sizeof *all, (const char *)all);
	free(all);
	return hex;
}
