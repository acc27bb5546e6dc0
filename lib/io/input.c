/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * input.c -- trees from files and streams, part by part; see image.h
 *
 * Every image is read through memory: a pipe into a buffer that grows as bytes
 * arrive (never by what a header promises), a file by a read-only mapping, a
 * large image on a pipe through an unlinked file. What an image holds is read in image.c.
 */
#include "io/hdf5.h"
#include "base/error.h"
#include "base/scratch.h"
#include "io/file.h"
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 1 << 20 };
static const size_t SPOOL = (size_t)1 << 30;	/* larger images on a pipe go through a file */

struct input {
	char *name;
	const char *kind;
	char first[32];			/* the kind of the first image */
	image_layout *layout;
	int fd;
	bool piped;
	const unsigned char *map;	/* a regular file, or the large image of a pipe */
	size_t length, used;
	struct buffer buffer;		/* an image from a pipe */
	struct image image;
	struct shared_list shared;
	struct part_list plan;		/* of a whole file; parts 0: framed images */
	size_t next, parts;		/* the part wanted next, of how many; parts 0: not known yet */
};

/* ---- bytes ---- */

static size_t read_full(const char *name, int fd, void *to, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)to + got, n - got < STEP ? n - got : STEP);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			die("%s: cannot read:", name);
		if (!r)
			break;
		got += (size_t)r;
	}
	return got;
}

static void write_full(const char *name, int fd, const void *from, size_t n)
{
	for (size_t put = 0; put < n;) {
		ssize_t w = write(fd, (const char *)from + put, n - put < STEP ? n - put : STEP);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			die("%s: cannot write to the temporary file:", name);
		put += (size_t)w;
	}
}

static const unsigned char *map_file(const char *name, int fd, size_t n)
{
	void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		die("%s: cannot map %zu bytes:", name, n);
	return p;
}

/* Pages that were looked at count as ours until they are given back; looked at again, they are read again. */
static void drop_pages(const unsigned char *map, size_t n)
{
	if (map)
		madvise((void *)(uintptr_t)map, n, MADV_DONTNEED);
}

static void cut(const char *name, size_t have, size_t want)
{
	die("%s: is cut short: %zu of %zu bytes", name, have, want);
}

/* The next image of a pipe: false at the end. */
static bool read_image(struct input *in)
{
	unsigned char head[HDF5_HEAD];
	size_t got = read_full(in->name, in->fd, head, HDF5_HEAD), n, room = STEP;

	if (!got)
		return false;
	if (got < 9 || memcmp(head, "\211HDF\r\n\032\n", 8))
		die("%s: is no HDF5 file or stream, or begins with a user block", in->name);
	if (got < HDF5_HEAD)
		cut(in->name, got, HDF5_HEAD);
	n = hdf5_length(in->name, head);
	if (in->map)
		munmap((void *)(uintptr_t)in->map, in->length);
	in->map = NULL;
	if (n > SPOOL) {
		int fd = scratch_file();

		buffer_grow(&in->buffer, STEP);
		write_full(in->name, fd, head, HDF5_HEAD);
		for (size_t left = n - HDF5_HEAD; left; left -= got) {
			got = read_full(in->name, in->fd, in->buffer.data, left < STEP ? left : STEP);
			if (!got)
				cut(in->name, n - left, n);
			write_full(in->name, fd, in->buffer.data, got);
		}
		in->map = map_file(in->name, fd, n);
		in->length = n;
		in->image.base = in->map;
		close(fd);
	} else {
		for (got = HDF5_HEAD; got < n; room *= 2) {	/* memory follows the bytes, not the promise */
			size_t want = n - got < room ? n - got : room, r;

			buffer_grow(&in->buffer, got + want);
			if (got == HDF5_HEAD)
				memcpy(in->buffer.data, head, HDF5_HEAD);
			r = read_full(in->name, in->fd, in->buffer.data + got, want);
			got += r;
			if (r < want)
				cut(in->name, got, n);
		}
		in->image.base = in->buffer.data;
	}
	in->image.length = n;
	return true;
}

/* ---- opening an image ---- */

static void open_image(struct image *image)
{
	hdf5_try_apart(image);
	image->file = hdf5_open(image);
	if (image->file < 0)
		die("%s: cannot be opened; the file is damaged", image->name);
	hdf5_check(image);
}

/* A count that the root may have; -1 stands for none. */
static bool integer_attribute(const struct image *image, const char *name, size_t *value)
{
	double v = image_number(image, "/", name, -1);

	*value = 0;
	if (v == -1)
		return false;
	if (!(v >= 0 && v < 1e15) || v != floor(v))
		die("%s: /: attribute %s is %g, a count was wanted", image->name, name, v);
	*value = (size_t)v;
	return true;
}

static bool one_of(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
		if (!strncmp(p, word, n) && (!p[n] || p[n] == '|'))
			return true;
	return false;
}

static void check_kind(const struct image *image, const char *kind)
{
	char *is, *version;

	if (!kind)
		return;
	is = image_text(image, "/", "ptq_kind");
	version = image_text(image, "/", "ptq_version");
	if (!is)
		die("%s: has no attribute ptq_kind, '%s' was wanted", image->name, kind);
	if (!one_of(kind, is))
		die("%s: holds %s '%s', '%s' was wanted", image->name, strchr("aeiou", *is) ? "an" : "a", is, kind);
	if (!version)
		die("%s: has no attribute ptq_version, '1' was wanted", image->name);
	if (strcmp(version, "1"))
		die("%s: has ptq_version '%s', '1' was wanted", image->name, version);
	free(is);
	free(version);
}

static void close_image(struct image *image)
{
	image_forget(image);
	if (image->file > 0)
		H5Fclose(image->file);
	image->file = -1;
}

/* ---- input ---- */

/* A file that may hold HDF5. */
static int open_path(const char *path, char **name)
{
	int fd = file_open(path, name);

	if (isatty(fd) && !fd)
		misuse("standard input is a terminal: name an HDF5 file or pipe one in");
	if (isatty(fd))
		die("%s: is a terminal, an HDF5 file was wanted", *name);
	return fd;
}

/* Where standard input stands; moves it to the end, since the mapping reads the rest. */
static size_t take_rest(int fd)
{
	off_t at = fd ? 0 : lseek(fd, 0, SEEK_CUR);

	if (at >= 0 && !fd)
		lseek(fd, 0, SEEK_END);
	return at > 0 ? (size_t)at : 0;
}

static size_t regular_size(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) ? (size_t)st.st_size : SIZE_MAX;
}

/* HDF5 behind something else, at 512, 1024, 2048, ... */
static bool has_user_block(const unsigned char *data, size_t n)
{
	static const unsigned char signature[8] = "\211HDF\r\n\032\n";

	if (n >= sizeof signature && !memcmp(data, signature, sizeof signature))
		return false;
	for (size_t at = 512; at < n && n - at >= sizeof signature; at *= 2)
		if (!memcmp(data + at, signature, sizeof signature))
			return true;
	return false;
}

/* The image at `used` of a mapped file: false at its end. */
static bool next_mapped(const char *name, const unsigned char *map, size_t length, size_t *used, struct image *image)
{
	unsigned char head[HDF5_HEAD] = { 0 };
	size_t left = length - *used, n;

	if (!left)
		return false;
	memcpy(head, map + *used, left < HDF5_HEAD ? left : HDF5_HEAD);
	if (left < HDF5_HEAD && !memcmp(head, "\211HDF\r\n\032\n", 8))
		cut(name, left, HDF5_HEAD);
	if (has_user_block(map + *used, left))
		die("%s: has an HDF5 user block; store it without one", name);
	n = hdf5_length(name, head);
	if (n > left)
		cut(name, left, n);
	image->base = map + *used;
	image->length = n;
	*used += n;
	return true;
}

struct input *input_open(const char *path, image_layout *layout, const char *kind)
{
	struct input *in = xalloc(1, sizeof *in);
	size_t size;

	hdf5_init();
	in->fd = open_path(path, &in->name);
	in->layout = layout;
	in->kind = kind;
	in->image = (struct image){ .name = in->name, .file = -1 };
	size = regular_size(in->fd);
	in->piped = size == SIZE_MAX;
	if (in->piped)
		return in;
	in->used = take_rest(in->fd);
	if (in->used >= size)
		die("%s: is empty, an HDF5 file was wanted", in->name);
	in->map = map_file(in->name, in->fd, size);
	in->length = size;
	return in;
}

const char *input_name(const struct input *in)
{
	return in->name;
}

static bool fetch(struct input *in)
{
	if (in->piped)
		return read_image(in);
	return next_mapped(in->name, in->map, in->length, &in->used, &in->image);
}

/* A framed image: it must be the part that comes next. */
static void check_frame(struct input *in)
{
	struct image *image = &in->image;

	if (!integer_attribute(image, "part", &image->part) || !integer_attribute(image, "parts", &image->parts))
		die("%s: an image of the stream has no attributes part and parts", in->name);
	if (!in->parts)
		in->parts = image->parts;
	if (image->parts != in->parts || image->part != in->next || image->part >= image->parts)
		die("%s: part %zu of %zu stands where part %zu of %zu was wanted: the stream is out of order or incomplete",
			in->name, image->part, image->parts, in->next, in->parts);
	image_all_members(image);
}

struct image *input_next(struct input *in)
{
	struct image *image = &in->image;
	bool first = !in->next && image->file < 0;

	drop_pages(in->map, in->length);
	if (in->plan.parts) {	/* a whole file: the next part of its plan */
		image_forget(image);
		if (in->next == in->parts) {
			if (fetch(in))
				die("%s: goes on after the end of its HDF5 image", in->name);
			return NULL;
		}
		goto planned;
	}
	if (image->framed) {
		hdf5_free_names(image->member, image->members);
		image->member = NULL;
	}
	close_image(image);
	if (!fetch(in)) {
		if (first)
			die("%s: is empty, an HDF5 file or stream was wanted", in->name);
		if (in->next < in->parts)
			die("%s: the stream ends after %zu of %zu parts: the command before stopped early", in->name, in->next, in->parts);
		return NULL;
	}
	if (in->parts && in->next == in->parts)
		die("%s: the stream goes on after its %zu parts", in->name, in->parts);
	open_image(image);
	check_kind(image, in->kind);
	if (first && in->kind) {	/* and so must all that follow be */
		snprintf(in->first, sizeof in->first, "%s", image_kind(image));
		in->kind = in->first;
		file_kind(in->fd, in->first);
	}
	image->framed = true;
	if (first && !integer_attribute(image, "parts", &(size_t){ 0 })) {
		image->framed = false;
		part_list_make(&in->plan, image, in->layout);
		in->parts = in->plan.parts;
		goto planned;
	}
	check_frame(in);
	in->next++;
	return image;
planned:
	image->part = in->next++;
	image->parts = in->parts;
	image->member = in->plan.member[image->part];
	image->members = in->plan.members[image->part];
	image->shared = &in->shared;
	image_note_shared(image);
	return image;
}

void input_close(struct input *in)
{
	if (in->plan.parts) {
		part_list_free(&in->plan);
	} else if (in->image.framed && in->image.member)
		hdf5_free_names(in->image.member, in->image.members);
	for (size_t i = 0; i < in->shared.n; i++)
		free(in->shared.item[i].path);
	free(in->shared.item);
	close_image(&in->image);
	if (in->map)
		munmap((void *)(uintptr_t)in->map, in->length);
	buffer_free(&in->buffer);
	if (in->fd > 0)
		close(in->fd);
	free(in->name);
	free(in);
}

/* ---- a whole tree at once ---- */

struct whole { int fd; const unsigned char *map; size_t length; char *name; struct image first; };

static int spool(const char *name, int fd, size_t *length)
{
	struct buffer b = { 0 };
	int to = scratch_file();
	size_t n;

	buffer_grow(&b, STEP);
	for (*length = 0; (n = read_full(name, fd, b.data, STEP)); *length += n)
		write_full(name, to, b.data, n);
	buffer_free(&b);
	return to;
}

struct image *image_open(const char *path, const char *kind)
{
	struct whole *w = xalloc(1, sizeof *w);
	struct image *image = &w->first;
	size_t used = 0, part, all, parts = 0, seen = 0;

	hdf5_init();
	w->fd = open_path(path, &w->name);
	w->length = regular_size(w->fd);
	if (w->length == SIZE_MAX) {
		int to = spool(w->name, w->fd, &w->length);

		if (w->fd > 0)
			close(w->fd);
		w->fd = to;
	} else
		used = take_rest(w->fd);
	if (used >= w->length)
		die("%s: is empty, an HDF5 file was wanted", w->name);
	w->map = map_file(w->name, w->fd, w->length);
	for (;;) {
		image->name = w->name;
		next_mapped(w->name, w->map, w->length, &used, image);
		open_image(image);
		check_kind(image, kind);
		file_kind(w->fd, image_kind(image));
		image_all_members(image);
		if (integer_attribute(image, "parts", &all)) {
			image->framed = true;
			parts = seen ? parts : all;
			if (!integer_attribute(image, "part", &part) || part != seen || all != parts)
				die("%s: part %zu of %zu stands where part %zu of %zu was wanted", w->name, part, all, seen, parts);
		} else
			parts = 1;
		seen++;
		if (used == w->length)
			break;
		image = image->also = xalloc(1, sizeof *image);
	}
	if (seen != parts)
		die("%s: the stream has %zu parts of %zu", w->name, seen, parts);
	w->first.parts = 1;
	return &w->first;
}

void image_drop(const struct image *image)
{
	const struct whole *w = (const struct whole *)((const char *)image - offsetof(struct whole, first));

	drop_pages(w->map, w->length);
}

void image_close(struct image *image)
{
	struct whole *w = (struct whole *)((char *)image - offsetof(struct whole, first));

	for (struct image *i = image, *also; i; i = also) {
		also = i->also;
		hdf5_free_names(i->member, i->members);
		close_image(i);
		if (i != image)
			free(i);
	}
	munmap((void *)(uintptr_t)w->map, w->length);
	if (w->fd > 0)
		close(w->fd);
	free(w->name);
	free(w);
}

