/* SPDX-License-Identifier: GPL-3.0-or-later */
/* random.c -- Philox 4x32-10; see random.h */
#include "base/random.h"
#include <math.h>

static uint64_t hash(const char *s)	/* FNV-1a */
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

struct random_stream random_open(uint64_t seed, const char *name)
{
	return (struct random_stream){ { (uint32_t)seed, (uint32_t)(seed >> 32) }, hash(name) };
}

uint64_t random_bits(const struct random_stream *r, uint64_t k)
{
	uint32_t c0 = (uint32_t)k, c1 = (uint32_t)(k >> 32);
	uint32_t c2 = (uint32_t)r->name, c3 = (uint32_t)(r->name >> 32);
	uint32_t k0 = r->key[0], k1 = r->key[1];

	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53u * c0, b = (uint64_t)0xcd9e8d57u * c2;

		c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)b;
		c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)a;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	return (uint64_t)c1 << 32 | c0;
}

double random_normal(const struct random_stream *r, uint64_t k)
{
	return sqrt(-2 * log(1 - random_uniform(r, 2 * k))) *
		cos(2 * acos(-1) * random_uniform(r, 2 * k + 1));
}

double random_uniform(const struct random_stream *r, uint64_t k)
{
	return (double)(random_bits(r, k) >> 11) * 0x1p-53;
}
