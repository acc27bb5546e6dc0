/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * filter.h -- the parts of a model, or of what was made of one, through a filter
 *
 *	struct filter f = filter_open(path, "model", output, "model");
 *
 *	filter_config(&f);
 *	model_filter(&f, part, &settings);
 *	filter_close(&f);
 *
 * The input is open before the output, and nothing is written before part()
 * begins the first part of the result, so that all inputs can be opened first.
 * A filter that is all zero has no parts.
 */
#ifndef MODEL_FILTER_H
#define MODEL_FILTER_H
#include "base/report.h"
#include "base/shard.h"
#include "io/part.h"
#include "model/config.h"

struct filter {
	struct input *in;
	struct part *part;		/* the current part; the first one until model_filter() is called */
	const struct config *config;	/* NULL: not asked for, or not there */
	struct output *out;		/* NULL: none */
	struct shard shard;		/* of the blocks, i, i + n, ... counted from 1; n 0 or 1: all */
	struct report *report;		/* of the run, or NULL; filter_close() closes it, too */
	struct resume *resume;		/* --resume; NULL: without */
	struct part *result;		/* in finished(): the part of the result */
	bool all_there;			/* in finished(): no part is left to be made */
	/* Called in place of part() if an earlier run has made that part of the result; NULL: nothing is. */
	void (*finished)(void *arg, const struct filter *f);
};

/* kinds: of the input, separated by '|'. kind: of the output, or NULL: none. output NULL: standard output. */
struct filter filter_open(const char *path, const char *kinds, const char *output, const char *kind);
/* The same with --resume: parts that are finished stay in FILE.part beside the output, which must be a file,
 * and a later run goes on from them (io/resume.h). */
struct filter filter_resume(const char *path, const char *kinds, const char *output, const char *kind,
	struct report *report);
/* The same for a filter that was opened without an output. */
void filter_keep(struct filter *f, const char *output, const char *kind, struct report *report);
#define OPTION_RESUME(var) { 0, "resume", OPTION_BOOL(var), NULL, \
	"keep finished parts in FILE.part, and go on from those of a stopped run", \
	.neutral = true }
/* Reads the configuration of the model from the first part, if that has one. */
void filter_config(struct filter *f);
/* Calls part() with each part; with a shard of several, of the blocks only with those of the shard, and of
 * what is no block only with the root, but for shard 1: in the place of another block stands an empty group.
 * With --resume all inputs must be open and the history settled; for the parts that are there it calls
 * finished() instead. */
void model_filter(struct filter *f, void (*part)(void *arg, const struct filter *f), void *arg);
/* In finished(): adds the rows that the earlier run reported of the part; dies if it has none. */
void filter_report(const struct filter *f, const struct report_table *table);
/* Ends the report, and gives the output its name. */
void filter_close(struct filter *f);
#endif
