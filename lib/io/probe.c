/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * probe.c -- checks that the HDF5 library can read a part; see probe.h
 *
 * A damaged part can make the library crash, write outside its memory, or loop without end
 * (docs/robustness.md has a list). Three checks prevent it.
 *
 * Strings of variable length are checked in the bytes of the part. A string is a reference (its length and
 * its address in a heap) and an object of that heap. The library allocates the length of the reference and
 * copies the length of the object, so the two are compared here. A conversion that changes nothing extracts
 * the bytes of a reference from the library.
 *
 * Soft and external links are refused: their targets are not visited.
 *
 * All other damage is found by a child process, which first makes the calls that reading the part will
 * make. It skips only large tables of numbers.
 *
 * Source: HDF5 File Format Specification 3.0, III.E (global heap), VIII.E.
 */
#include "io/probe.h"
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/error.h"

enum { SECONDS = 5 };			/* of processor time; 10 000 tensors take less than half a second */
enum { REFERENCE = 16, HEAP_HEAD = 16, OBJECT_HEAD = 16, HEAP_MIN = 4096 };	/* bytes */
static const size_t VALUES_MAX = 1 << 24;	/* bytes of values to read; larger data are numbers */

static hid_t raw = -1;			/* type of a reference as plain bytes */

/* A walk over a part. read: reads the values, too; otherwise it finds the first fault. */
struct probe { const struct part *part; bool read; const char *what; char *path, *name; };

static uint64_t number(const unsigned char *p, int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* Whether the heap at `at` is complete, and its object `index` has this length. */
static bool heap_holds(const struct part *part, uint64_t at, uint64_t index, uint64_t length)
{
	const unsigned char *heap = part->base + at;
	uint64_t size, need;
	bool found = false;

	if (at > part->length || part->length - at < HEAP_MIN || memcmp(heap, "GCOL\1", 5))
		return false;
	size = number(heap + 8, 8);
	if (size < HEAP_MIN || size > part->length - at)
		return false;
	for (uint64_t i = HEAP_HEAD; size - i >= OBJECT_HEAD; i += need) {
		uint64_t object = number(heap + i, 2), bytes = number(heap + i + 8, 8), left = size - i;

		if (bytes > left)
			return false;
		need = object ? OBJECT_HEAD + (bytes + 7) / 8 * 8 : bytes;
		if (need < OBJECT_HEAD || need > left)
			return false;
		found |= object && object == index && bytes == length;
	}
	return found;
}

/* A conversion from strings to raw that leaves the bytes unchanged. */
static herr_t keep_bytes(hid_t from, hid_t to, H5T_cdata_t *c, size_t n, size_t stride, size_t back_stride,
	void *buffer, void *back, hid_t plist)
{
	(void)from, (void)n, (void)stride, (void)back_stride, (void)buffer, (void)back, (void)plist;
	if (c->command == H5T_CONV_INIT) {
		c->need_bkg = H5T_BKG_NO;
		return H5Tget_size(to) == REFERENCE ? 0 : -1;
	}
	return 0;
}

static void init(void)
{
	hid_t string;

	if (raw >= 0)
		return;
	string = H5Tcopy(H5T_C_S1);
	raw = H5Tcreate(H5T_OPAQUE, REFERENCE);
	if (H5Tset_size(string, H5T_VARIABLE) < 0 ||
	    H5Tregister(H5T_PERS_SOFT, "reference", string, raw, keep_bytes) < 0)
		die("this HDF5 library does not accept a conversion");
	H5Tclose(string);
}

/* Allocates memory for the values; NULL if there are no values, or too many. */
static void *values(hid_t type, hid_t space)
{
	hssize_t n = H5Sget_simple_extent_npoints(space);
	size_t size = H5Tget_size(type);

	return n > 0 && size && (size_t)n <= VALUES_MAX / size ? calloc((size_t)n, size) : NULL;
}

static bool nests_strings(hid_t type)
{
	H5T_class_t is = H5Tget_class(type);

	return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_REFERENCE) > 0 ||
		(is != H5T_STRING && H5Tdetect_class(type, H5T_STRING) > 0);
}

/* The fault of the values of an attribute or dataset, or NULL. */
static const char *fault(const struct part *part, hid_t object, hid_t type, hid_t space)
{
	static const char damaged[] = "holds a string that is damaged";
	bool attribute = H5Iget_type(object) == H5I_ATTR;
	hssize_t n = H5Sget_simple_extent_npoints(space);
	const char *what = NULL;
	unsigned char *r;

	if (type < 0 || space < 0 || n < 0)
		return "is damaged";
	if (nests_strings(type))
		return "has an unsupported type (references, or strings within other types)";
	if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) <= 0 || !n)
		return NULL;
	if ((size_t)n > part->length / REFERENCE || !(r = calloc((size_t)n, REFERENCE)))
		return damaged;
	if ((attribute ? H5Aread(object, raw, r) :
	     H5Dread(object, raw, H5S_ALL, H5S_ALL, H5P_DEFAULT, r)) < 0)
		what = damaged;
	for (size_t i = 0; i < (size_t)n && !what; i++) {
		const unsigned char *p = r + i * REFERENCE;
		uint64_t at = number(p + 4, 8);

		if (at && !heap_holds(part, at, number(p + 12, 4), number(p, 4)))
			what = damaged;
	}
	free(r);
	return what;
}

static herr_t try_attribute(hid_t object, const char *name, const H5A_info_t *info, void *arg)
{
	struct probe *p = arg;
	hid_t a = H5Aopen(object, name, H5P_DEFAULT), t = H5Aget_type(a), s = H5Aget_space(a);
	const char *what = fault(p->part, a, t, s);
	void *value = p->read && !what ? values(t, s) : NULL;

	(void)info;
	if (value && H5Aread(a, t, value) >= 0)
		H5Dvlen_reclaim(t, s, H5P_DEFAULT, value);
	free(value);
	H5Sclose(s), H5Tclose(t), H5Aclose(a);
	if (!what || p->read)
		return 0;
	p->what = what;
	p->name = xformat(": attribute %s", name);
	return 1;
}

static herr_t try_dataset(struct probe *p, hid_t d)
{
	hid_t t = H5Dget_type(d), s = H5Dget_space(d), c = H5Dget_create_plist(d);
	bool here = c >= 0 && H5Pget_external_count(c) == 0 && H5Pget_layout(c) != H5D_VIRTUAL;
	const char *what = here ? fault(p->part, d, t, s) : NULL;
	void *value = NULL;

	if (p->read && here && !what &&
	    (H5Pget_layout(c) != H5D_CONTIGUOUS || H5Tget_class(t) == H5T_STRING))
		value = values(t, s);
	H5Dget_offset(d);
	if (value && H5Dread(d, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0)
		H5Dvlen_reclaim(t, s, H5P_DEFAULT, value);
	free(value);
	H5Pclose(c), H5Sclose(s), H5Tclose(t);
	if (!what || p->read)
		return 0;
	p->what = what;
	return 1;
}

static herr_t try_object(hid_t file, const char *path, const H5O_info_t *info, void *arg)
{
	struct probe *p = arg;
	hid_t o = H5Oopen(file, path, H5P_DEFAULT);
	herr_t stop = H5Aiterate2(o, H5_INDEX_NAME, H5_ITER_INC, NULL, try_attribute, p);

	if (stop < 0 && !p->read)
		p->what = "cannot be read; the file is damaged", stop = 1;
	if (stop <= 0)
		stop = info->type == H5O_TYPE_DATASET ? try_dataset(p, o) : 0;
	H5Oclose(o);
	if (p->what)
		p->path = xformat("/%s", strcmp(path, ".") ? path : "");
	return stop;
}

/* A soft or external link leads to an object that the walk over objects does not reach. That walk reads the
 * links, too, so the child process needs no walk of its own over them. */
static herr_t try_link(hid_t file, const char *path, const H5L_info_t *info, void *arg)
{
	struct probe *p = arg;

	(void)file;
	if (info->type == H5L_TYPE_HARD)
		return 0;
	p->what = "is a soft or external link; only hard links are read";
	p->path = xformat("/%s", path);
	return 1;
}

void probe_part(const struct part *part)
{
	struct probe p = { .part = part, .read = true };
	hid_t file = hdf5_open(part->name, part->base, part->length);

	init();
	if (file >= 0)
		H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, try_object, &p, H5O_INFO_BASIC);
	H5Fclose(file);
}

static _Noreturn void try_alone(const struct part *part)
{
	struct rlimit none = { 0, 0 }, time = { SECONDS, SECONDS };

	clear_cleanups();
	signal(SIGBUS, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &time);
	close(2);			/* the library may print when it crashes */
	probe_part(part);
	_exit(0);
}

static bool is_crash(int number)
{
	return number == SIGSEGV || number == SIGABRT || number == SIGFPE ||
		number == SIGILL;
}

void probe_apart(const struct part *part)
{
	struct rusage usage;
	bool endless;
	int status;
	pid_t child;

	signal(SIGCHLD, SIG_DFL);	/* if SIGCHLD is ignored (inherited), wait4() gets no status */
	child = fork();
	if (child < 0)
		die("%s: cannot start the process that checks for damage:", part->name);
	if (!child)
		try_alone(part);
	while (wait4(child, &status, 0, &usage) < 0)
		if (errno != EINTR)
			die("%s: cannot wait for the process that checks for damage:", part->name);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		raise(SIGBUS);		/* the file shrank meanwhile */
	endless = WIFSIGNALED(status) && usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1 >= SECONDS;
	if (status && !endless && WIFSIGNALED(status) && !is_crash(WTERMSIG(status)))
		die("%s: the process that checks for damage was ended by signal %d", part->name,
			WTERMSIG(status));
	if (status)
		die("%s: the HDF5 library %s this file; it is damaged", part->name,
			endless ? "does not finish reading" : "crashes on");
}

void probe_contents(const struct part *part)
{
	struct probe p = { .part = part };

	init();
	if (H5Lvisit(part->file, H5_INDEX_NAME, H5_ITER_NATIVE, try_link, &p) < 0 || (!p.what &&
	    H5Ovisit2(part->file, H5_INDEX_NAME, H5_ITER_NATIVE, try_object, &p, H5O_INFO_BASIC) < 0))
		die("%s: its groups cannot be listed; the file is damaged", part->name);
	if (p.what)
		die("%s: %s%s: %s", part->name, p.path, p.name ? p.name : "", p.what);
}
