/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hdf5.c -- see hdf5.h */
#include "io/hdf5.h"
#include "base/error.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static hid_t little[TENSOR_TYPES], big[TENSOR_TYPES];

static hid_t half(hid_t from, size_t exponent, size_t mantissa, size_t bias)
{
	hid_t t = H5Tcopy(from);

	if (t < 0 || H5Tset_fields(t, 15, mantissa, exponent, 0, mantissa) < 0 || H5Tset_size(t, 2) < 0 || H5Tset_ebias(t, bias) < 0)
		die("this HDF5 library cannot describe 16-bit floating point");
	return t;
}

/* The library calls exit(-1) where an identifier finds no memory. */
static void gave_up(int status, void *arg)
{
	(void)arg;
	if (status < 0 || status > 2)
		die("the HDF5 library gives up; memory is short");
}

void hdf5_init(void)
{
	if (little[TENSOR_F32])
		return;
	on_exit(gave_up, NULL);
	H5dont_atexit();	/* what is open is closed by then; must come first */
	if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
		die("the HDF5 library does not start");
	for (int e = 0; e < 2; e++) {
		hid_t *t = e ? big : little;

		t[TENSOR_F32] = e ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
		t[TENSOR_F64] = e ? H5T_IEEE_F64BE : H5T_IEEE_F64LE;
		t[TENSOR_F16] = half(t[TENSOR_F32], 5, 10, 15);
		t[TENSOR_BF16] = half(t[TENSOR_F32], 8, 7, 127);
		t[TENSOR_U8] = e ? H5T_STD_U8BE : H5T_STD_U8LE;
		t[TENSOR_I8] = e ? H5T_STD_I8BE : H5T_STD_I8LE;
		t[TENSOR_U16] = e ? H5T_STD_U16BE : H5T_STD_U16LE;
		t[TENSOR_I16] = e ? H5T_STD_I16BE : H5T_STD_I16LE;
		t[TENSOR_U32] = e ? H5T_STD_U32BE : H5T_STD_U32LE;
		t[TENSOR_I32] = e ? H5T_STD_I32BE : H5T_STD_I32LE;
		t[TENSOR_U64] = e ? H5T_STD_U64BE : H5T_STD_U64LE;
		t[TENSOR_I64] = e ? H5T_STD_I64BE : H5T_STD_I64LE;
	}
}

static _Noreturn void refuse(const char *file, const char *path)
{
	die("%s: %s: the HDF5 library fails here; the file is damaged, or memory is short", file, path);
}

hid_t hdf5_id(hid_t id, const char *file, const char *path)
{
	if (id < 0)
		refuse(file, path);
	return id;
}

bool hdf5_yes(htri_t answer, const char *file, const char *path)
{
	if (answer < 0)
		refuse(file, path);
	return answer > 0;
}

bool hdf5_has(hid_t file, const char *path, const char *name)
{
	char *p = xformat("%s", path);
	bool there = true;

	for (char *s = p; there && s && strcmp(p, "/");) {
		s = strchr(s + 1, '/');
		if (s)
			*s = 0;
		there = hdf5_yes(H5Lexists(file, p, H5P_DEFAULT), name, path);
		if (s)
			*s = '/';
	}
	free(p);
	return there;
}

hid_t hdf5_type(enum tensor_type type)
{
	return little[type];
}

enum tensor_type hdf5_type_of(hid_t type, bool *exact, const char *file, const char *path)
{
	for (int t = TENSOR_F32; t < TENSOR_TYPES; t++) {
		*exact = hdf5_yes(H5Tequal(type, little[t]), file, path);
		if (*exact || hdf5_yes(H5Tequal(type, big[t]), file, path))
			return (enum tensor_type)t;
	}
	*exact = false;
	return TENSOR_ANY;
}

/* A file's room is allocated before it is mapped: a full disk shows here, not as a fault on a page. */
static size_t file_room(const struct buffer *b, size_t room, size_t need)
{
	int e = posix_fallocate(b->fd, 0, (off_t)room);

	if (e == ENOSPC || e == EFBIG) {	/* there may still be what is needed at least */
		room = need;
		e = posix_fallocate(b->fd, 0, (off_t)room);
	}
	errno = e;
	if (e)
		die("%s: cannot write:", b->name);
	return room;
}

void buffer_grow(struct buffer *b, size_t need)
{
	const size_t step = 2 << 20, page = 4096;
	size_t room = b->room;
	void *p;

	if (need <= room)
		return;
	if (need > SIZE_MAX / 2)
		die("an image of %zu bytes is too large", need);
	room = room + room / 4 > need ? room + room / 4 : need;
	room = (room + step - 1) & ~(step - 1);
	if (b->name)
		room = file_room(b, room, (need + page - 1) & ~(page - 1));
	p = b->data ? mremap(b->data, b->room, room, MREMAP_MAYMOVE) :
		mmap(NULL, room, PROT_READ | PROT_WRITE, b->name ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, b->name ? b->fd : -1, 0);
	if (p == MAP_FAILED)
		die("cannot allocate %zu MiB for an HDF5 image:", room >> 20);
	if (!b->name)
		madvise(p, room, MADV_HUGEPAGE);
	b->data = p;
	b->room = room;
}

void buffer_free(struct buffer *b)
{
	if (b->data)
		munmap(b->data, b->room);
	*b = (struct buffer){ 0 };
}

static void *image_malloc(size_t n, H5FD_file_image_op_t op, void *user)
{
	struct buffer *b = user;

	(void)op;
	buffer_grow(b, n);
	return b->data;
}

static void *image_realloc(void *p, size_t n, H5FD_file_image_op_t op, void *user)
{
	(void)p;
	return image_malloc(n, op, user);
}

static void *image_memcpy(void *to, const void *from, size_t n, H5FD_file_image_op_t op, void *user)
{
	(void)op, (void)user;
	return to == from ? to : memcpy(to, from, n);
}

static herr_t image_free(void *p, H5FD_file_image_op_t op, void *user)
{
	(void)p, (void)op, (void)user;
	return 0;
}

static void *user_copy(void *user)
{
	return user;
}

static herr_t user_free(void *user)
{
	(void)user;
	return 0;
}

hid_t hdf5_memory_plist(struct buffer *b)
{
	H5FD_file_image_callbacks_t cb = { image_malloc, image_memcpy, image_realloc, image_free, user_copy, user_free, b };
	hid_t p = H5Pcreate(H5P_FILE_ACCESS);

	if (p < 0 || H5Pset_fapl_core(p, 2 << 20, 0) < 0 || H5Pset_file_image_callbacks(p, &cb) < 0)
		die("this HDF5 library cannot keep files in memory");
	return p;
}

hid_t hdf5_open(const struct image *image)
{
	struct buffer view = { .data = (unsigned char *)(uintptr_t)image->base, .room = SIZE_MAX };	/* read-only, never grown */
	hid_t p = hdf5_memory_plist(&view), file;
	static unsigned opened;
	char *name;

	if (H5Pset_file_image(p, (void *)(uintptr_t)image->base, image->length) < 0)
		die("%s: the HDF5 library refuses this image", image->name);
	name = xformat("/dev/null/input %u", ++opened);	/* told apart by name; one that no file can have */
	file = H5Fopen(name, H5F_ACC_RDONLY, p);
	H5Pclose(p);
	free(name);
	return file;
}

size_t hdf5_length(const char *name, const unsigned char h[HDF5_HEAD])
{
	int version = h[8];
	int width = version < 2 ? h[13] : h[9], base = version == 0 ? 24 : version == 1 ? 28 : 12;
	int end = version == 0 ? 40 : version == 1 ? 44 : 28;
	uint64_t n = 0, b = 0;

	if (memcmp(h, "\211HDF\r\n\032\n", 8))
		die("%s: is no HDF5 file", name);
	if (version > 3 || width != 8)
		die("%s: has an HDF5 superblock that cannot be read (version %d, %d-byte addresses)", name, version, width);
	for (int i = 7; i >= 0; i--)
		n = n << 8 | h[end + i], b = b << 8 | h[base + i];
	if (b)
		die("%s: has an HDF5 user block; store it without one", name);
	if (n < HDF5_HEAD || n > PTRDIFF_MAX)
		die("%s: has an HDF5 superblock with an impossible length", name);
	return n;
}

char *hdf5_join(const char *path, const char *name)
{
	return xformat("%s/%s", strcmp(path, "/") ? path : "", name);
}

int natural_compare(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			size_t m, n;
			int c;

			while (*a == '0' && isdigit((unsigned char)a[1]))
				a++;
			while (*b == '0' && isdigit((unsigned char)b[1]))
				b++;
			m = strspn(a, "0123456789");
			n = strspn(b, "0123456789");
			if (m != n)
				return m < n ? -1 : 1;
			c = strncmp(a, b, m);
			if (c)
				return c;
			a += m, b += n;
			continue;
		}
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		a++, b++;
	}
	return *a ? 1 : *b ? -1 : 0;
}

static int compare_names(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int c = natural_compare(x, y);

	return c ? c : strcmp(x, y);
}

struct listing { char **name, *soft; size_t n; };

static herr_t list_one(hid_t group, const char *name, const H5L_info_t *info, void *arg)
{
	struct listing *l = arg;

	(void)group;
	if (info->type != H5L_TYPE_HARD) {
		l->soft = xformat("%s", name);
		return 1;
	}
	if (!(l->n & (l->n + 1)) || !l->name) {
		l->name = realloc(l->name, (2 * l->n + 2) * sizeof *l->name);
		if (!l->name)
			die("out of memory");
	}
	l->name[l->n++] = xformat("%s", name);
	return 0;
}

char **hdf5_children(const struct image *image, const char *path, size_t *n)
{
	struct listing l = { 0 };
	hid_t group = hdf5_id(H5Gopen2(image->file, path, H5P_DEFAULT), image->name, path);

	if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, list_one, &l) < 0)
		die("%s: %s: cannot list this group; the file is damaged", image->name, path);
	if (l.soft)
		die("%s: %s: is a soft or external link; only hard links are read", image->name, hdf5_join(path, l.soft));
	H5Gclose(group);
	if (l.n)
		qsort(l.name, l.n, sizeof *l.name, compare_names);
	*n = l.n;
	return l.name;
}

void hdf5_free_names(char **name, size_t n)
{
	while (n)
		free(name[--n]);
	free(name);
}

H5O_info_t hdf5_info(const struct image *image, const char *path)
{
	H5O_info_t info;

	if (H5Oget_info_by_name(image->file, path, &info, H5P_DEFAULT) < 0)
		die("%s: %s: cannot be opened; the file is damaged", image->name, path);
	return info;
}
