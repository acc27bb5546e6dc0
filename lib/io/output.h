/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * output.h -- the struct of an output, shared by output.c, copy.c and resume.c
 *
 * output.c writes data and has no input. copy.c uses output.c to copy objects from an input.
 */
#ifndef IO_OUTPUT_H
#define IO_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/replace.h"
#include "io/buffer.h"
#include "io/tree.h"

/* The group in a part of FILE.part that has its rows of the report (resume.h). */
#define RESUME_REPORT "/resume:report"

struct output {
	char *name;			/* for messages */
	const char *kind;
	int stream;			/* descriptor that receives the parts; -1: the result is one file */
	bool kept;			/* the stream is FILE.part: its parts must survive the program */
	char *identity;			/* attribute resume of the first part of FILE.part */
	const char *processor;		/* attribute resume:processor of the first part */
	/* Called before a part ends, to write further data into it; NULL: not called. */
	void (*last)(void *arg, struct output *out);
	void *arg;
	struct replace named;		/* the result file; path NULL: the output is a descriptor */
	int target;			/* descriptor of a regular file that becomes the result, or -1 */
	hid_t file;
	struct buffer buffer;		/* the part, or the file */
	size_t part, parts, next;
	bool open;			/* between output_start() and output_end() */
	char **copied;			/* paths copied by output_copy() in this part, NULL-terminated */
	size_t copies;
	struct links links;		/* first paths in this part of input objects with several names */
};

hid_t output_object(struct output *out, const char *path);	/* fatal error if it does not exist */
bool output_has(struct output *out, const char *path);
void output_group(struct output *out, const char *path);	/* makes a group and the groups above it */
void output_parent(struct output *out, const char *path);	/* makes the group that contains path */
/* A stream into an open file. output_free() closes it. */
struct output *output_stream(const char *name, int fd, const char *kind);
/* A stream into FILE.part, which is open. Each part is synced to disk, then its seal (seal.h) is written in
 * front of it. The first part is number `next`. output_free() closes it. */
struct output *output_kept(const char *name, int fd, const char *kind, size_t next);
void output_free(struct output *out);
/* Writes a finished part of FILE.part to the result: its history is kept, its resume data are left out. */
void output_write_finished(struct output *out, const struct part *from);
/* Writes an HDF5 image unchanged as a part of a stream. */
void output_image(struct output *out, size_t part, size_t parts, const void *image, size_t length);
#endif
