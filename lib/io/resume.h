/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * resume.h -- finished parts of a result that a later run can continue from
 *
 * While FILE is made, its parts are written to FILE.part. Each is preceded by its length and digest
 * (io/seal.h), and is on the disk before the next one begins. At the end FILE is made of them and FILE.part
 * is removed. If the run ends early, FILE.part stays.
 *
 * A later run uses the parts up to the first one that is incomplete or was changed after it was written.
 * The attribute `resume` of the first part must have the same command and inputs: its text is the line of
 * the history, then a line for each input with its kind and its digest (io/file.h). A lock (fcntl) allows
 * one run at a time.
 *
 * Calling sequence: resume_open(); open the inputs; n = resume_begin(); n times resume_next() and
 * resume_report(); write the other parts to resume_output(); resume_close().
 *
 * The rows that a run adds to its report during a part are datasets of the part's group /resume:report:
 * `names`, one per line, and, if there are rows, `values` [rows, columns].
 */
#ifndef IO_RESUME_H
#define IO_RESUME_H
#include <stddef.h>
#include "base/report.h"
#include "io/part.h"

struct resume;

/* Opens or creates FILE.part. report: of the run. Wrong usage unless path names a file. Fatal error if FILE
 * cannot be created, if another run has FILE.part open, or if FILE.part exists and has other contents. */
struct resume *resume_open(const char *path, const char *kind, struct report *report);
/* The output for the parts that are not finished. */
struct output *resume_output(struct resume *r);
/*
 * Called when all inputs are open and the history is complete. Drops an incomplete or damaged part and all
 * later ones, with a warning if one was damaged, and returns the number of finished parts. The next part
 * written has this number. Fatal error if the finished parts have another command or other inputs; the
 * message names the difference. Fatal error if an input is not a regular file, since a later run reads it
 * again.
 */
size_t resume_begin(struct resume *r);
/* The next finished part; valid until the next call. */
struct part *resume_next(struct resume *r);
/* Adds the rows of a finished part to the report. Fatal error if the part does not have them, with these
 * columns. */
void resume_report(struct resume *r, const struct part *part, const struct report_table *t);
/* Makes FILE of the parts, when all are written, and removes FILE.part. */
void resume_close(struct resume *r);
#endif
