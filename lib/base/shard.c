/* SPDX-License-Identifier: GPL-3.0-or-later */
/* shard.c -- see shard.h */
#include "base/shard.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"
#include "base/progress.h"

enum { SHARDS = 1000000 };

/* Launchers and their variables, in the order in which they are checked. */
static const struct launcher {
	const char *rank, *size;
	const char *first, *last, *step;	/* of an array, whose ranks may not count from 0 */
} launchers[] = {
	{ "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
		"SLURM_ARRAY_TASK_STEP" },
	{ "SLURM_PROCID", "SLURM_NTASKS", NULL, NULL, NULL },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, NULL },
	{ "PMI_RANK", "PMI_SIZE", NULL, NULL, NULL },
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers, ARRAY = 0, PROCESS = 1 };

/* Value of a variable, a whole number; false if the variable is not set. */
static bool number_of(const char *name, size_t *value)
{
	const char *text = name ? getenv(name) : NULL;
	const char *end = text ? number_size(text, value) : NULL;

	if (text && (!end || *end))
		misuse("--shard auto: %s is '%s', expected a whole number", name, text);
	return text != NULL;
}

static void need(bool there, const char *name, const char *other)
{
	if (!there)
		misuse("--shard auto: %s is set, %s is not", other, name);
}

/* The shard of this job from the variables of a launcher; false if none of them is set. */
static bool ask(const struct launcher *l, struct shard *s)
{
	size_t rank, size = 0, first = 0, last = 0, step = 1;
	const bool ranked = number_of(l->rank, &rank), sized = number_of(l->size, &size);
	bool bounded = false;

	if (!ranked && !sized)
		return false;
	need(ranked, l->rank, l->size);
	need(sized, l->size, l->rank);
	if (l->first) {
		need(number_of(l->first, &first), l->first, l->rank);
		bounded = number_of(l->last, &last);
		number_of(l->step, &step);
	}
	if (!step || !size || size > SHARDS)
		misuse("--shard auto: %s is %zu, expected a number from 1 to %d", step ? l->size : l->step,
			step ? size : step, SHARDS);
	if (bounded && (last < first || (last - first) % step ||
	    (last - first) / step != size - 1))
		misuse("--shard auto: the array has gaps: %zu tasks from %zu to %zu; number them without "
			"gaps, --array=1-%zu", size, first, last, size);
	if (rank < first || (rank - first) % step || (rank - first) / step >= size)
		misuse("--shard auto: %s is %zu, expected one of %zu numbers from %zu on%s", l->rank, rank,
			size, first, l->first ? ", without gaps" : "");
	*s = (struct shard){ .i = (rank - first) / step + 1, .n = size };
	if (l->first)
		snprintf(s->source, sizeof s->source, "%s=%zu, %zu tasks from %zu", l->rank, rank, size,
			first);
	else
		snprintf(s->source, sizeof s->source, "%s=%zu, %s=%zu", l->rank, rank, l->size, size);
	return true;
}

/* Whether a second launcher fits the first. A task of an array is a job; its script is process 0 of the
 * processes that it may start. Process 0 may use the shard of the task. Further processes, and processes of
 * other launchers, would all compute the same shard. */
static bool agree(const struct launcher *by, const struct shard *a, const struct launcher *l,
	const struct shard *b)
{
	if (b->n == 1 || (a->i == b->i && a->n == b->n))
		return true;
	return by == &launchers[ARRAY] && l == &launchers[PROCESS] && b->i == 1;
}

static void ask_all(struct shard *s, const char *option)
{
	const struct launcher *by = NULL, *l;

	for (l = launchers; l < launchers + LAUNCHERS; l++) {
		struct shard other;

		if (!ask(l, &other))
			continue;
		if (!by)
			*s = other, by = l;
		else if (!agree(by, s, l, &other))
			misuse("--%s auto: %s gives %zu/%zu, %s gives %zu/%zu; use --%s I/N", option,
				by->rank, s->i, s->n, l->rank, other.i, other.n, option);
	}
	if (!by)
		misuse("--%s auto: no launcher gives a rank and a size: expected %s, %s, %s or %s",
			option, launchers[0].rank, launchers[1].rank, launchers[2].rank, launchers[3].rank);
}

void shard_parse(void *shard, const char *option, const char *text)
{
	struct shard *s = shard;
	const char *end;

	if (!strcmp(text, "auto")) {
		ask_all(s, option);
		return;
	}
	*s->source = 0;
	end = number_size(text, &s->i);
	end = end && *end == '/' ? number_size(end + 1, &s->n) : NULL;
	if (!end || *end || !s->i || s->i > s->n || s->n > SHARDS)
		misuse("--%s: '%s' is not I/N with 1 <= I <= N <= %d, nor auto", option, text, SHARDS);
}

char *shard_form(const void *shard)
{
	const struct shard *s = shard;

	return xformat("%zu/%zu", s->i, s->n);
}

void shard_print(const struct shard *s)
{
	if (quiet || !*s->source)
		return;
	progress_clear();
	fprintf(stderr, "%s: shard %zu/%zu, by %s\n", program, s->i, s->n, s->source);
}
