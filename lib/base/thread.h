/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thread.h -- how many threads the parallel loops use
 *
 * Every parallel region names `num_threads(threads)`. BLAS and LAPACK stay on
 * one thread inside, so that results do not depend on -j.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
extern int threads;		/* set by -j; default: what the machine grants (affinity, cgroup) */
void threads_init(int wanted);	/* 0: the default */
#endif
