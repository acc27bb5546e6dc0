/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * shard.h -- a share of the work, for one of several jobs: `--shard I/N`, or `--shard auto`
 *
 * auto takes rank and size from what a launcher exports, the first of
 *	SLURM_ARRAY_TASK_ID of SLURM_ARRAY_TASK_MIN, _MAX, _STEP, _COUNT	(sbatch --array)
 *	SLURM_PROCID of SLURM_NTASKS						(srun)
 *	OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE				(Open MPI)
 *	PMI_RANK of PMI_SIZE							(MPICH and others)
 * that is there. Nothing is shared out unless it is asked for.
 */
#ifndef BASE_SHARD_H
#define BASE_SHARD_H
#include <stddef.h>

struct shard {
	size_t i, n;		/* the i-th of n, counted from 1 */
	char by[112];		/* auto: the variables that said so; "": the command line */
};

/* An option's value; misuse for another text, and for auto where the environment says nothing, or what
 * contradicts itself: variables that are missing, no numbers or out of range, an array with gaps, two
 * launchers that disagree. */
void shard_parse(void *shard, const char *option, const char *text);
/* "2/8", for the history; free() it. */
char *shard_form(const void *shard);
/* Says on standard error what auto chose; silent under -q. */
void shard_say(const struct shard *s);

/* A row's kind: struct shard */
#define OPTION_OF_SHARD(var) OPTION_PARSED(struct shard, var, shard_parse), "I/N|auto"
#endif
