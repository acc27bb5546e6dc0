/* SPDX-License-Identifier: GPL-3.0-or-later */
/* thread.c -- see thread.h */
#include "base/thread.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

enum { PER_PROCESSOR = 8 };	/* maximum threads */

int threads = 1;

/* Processors that cgroup v2 grants, as to a container, rounded up; 0 if there is no limit. */
static long cgroup_share(void)
{
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
	long quota, period, n = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%ld %ld", &quota, &period) == 2 && period > 0)
		n = (quota + period - 1) / period;
	fclose(f);
	return n;
}

/* The first number of the list OMP_NUM_THREADS; 0 if it is no such list. */
static long environment_limit(void)
{
	const char *value = getenv("OMP_NUM_THREADS");
	char *end;
	const long n = value ? strtol(value, &end, 10) : 0;

	return n && strchr(",", end[strspn(end, " ")]) ? n : 0;
}

static int granted(int processors)
{
	const long limits[] = { cgroup_share(), environment_limit() };

	for (int i = 0; i < 2; i++)
		if (limits[i] > 0 && limits[i] < processors)
			processors = (int)limits[i];
	return processors;
}

void threads_init(size_t asked)
{
	const int processors = omp_get_num_procs();
	const size_t max = PER_PROCESSOR * (size_t)processors;

	if (!asked)
		threads = granted(processors);
	else
		threads = (int)(asked < max ? asked : max);
	if (asked > max && verbose)
		fprintf(stderr, "%s: %d threads, not %zu: at most %d per processor\n", program, threads,
			asked, PER_PROCESSOR);
}

int threads_for(size_t pieces)
{
	return pieces < (size_t)threads ? pieces ? (int)pieces : 1 : threads;
}
