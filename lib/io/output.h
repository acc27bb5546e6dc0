/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * output.h -- the struct behind an output, and what copy.c needs of it
 *
 * output.c writes what it is given and knows no input; copy.c stands above it
 * and takes over what an input has.
 */
#ifndef IO_OUTPUT_H
#define IO_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/replace.h"
#include "io/buffer.h"
#include "io/tree.h"

/* Of a part of FILE.part: the group of its rows of the report (resume.h). */
#define RESUME_REPORT "/resume:report"

struct output {
	char *name;			/* for messages */
	const char *kind;
	int stream;			/* the descriptor that gets parts; -1: the result is one file */
	bool kept;			/* the stream is a file whose parts must outlive the program */
	char *identity;			/* of such a stream, attribute resume of its first part */
	const char *processor;		/* and of resume:processor */
	/* Called before a part ends, or NULL: what else is written into it. */
	void (*last)(void *arg, struct output *out);
	void *arg;
	struct replace named;		/* that file; path NULL: it has no name of its own, and */
	int target;			/* is what this descriptor stands for */
	hid_t file;
	struct buffer buffer;		/* the part, or the file */
	size_t part, parts, next;
	bool open;			/* between begin and end */
	char **copied;			/* paths that output_copy() was given in this part, NULL-terminated */
	size_t copies;
	struct links links;		/* objects of the input with several names: the first in this part */
};

hid_t output_object(struct output *out, const char *path);	/* opens it; dies if it does not exist */
bool output_has(struct output *out, const char *path);
void output_group(struct output *out, const char *path);	/* makes it, and those on the way */
void output_parent(struct output *out, const char *path);	/* makes the group that path is a member of */
/* A stream into a file that is open; closed by output_free(). */
struct output *output_stream(const char *name, int fd, const char *kind);
/* A stream into a file that is open, whose parts outlive the program, each behind its seal (seal.h), which
 * is written when the part is on the disk: output_begin() expects part `next`. Closed by output_free(). */
struct output *output_kept(const char *name, int fd, const char *kind, size_t next);
void output_free(struct output *out);
/* Writes a part of a result as output_kept() has kept it: this run, or an earlier one, has made it. */
void output_take(struct output *out, const struct part *from);
/* Writes a part that is a part already, as it is; only to a stream. */
void output_image(struct output *out, size_t part, size_t parts, const void *image, size_t length);
#endif
