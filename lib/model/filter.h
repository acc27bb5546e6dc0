/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * filter.h -- the loop of a filter over the parts of a model, or of a result made from one
 *
 *	struct filter f = filter_open(path, "model", output, "model");
 *
 *	filter_config(&f);
 *	model_filter(&f, part, &settings);
 *	filter_close(&f);
 *
 * The input is opened before the output, and nothing is written before part() begins the first part of the
 * result. So all other inputs can be opened first. A filter of zeros has no parts.
 */
#ifndef MODEL_FILTER_H
#define MODEL_FILTER_H
#include "base/report.h"
#include "base/shard.h"
#include "io/part.h"
#include "model/config.h"

struct filter {
	struct input *in;
	struct part *part;		/* the current part; before model_filter() the first part */
	const struct config *config;	/* NULL: not read, or the file has none */
	struct output *out;		/* NULL: none */
	struct shard shard;		/* blocks i, i + n, ... counted from 1; n 0 or 1: all */
	struct report *report;		/* of the run, or NULL; filter_close() closes it */
	struct resume *resume;		/* of --resume, or NULL */
	struct part *result;		/* in finished(): the finished part of the result */
	bool all_finished;		/* in finished(): all parts are finished */
	/* Called instead of part() if an earlier run has finished this part of the result; NULL: not
	 * called. */
	void (*finished)(void *arg, const struct filter *f);
};

/* Opens the input and the output. kinds: of the input, separated by '|'. kind: of the output, NULL: no
 * output. output NULL: standard output. */
struct filter filter_open(const char *path, const char *kinds, const char *output, const char *kind);
/* Opens them with --resume: finished parts are kept in FILE.part next to the output, which must be a file,
 * and a later run continues from them (io/resume.h). */
struct filter filter_resume(const char *path, const char *kinds, const char *output, const char *kind,
	struct report *report);
/* Opens the output with --resume, for a filter that was opened without an output. */
void filter_resume_output(struct filter *f, const char *output, const char *kind, struct report *report);
#define OPTION_RESUME(var) { 0, "resume", OPTION_BOOL(var), NULL, \
	"keep finished parts; continue a stopped run", \
	.neutral = true }
/* Reads the configuration of the model, if the first part has one. */
void filter_config(struct filter *f);
/*
 * Calls part() with each part.
 *
 * With a shard, part() is called with the blocks of the shard and with the root; shard 1 also has the other
 * parts outside the blocks. Each other block becomes an empty group.
 *
 * With --resume, all inputs must be open and the history complete. finished() is called for the finished
 * parts.
 */
void model_filter(struct filter *f, void (*part)(void *arg, const struct filter *f), void *arg);
/* In finished(): adds the rows that the earlier run reported for the part; fatal error if the part has
 * none. */
void filter_report(const struct filter *f, const struct report_table *table);
/* Ends the report, and gives the output its name. Closes all files. */
void filter_close(struct filter *f);
#endif
