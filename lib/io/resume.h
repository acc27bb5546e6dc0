/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * resume.h -- a result whose finished parts stay, so that a run that was stopped can go on
 *
 * Beside FILE, FILE.part gets the result as a stream of parts, each behind its length and digest
 * (io/seal.h), and each on the disk before the next is begun. At the end they become FILE, and FILE.part
 * goes; after any other end it stays. A later run takes the parts up to the first that was cut, or changed
 * after it was written, if the attribute `resume` of the first says that they were made by the same command
 * from the same inputs: its text is the history's line, then a line for each input: its kind and its digest
 * (io/file.h). One run at a time has FILE.part, by a lock (fcntl).
 *
 * The rows that a run adds to its report while it makes a part are datasets of the part's group
 * /resume:report: `names`, one a line, and, if there are any, `values` [rows, columns].
 */
#ifndef IO_RESUME_H
#define IO_RESUME_H
#include <stddef.h>
#include "base/report.h"
#include "io/part.h"

struct resume;

/*
 * Opens FILE.part, or makes it; report: of the run. Misuse unless path names a file. Dies if no file could
 * get this name, if FILE.part is another run's at this time, or is there and no such stream.
 */
struct resume *resume_open(const char *path, const char *kind, struct report *report);
/* The output that parts are written to. */
struct output *resume_output(struct resume *r);
/*
 * When all inputs are open and the history is settled: drops what was cut or damaged, the latter with a
 * warning, and returns how many parts are whole. Dies, saying what differs, unless they were made by this
 * command from these inputs; and on inputs that are no files, since they are read again. The part that is
 * written next is the one behind them.
 */
size_t resume_begin(struct resume *r);
/* The next of the parts that were whole, valid until the call after. */
struct part *resume_next(struct resume *r);
/* Adds the rows that the earlier run reported of such a part; dies unless it has them, with these columns. */
void resume_report(struct resume *r, const struct part *part, const struct report_table *t);
/* Makes FILE of the parts, which are all there, and removes FILE.part. */
void resume_close(struct resume *r);
#endif
