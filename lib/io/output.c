/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * output.c -- a result as a stream of images or as one file; see image.h
 *
 * HDF5 writes to memory in both cases: of an image, which then goes to the pipe
 * in one go, or of a mapped file, so that no write inside the library can fail
 * (it does not always survive that). A file grows beside its name
 * (base/replace.h). A descriptor that stands at the start of a regular file gets
 * one file too, written where it is.
 */
#include "io/hdf5.h"
#include "base/error.h"
#include "base/number.h"
#include "base/history.h"
#include "base/standard.h"
#include "io/file.h"
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

enum { ALIGN = 64, STEP = 1 << 20 };

static volatile sig_atomic_t unfinished = -1;		/* a file written where it is: emptied when the program stops */

static void empty_unfinished(void)
{
	if (unfinished >= 0 && ftruncate(unfinished, 0))
		return;
}

static void fail(const struct output *out)
{
	die("%s: the HDF5 library cannot write this", out->name);
}

static hid_t made(const struct output *out, hid_t id)
{
	if (id < 0)
		fail(out);
	return id;
}

/* ---- opening ---- */

/* The descriptor that a path stands for: 1 for none and "-"; -1: it is the name of a file. */
static int descriptor_of(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" }, *const names[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	size_t fd;

	if (!path || !strcmp(path, "-"))
		return 1;
	for (int i = 0; i < 3; i++)
		if (!strcmp(path, names[i]))
			return i;
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(folders[i]);
		const char *end = strncmp(path, folders[i], n) ? NULL : number_size(path + n, &fd);

		if (end && !*end && fd <= INT_MAX)
			return (int)fd;
	}
	return -1;
}

/* A mapping of a file needs it readable, too. */
static int open_again(int fd, const char *name)
{
	char *path = xformat("/proc/self/fd/%d", fd);
	int again = open(path, O_RDWR | O_CLOEXEC);

	if (again < 0)
		die("%s: cannot be opened for reading and writing; use -o FILE:", name);
	free(path);
	return again;
}

/* A regular file that is empty or is to be written over from its start, and not just added to. */
static bool starts_a_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !(fcntl(fd, F_GETFL) & O_APPEND) && lseek(fd, 0, SEEK_CUR) == 0;
}

static void check_writable(int fd, const char *name)
{
	int flags = fcntl(fd, F_GETFL);

	if (standard_closed(fd) || (flags < 0 && errno == EBADF))
		die("%s: is closed", name);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		die("%s: is open for reading only", name);
}

static void check_descriptor(int fd, const char *name)
{
	check_writable(fd, name);
	if (isatty(fd) && fd == 1)
		misuse("standard output is a terminal: use -o FILE or a pipe");
	if (isatty(fd))
		misuse("%s is a terminal: HDF5 is not written to it", name);
}

static void create(struct output *out)
{
	hid_t creation = made(out, H5Pcreate(H5P_FILE_CREATE)), access = hdf5_memory_plist(&out->buffer);

	/* One format whatever the library's version; no times; every dataset aligned, so that it can be mapped. */
	if (H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 || H5Pset_alignment(access, ALIGN, ALIGN) < 0 ||
	    H5Pset_small_data_block_size(access, 0) < 0 || H5Pset_obj_track_times(creation, false) < 0)
		die("this HDF5 library is too old");
	out->file = H5Fcreate("/dev/null/output", H5F_ACC_TRUNC, creation, access);
	if (out->file < 0)
		die("%s: cannot create an HDF5 image", out->name);
	H5Pclose(creation), H5Pclose(access);
}

struct output *output_open(const char *path, const char *kind)
{
	struct output *out = xalloc(1, sizeof *out);
	const int descriptor = descriptor_of(path);
	struct stat st;

	hdf5_init();
	out->name = xformat("%s", descriptor == 1 ? "<stdout>" : path);
	out->kind = kind;
	out->fd = out->target = -1;
	out->file = -1;
	if (descriptor >= 0) {
		check_descriptor(descriptor, out->name);
		*(starts_a_file(descriptor) ? &out->target : &out->fd) = descriptor;
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		out->fd = open(path, O_WRONLY | O_CLOEXEC);
		if (out->fd < 0)
			die("%s: cannot open:", path);
		check_descriptor(out->fd, path);
	} else {
		out->named = replace_open(path);
		out->buffer.fd = out->named.fd;
		out->buffer.name = out->name;
	}
	return out;
}

void output_answer(const char *path)
{
	check_writable(1, "<stdout>");
	if (file_is_input(1))
		die("<stdout>: is an input, the answer would destroy it");
	if (path && descriptor_of(path) == 1)
		misuse("-o %s: standard output has the answer already; the name of a file was wanted", path);
}

/* ---- attributes and datasets ---- */

hid_t output_object(struct output *out, const char *path)
{
	hid_t o = H5Oopen(out->file, path, H5P_DEFAULT);

	if (o < 0)
		die("%s: %s: is not there to take an attribute", out->name, path);
	return o;
}

bool output_has(struct output *out, const char *path)
{
	return hdf5_has(out->file, path, out->name);
}

void output_group(struct output *out, const char *path)
{
	hid_t creation, g;
	char *parent, *slash;

	if (output_has(out, path))
		return;
	parent = xformat("%s", path);
	slash = strrchr(parent, '/');
	*slash = 0;
	if (*parent)
		output_group(out, parent);
	free(parent);
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
		die("%s: %s: is no absolute path", out->name, path);
	*slash = 0;
	if (*parent)
		output_group(out, parent);
	free(parent);
}

static void put_attribute(struct output *out, const char *path, const char *name, hid_t file_type, hid_t type, const void *value)
{
	hid_t o = output_object(out, path), s = made(out, H5Screate(H5S_SCALAR)), a;

	if (hdf5_yes(H5Aexists(o, name), out->name, path))
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
		die("%s: %s: is there already; an earlier part of the input holds it too", out->name, path);
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
	if (out->fd < 0)
		output_link(out, path, same);
	else {
		output_write(out, path, t);
		output_text(out, path, "tied_to", same);
	}
}

/* ---- parts ---- */

static void write_full(struct output *out, const void *from, size_t n)
{
	for (size_t put = 0; put < n;) {
		ssize_t w = write(out->fd, (const char *)from + put, n - put < STEP ? n - put : STEP);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			die("%s: cannot write:", out->name);
		put += (size_t)w;
	}
}

/* All inputs are open by now: what is one of them is neither emptied nor written into. */
static void begin_writing(struct output *out)
{
	const int fd = out->fd >= 0 ? out->fd : out->target;
	const char *kind = out->named.path ? file_input_kind(out->named.path) : NULL;

	if (fd >= 0 && file_is_input(fd))
		die("%s: is an input, the result would destroy it; use -o FILE", out->name);
	if (kind && strcmp(kind, out->kind))	/* a model may replace the model that it was made from */
		die("%s: is an input that holds %s%s, the result would destroy it", out->name, *kind ? "a " : "no ", *kind ? kind : out->kind);
	if (out->target < 0)
		return;
	out->buffer.fd = open_again(out->target, out->name);
	out->buffer.name = out->name;
	at_stop(empty_unfinished);
	unfinished = out->buffer.fd;
	if (ftruncate(out->buffer.fd, 0))
		die("%s: cannot write:", out->name);
}

void output_start(struct output *out, size_t part, size_t parts)
{
	if (out->open || part != out->next || part >= parts || (out->parts && parts != out->parts))
		die("%s: part %zu of %zu written out of order", out->name, part, parts);
	out->open = true;
	out->part = part;
	out->parts = parts;
	if (!part)
		begin_writing(out);
	if (out->fd >= 0 && out->buffer.data)	/* what a smaller image leaves over must not show up in its gaps */
		memset(out->buffer.data, 0, out->buffer.room);
	if (out->fd >= 0 || !part)
		create(out);
	if (out->fd >= 0 || !part) {
		output_text(out, "/", "ptq_kind", out->kind);
		output_text(out, "/", "ptq_version", "1");
	}
	if (!part)
		output_text(out, "/", "history", history_line());
	if (out->fd >= 0) {
		output_integer(out, "/", "part", (int64_t)part);
		output_integer(out, "/", "parts", (int64_t)parts);
	}
}

struct lineage { struct output *out; const struct image *from; const char *prefix; };

/* An input's history:X becomes history:PREFIX:X, and with a prefix its history history:PREFIX. */
static herr_t take_history(hid_t root, const char *name, const H5A_info_t *info, void *arg)
{
	static const char history[] = "history";
	const size_t n = sizeof history - 1;
	struct lineage *l = arg;
	char *text, *ours;

	(void)root, (void)info;
	if (strncmp(name, history, n) || (name[n] ? name[n] != ':' : !*l->prefix) || !(text = image_text(l->from, "/", name)))
		return 0;
	ours = xformat("%s%s%s%s", history, *l->prefix ? ":" : "", l->prefix, name + n);
	output_text(l->out, "/", ours, text);
	free(ours), free(text);
	return 0;
}

static void take_histories(struct output *out, const struct image *from, const char *prefix)
{
	hid_t root = hdf5_id(H5Gopen2(from->file, "/", H5P_DEFAULT), from->name, "/");

	if (H5Aiterate2(root, H5_INDEX_NAME, H5_ITER_INC, NULL, take_history, &(struct lineage){ out, from, prefix }) < 0)
		die("%s: /: its attributes cannot be read; the file is damaged", from->name);
	H5Gclose(root);
}

void output_history(struct output *out, const char *input, const struct image *from)
{
	if (!out->open || out->part)
		die("%s: histories of inputs stand in part 0", out->name);
	take_histories(out, from, input);
}

void output_begin(struct output *out, const struct image *from)
{
	static const char *const own[] = { "ptq_kind", "ptq_version", "history", "part", "parts", NULL };
	char *old;

	output_start(out, from->part, from->parts);
	if (from->part)
		return;
	if (!strcmp(image_kind(from), out->kind))
		output_attributes(out, from, "/", own);
	else
		take_histories(out, from, "");
	old = image_text(from, "/", "history");
	if (old) {
		char *both = xformat("%s\n%s", history_line(), old);

		output_text(out, "/", "history", both);
		free(both);
		free(old);
	}
}


static void forget_part(struct output *out)
{
	hdf5_free_names(out->done, out->dones);
	out->done = NULL;
	out->dones = 0;
	for (size_t i = 0; i < out->links.n; i++)
		free(out->links.item[i].path);
	free(out->links.item);
	out->links = (struct shared_list){ 0 };
}

/* The HDF5 image is whole: its length, which is settled, and written to the superblock, when the library closes it. */
static size_t finish(struct output *out)
{
	if (H5Fclose(out->file) < 0)
		die("%s: cannot finish the HDF5 image", out->name);
	out->file = -1;
	return hdf5_length(out->name, out->buffer.data);
}

void output_end(struct output *out)
{
	forget_part(out);
	out->open = false;
	out->next++;
	if (out->fd >= 0)
		write_full(out, out->buffer.data, finish(out));
	else	/* written pages are the system's to keep or drop, not ours to hold */
		madvise(out->buffer.data, out->buffer.room, MADV_DONTNEED);
}

void output_close(struct output *out)
{
	if (out->open || out->next != out->parts)
		die("%s: only %zu of %zu parts were written", out->name, out->next, out->parts);
	file_check();
	if (out->fd < 0 && ftruncate(out->buffer.fd, (off_t)finish(out)))
		die("%s: cannot write:", out->name);
	if (out->named.path) {
		replace_sync(&out->named);
		settle();
		replace_done(&out->named);
	} else {
		settle();
		unfinished = -1;
		if (close(out->fd < 0 ? out->buffer.fd : out->fd))
			die("%s: cannot close:", out->name);
	}
	buffer_free(&out->buffer);
	free(out->name);
	free(out);
}

void output_pass(struct output *out, const struct image *image)
{
	if (out->fd >= 0 && image->framed && image->part) {
		if (out->open || image->part != out->next || image->parts != out->parts)
			die("%s: part %zu of %zu written out of order", out->name, image->part, image->parts);
		write_full(out, image->base, image->length);
		out->next++;
		return;
	}
	output_begin(out, image);
	output_rest(out, image, NULL);
	output_end(out);
}
