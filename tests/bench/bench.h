/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench.h -- shared by the benchmark programs: a median, and a main() with named parts */
#ifndef BENCH_H
#define BENCH_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"
#include "base/thread.h"
#include "num/linalg.h"

enum { RUNS = 101 };
struct section { const char *name; void (*run)(void); };

static int runs = 25;			/* -r: measurements of each kind, from 1 to RUNS */

static int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts t. */
static double bench_median(size_t n, double t[n])
{
	qsort(t, n, sizeof *t, bench_compare);
	return n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
}

/* Seconds. On one thread, CPU time of the thread, which hardly depends on other programs. */
static inline double bench_now(void)
{
	struct timespec t;

	clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* name [-r RUNS] [-j THREADS] PART..., run one after the other. */
static inline int bench_main(int argc, char *argv[], const char *name, size_t n, const struct section part[n])
{
	int c, wanted = 0;
	size_t i;

	program = name;
	while ((c = getopt(argc, argv, "r:j:")) != -1)
		if (c == 'r')
			runs = atoi(optarg);
		else if (c == 'j')
			wanted = atoi(optarg);
		else
			misuse("%s [-r RUNS] [-j THREADS] PART..., of the parts "
				"that the top of its source names", name);
	if (runs < 1 || runs > RUNS)
		misuse("-r: expected 1 to %d", RUNS);
	threads_init(wanted);
	linalg_init();
	for (; optind < argc; optind++) {
		for (i = 0; i < n && strcmp(argv[optind], part[i].name); i++)
			;
		if (i == n)
			misuse("there is no part '%s'", argv[optind]);
		part[i].run();
	}
	return 0;
}
#endif
