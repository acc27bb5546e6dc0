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
extern int threads;		/* set by -j; default: what the machine grants (affinity, cgroup) */
void threads_init(size_t asked);	/* 0: the default; at most 8 per processor */
/* Threads for so many pieces of work: at least one. */
int threads_for(size_t pieces);
#endif
