/* SPDX-License-Identifier: GPL-3.0-or-later */
/* resume.c -- see resume.h */
#include "io/resume.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/history.h"
#include "base/progress.h"
#include "base/replace.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/output.h"
#include "io/seal.h"
#include "io/tree.h"

struct resume {
	char *path, *part;		/* FILE, FILE.part */
	const char *kind;
	int fd;
	size_t whole, parts;		/* bytes and number of the complete parts */
	bool damaged;			/* the part after them was changed after it was written */
	struct input *in;		/* reads them; NULL: no complete parts */
	struct part *first;		/* already read, for resume_next() */
	struct output *out;
	struct report *report;
	size_t reported;		/* rows of the report that the parts have */
};

static int unused = -1;			/* FILE.part, removed at the end if it is still empty */
static char *unused_path;

static void remove_unused(void)
{
	struct stat st;

	if (unused >= 0 && !fstat(unused, &st) && !st.st_size)
		unlink(unused_path);
}

/* Locks FILE.part; false if another run that succeeded has removed it. */
static bool lock(const struct resume *r)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat ours, there;

	if (fcntl(r->fd, F_SETLK, &all) && errno != EACCES && errno != EAGAIN)
		die("%s: cannot be locked, so that two runs could write it:", r->part);
	else if (fcntl(r->fd, F_SETLK, &all))
		die("%s: is written by another run", r->part);
	if (fstat(r->fd, &ours))
		die("%s: cannot open:", r->part);
	return !stat(r->part, &there) && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

static void open_part(struct resume *r)
{
	struct stat st;

	do {
		if (r->fd >= 0)
			close(r->fd);
		r->fd = open(r->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (r->fd < 0 && errno == ELOOP)
			die("%s: is a symbolic link, expected the parts of an earlier run, or nothing",
				r->part);
		if (r->fd < 0)
			die("%s: cannot open:", r->part);
		if (fstat(r->fd, &st) || !S_ISREG(st.st_mode))
			die("%s: is not a regular file, expected the parts of an earlier run, or nothing",
				r->part);
		if (file_is_input(r->fd))
			die("%s: is an input; finished parts would be written into it", r->part);
	} while (!lock(r));
}

/* Finds the complete parts, up to the first one that is incomplete or damaged. */
static void find_whole(struct resume *r)
{
	enum seal_state state = SEAL_WHOLE;
	struct stat st;
	size_t all, n;
	unsigned char *map;

	r->whole = r->parts = 0;
	if (fstat(r->fd, &st))
		die("%s: cannot read:", r->part);
	all = (size_t)st.st_size;
	map = all ? mmap(NULL, all, PROT_READ, MAP_SHARED, r->fd, 0) : NULL;
	if (map == MAP_FAILED)
		die("%s: cannot map %zu bytes:", r->part, all);
	while (r->whole < all) {
		state = seal_check(all - r->whole, map + r->whole, &n);
		if (state != SEAL_WHOLE)
			break;
		r->whole += SEAL + n;
		r->parts++;
	}
	if (!r->parts && state == SEAL_DAMAGED && !seal_begins(all, map))
		die("%s: holds no parts of an earlier run; remove it, or give -o another name", r->part);
	r->damaged = state == SEAL_DAMAGED;
	if (map)
		munmap(map, all);
}

/* Writes the rows of the report since the last part. */
static void put_report(void *arg, struct output *out)
{
	struct resume *r = arg;
	const size_t n = r->report->rows - r->reported, columns = n ? r->report->table->columns : 1;
	char *names = xformat("%s", "");
	double (*value)[columns] = xalloc(n, columns * sizeof(double));

	for (size_t i = 0; i < n; i++) {
		const struct report_row *row = &r->report->row[r->reported + i];
		char *before = names;

		names = xformat("%s%s\n", before, row->name);
		free(before);
		memcpy(value[i], row->value, sizeof value[i]);
	}
	output_string(out, RESUME_REPORT "/names", names);
	if (n)
		output_write(out, RESUME_REPORT "/values", tensor_2d(TENSOR_F64, value, n, columns));
	r->reported += n;
	free(names), free(value);
}

void resume_report(struct resume *r, const struct part *part, const struct report_table *t)
{
	char *names = part_has(part, RESUME_REPORT "/names") ?
		part_string(part, RESUME_REPORT "/names") : NULL;
	const double *value = NULL;
	size_t rows = 0;

	if (!names)
		die("%s: part %zu has no report of its layers; remove the file to begin anew",
			part_name(part), part_index(part));
	if (*names) {
		const struct tensor values = part_tensor(part, RESUME_REPORT "/values", TENSOR_F64, 2,
			(const size_t[]){ 0, t->columns });

		value = values.data;
		rows = values.dim[0];
	}
	for (char *line = names, *end; (end = strchr(line, '\n')) && rows--; line = end + 1) {
		*end = 0;
		report_row(r->report, t, line, value);
		value += t->columns;
	}
	r->reported = r->report->rows;
	free(names);
}

struct resume *resume_open(const char *path, const char *kind, struct report *report)
{
	struct resume *r = xalloc(1, sizeof *r);
	struct stat st;

	if (descriptor_of(path) >= 0)
		misuse("--resume: -o FILE is expected: finished parts are kept in FILE.part, and a later run "
			"continues from them");
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		misuse("--resume: -o %s is not a regular file", path);
	replace_check(path);
	hdf5_init();
	*r = (struct resume){ .path = xformat("%s", path), .part = xformat("%s.part", path), .kind = kind,
		.fd = -1, .report = report };
	if (report->path && replace_same(r->part, report->path))
		misuse("--report: %s is where --resume keeps finished parts", report->path);
	open_part(r);
	unused_path = r->part;
	unused = r->fd;
	on_exit_cleanup(remove_unused);
	find_whole(r);
	r->out = output_kept(r->part, r->fd, kind, r->parts);
	r->out->last = put_report;
	r->out->arg = r;
	return r;
}

struct output *resume_output(struct resume *r)
{
	return r->out;
}

/* The text of the attribute `resume`: the command and the inputs. */
static char *identity(void)
{
	char *y = xformat("%s\n", history_line());
	const char *kind, *path;

	for (size_t i = 0; (path = file_input(i, &kind)); i++) {
		char *digest = file_digest(path), *before = y;

		y = xformat("%s%s %s\n", before, *kind ? kind : "file", digest);
		free(before), free(digest);
	}
	return y;
}

/* Fatal error that names the difference. */
static _Noreturn void refuse_resume(const struct resume *r, const char *was, const char *is)
{
	const size_t a = strcspn(was, "\n"), b = strcspn(is, "\n");
	const char *path = NULL, *kind;

	if (a != b || memcmp(was, is, a))
		die("%s: was begun by '%.*s', this is '%.*s'; remove it to begin anew", r->part, (int)a, was,
			(int)b, is);
	for (size_t i = 0; (path = file_input(i, &kind)); i++) {
		was += strcspn(was, "\n"), was += *was != 0;
		is += strcspn(is, "\n"), is += *is != 0;
		if (strcspn(was, "\n") != strcspn(is, "\n") || memcmp(was, is, strcspn(is, "\n")))
			break;
	}
	if (!path)
		die("%s: was begun with more inputs; remove it to begin anew", r->part);
	if (strcspn(was, " ") != strcspn(is, " ") || memcmp(was, is, strcspn(is, " ")))
		die("%s: was begun with other inputs, %s%.*s in place of %s; remove it to begin anew",
			r->part, *was ? "a " : "none", (int)strcspn(was, " "), was, path);
	die("%s: was begun with another %s than %s; remove it to begin anew", r->part, *kind ? kind : "file",
		path);
}

/* Fatal error unless the parts were made by this command from these inputs. */
static void check_identity(const struct resume *r, const char *is)
{
	char *was = part_text(r->first, "/", "resume"), *processor;

	if (!was)
		die("%s: holds no parts of an earlier run; remove it, or give -o another name", r->part);
	if (strcmp(was, is))
		refuse_resume(r, was, is);
	processor = part_text(r->first, "/", "resume:processor");
	if (processor && strcmp(processor, cpu_name()))
		warn("%s: was begun on another kind of processor (%s, this is %s): the result may not have "
			"the bytes that one run gives", r->part, processor, cpu_name());
	free(was), free(processor);
}

size_t resume_begin(struct resume *r)
{
	char *is;

	if (file_pipe())
		die("%s: is not a regular file; --resume reads inputs again, expected a regular file",
			file_pipe());
	is = identity();
	if (r->parts) {
		r->in = input_of_file(r->part, r->fd, r->whole, SEAL, r->kind);
		r->first = input_next(r->in);
		check_identity(r, is);
		r->out->parts = part_count(r->first);
		if (r->parts > r->out->parts)
			die("%s: has data after its %zu parts; remove it to begin anew", r->part,
				r->out->parts);
		if (!quiet) {
			progress_clear();
			fprintf(stderr, "%s: %s: %zu of %zu parts are finished\n", program, r->part, r->parts,
				part_count(r->first));
		}
	}
	if (r->damaged)
		warn("%s: part %zu was damaged after it was written: it and all later parts are made again",
			r->part, r->parts + 1);
	if (ftruncate(r->fd, (off_t)r->whole) || lseek(r->fd, (off_t)r->whole, SEEK_SET) < 0)
		die("%s: cannot write:", r->part);
	replace_sync_folder(r->part);
	r->out->identity = is;
	r->out->processor = cpu_name();
	return r->parts;
}

struct part *resume_next(struct resume *r)
{
	struct part *part = r->first ? r->first : input_next(r->in);

	r->first = NULL;
	return part;
}

void resume_close(struct resume *r)
{
	struct output *file;
	struct part *part;

	if (r->in)
		input_close(r->in);
	if (r->out->open || !r->out->parts || r->out->next != r->out->parts)
		die("%s: only %zu of %zu parts were written", r->part, r->out->next, r->out->parts);
	find_whole(r);
	if (r->parts != r->out->parts)
		die("%s: part %zu of %zu was damaged after it was written; run this again to remake it",
			r->part, r->parts + 1, r->out->parts);
	r->in = input_of_file(r->part, r->fd, r->whole, SEAL, r->kind);
	file = output_open(r->path, r->kind);
	while ((part = input_next(r->in)))
		output_write_finished(file, part);
	output_close(file);
	input_close(r->in);
	if (unlink(r->part))
		warn("%s: cannot be removed; it is not needed any more", r->part);
	unused = -1;
	close(r->fd);
	free(r->out->identity);
	output_free(r->out);
	free(r->path), free(r->part), free(r);
}
