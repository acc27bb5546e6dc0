/* SPDX-License-Identifier: GPL-3.0-or-later */
/* filter.c -- see filter.h */
#include "model/filter.h"
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "io/resume.h"
#include "model/shard_file.h"

struct filter filter_open(const char *path, const char *kinds, const char *output, const char *kind)
{
	struct filter f = { .in = input_open(path, model_layout, kinds) };

	f.out = kind ? output_open(output, kind) : NULL;
	f.part = input_next(f.in);
	return f;
}

struct filter filter_resume(const char *path, const char *kinds, const char *output, const char *kind,
	struct report *report)
{
	struct filter f = { .in = input_open(path, model_layout, kinds) };

	filter_resume_output(&f, output, kind, report);
	f.part = input_next(f.in);
	return f;
}

void filter_resume_output(struct filter *f, const char *output, const char *kind, struct report *report)
{
	f->report = report;
	f->resume = resume_open(output, kind, report);
	f->out = resume_output(f->resume);
}

void filter_config(struct filter *f)
{
	if (!f->part || !part_has(f->part, "/config"))
		return;
	f->config = config_open(f->part);
}

void model_filter(struct filter *f, void (*part)(void *arg, const struct filter *f), void *arg)
{
	const size_t finished = f->resume ? resume_begin(f->resume) : 0;

	for (; f->part; f->part = input_next(f->in))
		if (part_index(f->part) >= finished) {
			if (shard_has(&f->shard, f->part, f->config))
				part(arg, f);
			else
				shard_write_empty(f->out, f->part, f->config);
		} else {
			f->result = resume_next(f->resume);
			f->all_finished = finished == part_count(f->part);
			if (f->finished)
				f->finished(arg, f);
		}
	progress_clear();
}

void filter_report(const struct filter *f, const struct report_table *table)
{
	resume_report(f->resume, f->result, table);
}

void filter_close(struct filter *f)
{
	if (f->report)
		report_close(f->report);
	if (f->resume)
		resume_close(f->resume);
	else if (f->out)
		output_close(f->out);
	if (f->in)
		input_close(f->in);
	if (f->config)
		config_close(f->config);
}
