/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * input.c -- reads files and streams part by part; see part.h
 *
 * Every part is read from memory. A part from a pipe is in a buffer, which grows with the bytes that
 * arrive, not with the length in the header. A file is in a read-only mapping, a large part from a pipe in
 * a mapped temporary file. part.c reads the contents of a part.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/scratch.h"
#include "io/file.h"
#include "io/probe.h"

enum { STEP = 1 << 20 };		/* bytes per read */
static const size_t BUFFER_MAX = (size_t)1 << 30;	/* larger parts from a pipe use a temporary file */

struct input {
	char *name;
	const char *kind;		/* expected; after the first part, the kind of that part */
	char first[32];			/* the kind of the first part */
	part_layout *layout;
	int fd;
	bool piped, kept;		/* kept: the caller closes the descriptor */
	const unsigned char *map;	/* a regular file, or a large part from a pipe */
	size_t length, used;
	size_t lead;			/* bytes before each part of a mapped file */
	struct buffer buffer;		/* a part from a pipe */
	struct part part;
	bool whole;			/* the input is a whole file, not a stream */
	struct part_list list;		/* parts of the whole file */
	struct links links;
	size_t next, parts;		/* number of the next part; number of parts, 0: not known yet */
};

/* Maps a file of n bytes, after the first `used` bytes have been read. */
static void map_input(struct input *in, int fd, size_t n, size_t used)
{
	void *p;

	if (used >= n)
		die("%s: is empty, expected an HDF5 file", in->name);
	p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die("%s: cannot map %zu bytes:", in->name, n);
	in->map = p;
	in->length = n;
	in->used = used;
}

static void unmap_file(struct input *in)
{
	if (in->map)
		munmap((void *)(uintptr_t)in->map, in->length);
	in->map = NULL;
}

/* Releases the pages in memory; the system reads them again when they are needed. */
static void drop_pages(const struct input *in)
{
	if (in->map)
		madvise((void *)(uintptr_t)in->map, in->length, MADV_DONTNEED);
}

/* Advises the system (madvise): do not read ahead (MADV_RANDOM), since objects of HDF5 are far from each
 * other, or read as usual (MADV_NORMAL). */
static void advise(const struct input *in, int how)
{
	if (in->map)
		madvise((void *)(uintptr_t)in->map, in->length, how);
}

static _Noreturn void cut_short(const struct input *in, size_t have, size_t length)
{
	die("%s: is cut short: %zu of %zu bytes", in->name, have, length);
}

/* Copies up to n bytes of the pipe to a temporary file; returns their number. */
static size_t spool(struct input *in, int to, size_t n)
{
	size_t done = 0, got;

	buffer_grow(&in->buffer, STEP);
	do {
		got = file_read(in->name, in->fd, in->buffer.data, n - done < STEP ? n - done : STEP);
		file_write(scratch_folder(), to, in->buffer.data, got);
		done += got;
	} while (got && done < n);
	return done;
}

/* How to make a file of this kind (the first of a list), for messages. */
static const char *maker(const char *kind)
{
	static const char *const makers[][2] = {
		{ "model", "; model-import makes a model of a Hugging Face folder or a GGUF file" },
		{ "tokens", "; tokenize makes tokens of a text" },
		{ "hessian", "; hessian-accum makes Hessians of a model" },
		{ "order", "; gar-order makes an order of Hessians" },
	};
	const size_t n = kind ? strcspn(kind, "|") : 0;

	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
		if (n && strlen(makers[i][0]) == n && !strncmp(makers[i][0], kind, n))
			return makers[i][1];
	return "";
}

/* Reads a part of n bytes from a pipe, after its head, through a temporary file. */
static void read_large(struct input *in, const unsigned char head[HDF5_HEAD], size_t n)
{
	int fd = scratch_file();
	size_t got = HDF5_HEAD;

	file_write(scratch_folder(), fd, head, HDF5_HEAD);
	got += spool(in, fd, n - got);
	if (got < n)
		cut_short(in, got, n);
	map_input(in, fd, n, 0);
	close(fd);
}

/* Reads a part of n bytes from a pipe into the buffer, which grows with the bytes that have arrived. */
static void read_small(struct input *in, const unsigned char head[HDF5_HEAD], size_t n)
{
	size_t got = HDF5_HEAD;

	buffer_grow(&in->buffer, STEP);
	memcpy(in->buffer.data, head, HDF5_HEAD);
	for (size_t step = STEP, end; got < n; step *= 2) {
		end = n - got < step ? n : got + step;
		buffer_grow(&in->buffer, end);
		got += file_read(in->name, in->fd, in->buffer.data + got, end - got);
		if (got < end)
			cut_short(in, got, n);
	}
}

static _Noreturn void not_hdf5(const struct input *in, const char *or)
{
	if (in->whole)
		die("%s: has data after the end of its HDF5 image", in->name);
	if (in->next)
		die("%s: has other data after part %zu", in->name, in->next);
	die("%s: is not an HDF5 file%s%s", in->name, or, maker(in->kind));
}

/* Reads the next part of a pipe; false at its end. */
static bool read_part(struct input *in, struct part *part)
{
	unsigned char head[HDF5_HEAD];
	size_t got = file_read(in->name, in->fd, head, HDF5_HEAD), n;

	if (!got)
		return false;
	if (!hdf5_signature(head, got))
		not_hdf5(in, " or stream, or begins with a user block");
	if (got < HDF5_HEAD)
		cut_short(in, got, HDF5_HEAD);
	n = hdf5_length(in->name, head);
	unmap_file(in);
	if (n > BUFFER_MAX)
		read_large(in, head, n);
	else
		read_small(in, head, n);
	part->base = in->map ? in->map : in->buffer.data;
	part->length = n;
	return true;
}

/* Whether HDF5 begins after other data, at byte 512, 1024, 2048, ... */
static bool has_user_block(const unsigned char *data, size_t n)
{
	if (hdf5_signature(data, n))
		return false;
	for (size_t at = 512; at < n; at *= 2)
		if (hdf5_signature(data + at, n - at))
			return true;
	return false;
}

/* Finds the next part of a mapped file; false at its end. */
static bool find_part(struct input *in, struct part *part)
{
	const unsigned char *data = in->map + in->used + in->lead;
	unsigned char head[HDF5_HEAD] = { 0 };
	size_t left = in->length - in->used, n;

	if (!left)
		return false;
	if (left < in->lead)
		cut_short(in, left, in->lead);
	left -= in->lead;
	if (left < HDF5_HEAD && hdf5_signature(data, left))
		cut_short(in, left, HDF5_HEAD);
	if (has_user_block(data, left))
		die("%s: has an HDF5 user block; store it without one", in->name);
	memcpy(head, data, left < HDF5_HEAD ? left : HDF5_HEAD);
	if (!hdf5_signature(head, HDF5_HEAD))
		not_hdf5(in, "");
	n = hdf5_length(in->name, head);
	if (n > left)
		cut_short(in, left, n);
	part->base = data;
	part->length = n;
	in->used += in->lead + n;
	return true;
}

/* Reads a count from an attribute of the root; false if it is absent or -1. */
static bool read_count(const struct part *part, const char *name, size_t *value)
{
	double v = part_number(part, "/", name, -1);

	*value = 0;
	if (v == -1)
		return false;
	if (!(v >= 0 && v < 1e15) || v != floor(v))
		die("%s: /: attribute %s is %g, expected a count", part->name, name, v);
	*value = (size_t)v;
	return true;
}

/* Whether a word is in a list, "model|hessian". */
static bool one_of(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
		if (!strncmp(p, word, n) && (!p[n] || p[n] == '|'))
			return true;
	return false;
}

static void check_kind(const struct part *part, const char *kind)
{
	const char *is = part_kind(part);
	char *version = part_text(part, "/", "ptq_version");

	if (!*is)
		die("%s: has no attribute ptq_kind, expected '%s'", part->name, kind);
	if (!one_of(kind, is))
		die("%s: holds %s '%s', expected '%s'%s", part->name,
			strchr("aeiou", *is) ? "an" : "a", is, kind, maker(kind));
	if (!version)
		die("%s: has no attribute ptq_version, expected '1'", part->name);
	if (strcmp(version, "1"))
		die("%s: has ptq_version '%s', expected '1'", part->name, version);
	free(version);
}

/* Checks that a part of a stream has the expected number. */
static void check_frame(struct input *in, struct part *part)
{
	if (!read_count(part, "part", &part->part) || !read_count(part, "parts", &part->parts))
		die("%s: an image of the stream has no attributes part and parts", in->name);
	if (!in->parts)
		in->parts = part->parts;
	if (part->parts != in->parts || part->part != in->next || part->part >= part->parts)
		die("%s: has part %zu of %zu, expected part %zu of %zu; the stream is out of order or cut",
			in->name, part->part, part->parts, in->next, in->parts);
	in->next++;
}

/* Opens the next part; false at the end of the input. The first part decides whether the input is a whole
 * file. */
static bool open_part(struct input *in, struct part *part)
{
	const bool first = !in->part.base;
	size_t parts;

	if (!(in->piped ? read_part(in, part) : find_part(in, part))) {
		if (first)
			die("%s: is empty, expected an HDF5 file or stream", in->name);
		if (in->next < in->parts)
			die("%s: the stream ends after %zu of %zu parts: the previous command stopped early",
				in->name, in->next, in->parts);
		return false;
	}
	if (in->whole)
		die("%s: has data after the end of its HDF5 image", in->name);
	if (in->parts && in->next == in->parts)
		die("%s: the stream has data after its %zu parts", in->name, in->parts);
	part->name = in->name;
	advise(in, MADV_RANDOM);
	probe_apart(part);
	part->file = hdf5_open(part->name, part->base, part->length);
	if (part->file < 0)
		die("%s: cannot be opened; the file is damaged", part->name);
	probe_contents(part);
	advise(in, MADV_NORMAL);
	if (in->kind)
		check_kind(part, in->kind);
	if (first && in->kind) {	/* all later parts must have this kind */
		snprintf(in->first, sizeof in->first, "%s", part_kind(part));
		in->kind = in->first;
		file_kind(in->fd, in->first);
	}
	part->framed = true;
	in->whole = first && !read_count(part, "parts", &parts);
	if (!in->whole)
		check_frame(in, part);
	return true;
}

static void close_part(struct part *part)
{
	tree_free_cache(part);
	if (part->framed)
		tree_free_paths(part->member, part->members);
	part->member = NULL;
	part->members = 0;
	if (part->file > 0)
		H5Fclose(part->file);
	part->file = -1;
}

/* Opens a file, but not a terminal. */
static int open_path(const char *path, char **name)
{
	int fd = file_open(path, name);

	if (isatty(fd) && !fd)
		misuse("standard input is a terminal: name an HDF5 file or pipe one in");
	if (isatty(fd))
		die("%s: is a terminal, expected an HDF5 file", *name);
	return fd;
}

/* Returns the offset at which an input begins. The rest of standard input is mapped, so its offset moves to
 * the end. */
static size_t skip_to_end(int fd)
{
	off_t at = fd ? 0 : lseek(fd, 0, SEEK_CUR);

	if (at >= 0 && !fd)
		lseek(fd, 0, SEEK_END);
	return at > 0 ? (size_t)at : 0;
}

struct input *input_open(const char *path, part_layout *layout, const char *kind)
{
	struct input *in = xalloc(1, sizeof *in);
	struct stat st;

	hdf5_init();
	if (path && strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode))
		die("%s: is a folder, expected a file%s", path, maker(kind));
	in->fd = open_path(path, &in->name);
	in->layout = layout;
	in->kind = kind;
	in->part.file = -1;
	in->piped = fstat(in->fd, &st) || !S_ISREG(st.st_mode);
	if (!in->piped)
		map_input(in, in->fd, (size_t)st.st_size, skip_to_end(in->fd));
	return in;
}

struct input *input_of_file(const char *name, int fd, size_t length, size_t lead, const char *kind)
{
	struct input *in = xalloc(1, sizeof *in);

	in->fd = -1;
	in->lead = lead;
	in->name = xformat("%s", name);
	in->kind = kind;
	in->part.file = -1;
	map_input(in, fd, length, 0);
	return in;
}

struct input *input_of_stream(const char *name, int fd, const char *kind)
{
	struct input *in = xalloc(1, sizeof *in);

	in->fd = fd;
	in->kept = true;
	in->piped = true;
	in->name = xformat("%s", name);
	in->kind = kind;
	in->part.file = -1;
	return in;
}

const char *input_name(const struct input *in)
{
	return in->name;
}

bool input_whole(const struct input *in)
{
	return in->whole;
}

struct part *input_next(struct input *in)
{
	struct part *part = &in->part;

	drop_pages(in);
	if (!in->whole || in->next == in->parts) {
		close_part(part);
		if (!open_part(in, part))
			return NULL;
		if (!in->whole) {
			part->member = tree_children(part, "/", &part->members);
			return part;
		}
		in->list = part_list_make(part, in->layout);
		in->parts = in->list.parts;
	}
	tree_free_cache(part);
	part->framed = false;
	part->part = in->next++;
	part->parts = in->parts;
	part->member = in->list.part[part->part].path;
	part->members = in->list.part[part->part].n;
	part->links = &in->links;
	tree_note_links(part);
	return part;
}

struct part *input_matching(struct input *in, struct part *now, const struct part *first)
{
	if (part_index(first))
		now = input_next(in);
	if (!now || part_count(now) != part_count(first))
		die("%s: is of another model than %s: it has %zu parts, expected %zu", in->name,
			part_name(first), now ? part_count(now) : 0, part_count(first));
	return now;
}

void input_close(struct input *in)
{
	close_part(&in->part);
	part_list_free(&in->list);
	links_free(&in->links);
	unmap_file(in);
	buffer_free(&in->buffer);
	if (in->fd > 0 && !in->kept)
		close(in->fd);
	free(in->name);
	free(in);
}

struct part *part_open(const char *path, const char *kind)
{
	struct input *in = input_open(path, NULL, kind);
	struct part next = { .file = -1 }, *last = NULL;

	if (in->piped) {
		int to = scratch_file();
		size_t n = spool(in, to, SIZE_MAX);

		buffer_free(&in->buffer);
		if (in->fd > 0)
			close(in->fd);
		in->fd = to;
		in->piped = false;
		map_input(in, to, n, 0);
	}
	while (open_part(in, &next)) {
		next.member = tree_children(&next, "/", &next.members);
		last = last ? last->also = xalloc(1, sizeof next) : &in->part;
		*last = next;
	}
	in->part.parts = 1;
	return &in->part;
}

static struct input *input_of(const struct part *part)
{
	return (struct input *)((uintptr_t)part - offsetof(struct input, part));
}

void part_drop(const struct part *part)
{
	drop_pages(input_of(part));
}

void part_close(struct part *part)
{
	for (struct part *i = part->also, *also; i; i = also) {
		also = i->also;
		close_part(i);
		free(i);
	}
	input_close(input_of(part));
}
