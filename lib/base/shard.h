/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shard.h -- the shard of the work of one of several jobs: `--shard I/N`, or `--shard auto`
 *
 * auto takes rank and size from the environment variables of a launcher, the first that is present of
 *	SLURM_ARRAY_TASK_ID of SLURM_ARRAY_TASK_MIN, _MAX, _STEP, _COUNT	(sbatch --array)
 *	SLURM_PROCID of SLURM_NTASKS						(srun)
 *	OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE				(Open MPI)
 *	PMI_RANK of PMI_SIZE							(MPICH and others)
 * Without --shard, the work is not divided.
 */
#ifndef BASE_SHARD_H
#define BASE_SHARD_H
#include <stddef.h>

struct shard {
	size_t i, n;		/* the i-th of n, counted from 1 */
	char source[112];		/* auto: the variables and their values; "": from the command line */
};

/* Parses the value of the option into a struct shard. Misuse for an invalid text. Misuse for auto if the
 * environment has no rank and size, or contradictory ones: variables that are missing, not numbers or out of
 * range, an array with gaps, two launchers that disagree. */
void shard_parse(void *shard, const char *option, const char *text);
/* "2/8", for the history; free() it. */
char *shard_form(const void *shard);
/* Prints the choice of auto to standard error, except under -q. */
void shard_print(const struct shard *s);

/* The kind of an option row whose variable is a struct shard. */
#define OPTION_OF_SHARD(var) OPTION_PARSED(struct shard, var, shard_parse), "I/N|auto"
#endif
