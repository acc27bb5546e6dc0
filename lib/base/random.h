/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * random.h -- keyed random streams
 *
 * The k-th number of a stream is a function of seed, name and k only. It does not depend on the order of
 * calls or on the thread.
 *
 * Philox 4x32-10 (Salmon et al., SC 2011): the key is the seed, the counter is k and a hash of the name.
 * Neighbouring seeds give unrelated streams.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H
#include <stdint.h>
struct random_stream { uint32_t key[2]; uint64_t name; };
struct random_stream random_open(uint64_t seed, const char *name);
uint64_t random_bits(const struct random_stream *r, uint64_t k);	/* 64 independent bits */
/* Standard normal, from the uniform numbers 2k and 2k + 1 (Box and Muller, 1958). */
double random_normal(const struct random_stream *r, uint64_t k);
double random_uniform(const struct random_stream *r, uint64_t k);	/* [0, 1), 53 bits */
#endif
