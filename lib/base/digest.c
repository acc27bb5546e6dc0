/* SPDX-License-Identifier: GPL-3.0-or-later */
/* digest.c -- see digest.h */
#include "base/digest.h"
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/size.h"
#include "base/thread.h"

struct digest { struct sha256_ctx c; };

struct digest *digest_begin(void)
{
	struct digest *d = xalloc(1, sizeof *d);

	sha256_init(&d->c);
	return d;
}

void digest_add(struct digest *d, size_t n, const void *data)
{
	sha256_update(&d->c, n, data);
}

char *digest_end(struct digest *d)
{
	uint8_t binary[SHA256_DIGEST_SIZE];
	char *hex = xalloc(DIGEST_DIGITS + 1, 1);

	sha256_digest(&d->c, sizeof binary, binary);
	base16_encode_update(hex, sizeof binary, binary);
	free(d);
	return hex;
}

char *digest_of(size_t n, const char text[n])
{
	struct digest *d = digest_begin();

	digest_add(d, n, text);
	return digest_end(d);
}

char *digest_pieces(size_t n, void *data, void (*done)(void *piece, size_t n))
{
	const size_t pieces = n ? ceil_div(n, DIGEST_PIECE) : 1;
	uint8_t (*all)[SHA256_DIGEST_SIZE] = xalloc(pieces, sizeof *all);
	char *hex;

	#pragma omp parallel for num_threads(threads_for(pieces)) schedule(dynamic)
	for (size_t i = 0; i < pieces; i++) {
		const size_t at = i * DIGEST_PIECE, m = min(DIGEST_PIECE, n - at);
		struct sha256_ctx c;

		sha256_init(&c);
		sha256_update(&c, m, (const uint8_t *)data + at);
		sha256_digest(&c, sizeof all[i], all[i]);
		if (done)
			done((char *)data + at, m);
	}
	hex = digest_of(pieces * sizeof *all, (const char *)all);
	free(all);
	return hex;
}
