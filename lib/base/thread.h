/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thread.h -- how many threads the parallel loops use
 *
 * Every parallel region names `num_threads(threads)`. BLAS and LAPACK stay on
 * one thread inside, so that results do not depend on -j.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <stddef.h>

extern int threads;
/* Sets threads as asked (-j), at most 8 per processor; 0: the processors that affinity and cgroup grant. */
void threads_init(size_t asked);
/* Threads for that many pieces of work: at least one. */
int threads_for(size_t pieces);
#endif

