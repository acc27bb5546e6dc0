/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thread.h -- number of threads of parallel loops
 *
 * Every parallel region has `num_threads(threads)`. BLAS and LAPACK run on one
 * thread each, so that results do not depend on -j.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <stddef.h>

extern int threads;
/* Sets `threads` to `asked` (-j), at most 8 per processor; 0: to the processors that affinity, cgroup and
 * OMP_NUM_THREADS grant. */
void threads_init(size_t asked);
/* min(pieces, threads), but at least 1. */
int threads_for(size_t pieces);
#endif

