/* SPDX-License-Identifier: GPL-3.0-or-later */
/* thread.c -- see thread.h */
#include "base/thread.h"
#include <omp.h>
#include <stdio.h>

int threads = 1;

/* A container's share of the processors, cgroup v2; 0 if there is none. */
static int cgroup_share(void)
{
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
	long quota, period;
	int n = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%ld %ld", &quota, &period) == 2 && period > 0)
		n = (int)((quota + period - 1) / period);
	fclose(f);
	return n;
}

void threads_init(int wanted)
{
	int share = cgroup_share();

	threads = wanted;
	if (wanted <= 0) {
		threads = omp_get_num_procs();
		if (share > 0 && share < threads)
			threads = share;
	}
}
