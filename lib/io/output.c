/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * output.c -- writes a result as a stream of parts or as one file; see part.h and output.h
 *
 * HDF5 writes to memory in both cases: to a part, which is then written to the pipe, or to a mapped file.
 * So no write inside the library can fail; the library does not always survive a failed write. A file has a
 * temporary name until it is complete (base/replace.h). A descriptor of a regular file at its start also
 * receives one file, which is written in place.
 */
#include "io/output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "base/history.h"
#include "base/number.h"
#include "base/standard.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/seal.h"

enum { DATA_ALIGN = 64 };	/* alignment of datasets in bytes */

static volatile sig_atomic_t unfinished = -1;	/* a file written in place; emptied on an early exit */

static void empty_unfinished(void)
{
	if (unfinished >= 0 && ftruncate(unfinished, 0))
		return;
}

/* Returns id; fatal error if the call that made it failed. */
static hid_t made(const struct output *out, hid_t id)
{
	if (id < 0)
		die("%s: the HDF5 library cannot write this", out->name);
	return id;
}

static void check_descriptor(int fd, const char *name)
{
	descriptor_writable(fd, name);
	if (isatty(fd) && fd == 1)
		misuse("standard output is a terminal: use -o FILE or a pipe");
	if (isatty(fd))
		misuse("%s is a terminal: HDF5 is not written to it", name);
}

static void create(struct output *out)
{
	hid_t creation = made(out, H5Pcreate(H5P_FILE_CREATE)), access = hdf5_memory_plist(&out->buffer);
	static unsigned created;
	char *unique = xformat("/dev/null/output %u", ++created);	/* as in hdf5_open() */

	/* The same format with every library version, no times, and aligned datasets that can be mapped. */
	if (H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 ||
	    H5Pset_alignment(access, DATA_ALIGN, DATA_ALIGN) < 0 ||
	    H5Pset_small_data_block_size(access, 0) < 0 || H5Pset_obj_track_times(creation, false) < 0)
		die("this HDF5 library is too old");
	out->file = H5Fcreate(unique, H5F_ACC_TRUNC, creation, access);
	if (out->file < 0)
		die("%s: cannot create an HDF5 image", out->name);
	H5Pclose(creation), H5Pclose(access);
	free(unique);
}

struct output *output_open(const char *path, const char *kind)
{
	struct output *out = xalloc(1, sizeof *out);
	const int descriptor = descriptor_of(path);
	struct stat st;

	hdf5_init();
	out->name = xformat("%s", descriptor == 1 ? "<stdout>" : path);
	out->kind = kind;
	out->stream = out->target = -1;
	out->file = -1;
	if (descriptor >= 0) {
		check_descriptor(descriptor, out->name);
		*(descriptor_starts_file(descriptor) ? &out->target : &out->stream) = descriptor;
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		out->stream = open(path, O_WRONLY | O_CLOEXEC);
		if (out->stream < 0)
			die("%s: cannot open:", path);
		check_descriptor(out->stream, path);
	} else {
		out->named = replace_open(path);
		out->buffer.fd = out->named.fd;
		out->buffer.name = out->name;
	}
	return out;
}

struct output *output_stream(const char *name, int fd, const char *kind)
{
	struct output *out = xalloc(1, sizeof *out);

	hdf5_init();
	out->name = xformat("%s", name);
	out->kind = kind;
	out->stream = fd;
	out->target = -1;
	out->file = -1;
	return out;
}

struct output *output_kept(const char *name, int fd, const char *kind, size_t next)
{
	struct output *out = output_stream(name, fd, kind);

	out->kept = true;
	out->next = next;
	return out;
}

void output_stdout_check(const char *path)
{
	descriptor_writable(1, "<stdout>");
	if (file_is_input(1))
		die("<stdout>: is an input, the text would destroy it");
	if (path && descriptor_of(path) == 1)
		misuse("-o %s: standard output gets the text, expected the name of a file", path);
}

hid_t output_object(struct output *out, const char *path)
{
	hid_t o = H5Oopen(out->file, path, H5P_DEFAULT);

	if (o < 0)
		die("%s: %s: cannot be opened to write an attribute", out->name, path);
	return o;
}

bool output_has(struct output *out, const char *path)
{
	return hdf5_has(out->file, path, out->name);
}

void output_group(struct output *out, const char *path)
{
	hid_t creation, g;

	if (output_has(out, path))
		return;
	output_parent(out, path);
	creation = made(out, H5Pcreate(H5P_GROUP_CREATE));
	made(out, H5Pset_obj_track_times(creation, false));
	g = made(out, H5Gcreate2(out->file, path, H5P_DEFAULT, creation, H5P_DEFAULT));
	made(out, H5Gclose(g));
	H5Pclose(creation);
}

void output_parent(struct output *out, const char *path)
{
	char *parent = xformat("%s", path);
	char *slash = strrchr(parent, '/');

	if (!slash)
		die("%s: %s: is not an absolute path", out->name, path);
	*slash = 0;
	if (*parent)
		output_group(out, parent);
	free(parent);
}

static void put_attribute(struct output *out, const char *path, const char *name, hid_t file_type, hid_t type,
	const void *value)
{
	hid_t o = output_object(out, path), s = made(out, H5Screate(H5S_SCALAR)), a;

	if (hdf5_true(H5Aexists(o, name), out->name, path))
		made(out, H5Adelete(o, name));
	a = made(out, H5Acreate2(o, name, file_type, s, H5P_DEFAULT, H5P_DEFAULT));
	made(out, H5Awrite(a, type, value));
	made(out, H5Aclose(a));
	made(out, H5Oclose(o));
	H5Sclose(s);
}

void output_text(struct output *out, const char *path, const char *name, const char *value)
{
	hid_t t = made(out, H5Tcopy(H5T_C_S1));

	made(out, H5Tset_size(t, H5T_VARIABLE));
	made(out, H5Tset_cset(t, H5T_CSET_UTF8));
	put_attribute(out, path, name, t, t, &value);
	H5Tclose(t);
}

void output_drop(struct output *out, const char *path, const char *name)
{
	hid_t o = output_object(out, path);

	if (hdf5_true(H5Aexists(o, name), out->name, path))
		made(out, H5Adelete(o, name));
	made(out, H5Oclose(o));
}

void output_number(struct output *out, const char *path, const char *name, double value)
{
	put_attribute(out, path, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void output_integer(struct output *out, const char *path, const char *name, int64_t value)
{
	put_attribute(out, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

static void put_dataset(struct output *out, const char *path, hid_t type, hid_t space, const void *data)
{
	hid_t creation = made(out, H5Pcreate(H5P_DATASET_CREATE)), d;

	output_parent(out, path);
	if (output_has(out, path))
		die("%s: %s: exists already; an earlier part of the input, or a link to the same group, "
			"holds it too", out->name, path);
	made(out, H5Pset_obj_track_times(creation, false));
	made(out, H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
	made(out, H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY));
	d = made(out, H5Dcreate2(out->file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
	if (data)
		made(out, H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
	made(out, H5Dclose(d));
	H5Pclose(creation);
}

void output_write(struct output *out, const char *path, struct tensor t)
{
	hsize_t dim[TENSOR_RANK];
	hid_t s;

	for (int i = 0; i < t.rank; i++)
		dim[i] = t.dim[i];
	s = made(out, t.rank ? H5Screate_simple(t.rank, dim, NULL) : H5Screate(H5S_SCALAR));
	put_dataset(out, path, hdf5_type(t.type), s, tensor_count(&t) ? t.data : NULL);
	H5Sclose(s);
}

static void put_strings(struct output *out, const char *path, hid_t space, size_t size, const char *data)
{
	hid_t t = made(out, H5Tcopy(H5T_C_S1));

	made(out, H5Tset_size(t, size ? size : 1));
	made(out, H5Tset_strpad(t, H5T_STR_NULLPAD));
	made(out, H5Tset_cset(t, H5T_CSET_UTF8));
	put_dataset(out, path, t, space, data);
	H5Sclose(space), H5Tclose(t);
}

void output_string(struct output *out, const char *path, const char *text)
{
	put_strings(out, path, made(out, H5Screate(H5S_SCALAR)), strlen(text), text);
}

void output_strings(struct output *out, const char *path, size_t n, const char *const text[n])
{
	size_t size = 1;
	char *all;

	for (size_t i = 0; i < n; i++)
		size = strlen(text[i]) > size ? strlen(text[i]) : size;
	all = xalloc(n, size);
	for (size_t i = 0; i < n; i++)
		memcpy(all + i * size, text[i], strlen(text[i]));
	put_strings(out, path, made(out, H5Screate_simple(1, (hsize_t[]){ n }, NULL)), size, all);
	free(all);
}

void output_link(struct output *out, const char *path, const char *same)
{
	output_parent(out, path);
	if (H5Lcreate_hard(out->file, same, out->file, path, H5P_DEFAULT, H5P_DEFAULT) < 0)
		die("%s: %s: cannot be linked to %s", out->name, path, same);
}

void output_tied(struct output *out, const char *path, struct tensor t, const char *same)
{
	if (out->stream < 0)
		output_link(out, path, same);
	else {
		output_write(out, path, t);
		output_text(out, path, "tied_to", same);
	}
}

/* Called when all inputs are open, so that an output that is an input is neither emptied nor written to. */
static void begin_writing(struct output *out)
{
	const int fd = out->stream >= 0 ? out->stream : out->target;
	const char *kind = out->named.path ? file_input_kind(out->named.path) : NULL;

	if (fd >= 0 && file_is_input(fd))
		die("%s: is an input, the result would destroy it; use -o FILE", out->name);
	/* A model, Hessians, an order may replace their own input; a record is not made again so easily. */
	if (kind && (strcmp(kind, out->kind) || !strcmp(kind, "result")))
		die("%s: is an input (%s%s), the result would destroy it", out->name, *kind ? "" : "no ",
			*kind ? kind : out->kind);
	if (out->target < 0)
		return;
	out->buffer.fd = descriptor_reopen(out->target, out->name);
	out->buffer.name = out->name;
	on_exit_cleanup(empty_unfinished);
	unfinished = out->buffer.fd;
	if (ftruncate(out->buffer.fd, 0))
		die("%s: cannot write:", out->name);
}

static void check_order(const struct output *out, size_t part, size_t parts)
{
	if (out->open || part != out->next || part >= parts || (out->parts && parts != out->parts))
		die("%s: part %zu of %zu is written out of order", out->name, part, parts);
}

void output_start(struct output *out, size_t part, size_t parts)
{
	check_order(out, part, parts);
	out->open = true;
	out->part = part;
	out->parts = parts;
	if (!part)
		begin_writing(out);
	if (out->stream >= 0 && out->buffer.data)	/* gaps must not have bytes of the last part */
		memset(out->buffer.data, 0, out->buffer.capacity);
	if (out->stream >= 0 || !part) {
		create(out);
		output_text(out, "/", "ptq_kind", out->kind);
		output_text(out, "/", "ptq_version", "1");
	}
	if (!part)
		output_text(out, "/", "history", history_line());
	if (!part && out->identity) {
		output_text(out, "/", "resume", out->identity);
		output_text(out, "/", "resume:processor", out->processor);
	}
	if (out->stream >= 0) {
		output_integer(out, "/", "part", (int64_t)part);
		output_integer(out, "/", "parts", (int64_t)parts);
	}
}

/* Closes the HDF5 image; this writes its length to the superblock. Returns the length. */
static size_t finish_image(struct output *out)
{
	if (H5Fclose(out->file) < 0)
		die("%s: cannot finish the HDF5 image", out->name);
	out->file = -1;
	return hdf5_length(out->name, out->buffer.data);
}

/* Writes and syncs a part, then its seal in front of it. So a part with a seal is complete, even if the
 * program or the machine stops. */
static void keep_image(const struct output *out, const void *image, size_t n)
{
	const off_t at = lseek(out->stream, 0, SEEK_CUR);
	char seal[SEAL + 1];

	if (at < 0 || lseek(out->stream, at + SEAL, SEEK_SET) < 0)
		die("%s: cannot write:", out->name);
	file_write(out->name, out->stream, image, n);
	seal_make(seal, n, image);
	if (fsync(out->stream) || lseek(out->stream, at, SEEK_SET) < 0)
		die("%s: cannot sync:", out->name);
	file_write(out->name, out->stream, seal, SEAL);
	if (fsync(out->stream) || lseek(out->stream, at + SEAL + (off_t)n, SEEK_SET) < 0)
		die("%s: cannot sync:", out->name);
}

static void put_image(const struct output *out, const void *image, size_t n)
{
	if (out->kept)
		keep_image(out, image, n);
	else
		file_write(out->name, out->stream, image, n);
}

void output_end(struct output *out)
{
	if (out->last)
		out->last(out->arg, out);
	tree_free_paths(out->copied, out->copies);
	out->copied = NULL;
	out->copies = 0;
	links_free(&out->links);
	out->open = false;
	out->next++;
	if (out->stream >= 0) {
		const size_t n = finish_image(out);

		put_image(out, out->buffer.data, n);
	} else	/* written pages need not stay in memory */
		madvise(out->buffer.data, out->buffer.capacity, MADV_DONTNEED);
}

void output_image(struct output *out, size_t part, size_t parts, const void *image, size_t length)
{
	check_order(out, part, parts);
	put_image(out, image, length);
	out->next++;
}

void output_close(struct output *out)
{
	if (out->open || out->next != out->parts)
		die("%s: only %zu of %zu parts were written", out->name, out->next, out->parts);
	file_check();
	if (out->stream < 0 && ftruncate(out->buffer.fd, (off_t)finish_image(out)))
		die("%s: cannot write:", out->name);
	if (out->named.path) {
		replace_sync(&out->named);
		ignore_signals();
		replace_done(&out->named);
	} else {
		ignore_signals();
		unfinished = -1;
		if (close(out->stream < 0 ? out->buffer.fd : out->stream))
			die("%s: cannot close:", out->name);
	}
	output_free(out);
}

void output_free(struct output *out)
{
	buffer_free(&out->buffer);
	free(out->name);
	free(out);
}
