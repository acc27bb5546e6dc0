/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hdf5.c -- see hdf5.h */
#include "io/hdf5.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

static hid_t little[TENSOR_TYPES], big[TENSOR_TYPES];

/* A floating-point type of 16 bits. */
static hid_t half(size_t exponent, size_t mantissa, size_t bias)
{
	hid_t t = H5Tcopy(H5T_IEEE_F32LE);

	if (t < 0 || H5Tset_fields(t, 15, mantissa, exponent, 0, mantissa) < 0 || H5Tset_size(t, 2) < 0 ||
	    H5Tset_ebias(t, bias) < 0)
		die("this HDF5 library cannot describe 16-bit floating point");
	return t;
}

/* Called when the library calls exit(-1) because it has no memory for an identifier. */
static void on_library_exit(int status, void *arg)
{
	(void)arg;
	if (status < 0 || status > 2)
		die("the HDF5 library ended the program; memory is short");
}

void hdf5_init(void)
{
	if (little[TENSOR_F32])
		return;
	on_exit(on_library_exit, NULL);
	H5dont_atexit();	/* must be first; the clean-up at exit can crash, and is not needed */
	if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
		die("the HDF5 library cannot be started");
	memcpy(little, (const hid_t[TENSOR_TYPES]){
		[TENSOR_F32] = H5T_IEEE_F32LE, [TENSOR_F64] = H5T_IEEE_F64LE,
		[TENSOR_F16] = half(5, 10, 15), [TENSOR_BF16] = half(8, 7, 127),
		[TENSOR_U8] = H5T_STD_U8LE, [TENSOR_I8] = H5T_STD_I8LE,
		[TENSOR_U16] = H5T_STD_U16LE, [TENSOR_I16] = H5T_STD_I16LE,
		[TENSOR_U32] = H5T_STD_U32LE, [TENSOR_I32] = H5T_STD_I32LE,
		[TENSOR_U64] = H5T_STD_U64LE, [TENSOR_I64] = H5T_STD_I64LE }, sizeof little);
	for (int t = TENSOR_F32; t < TENSOR_TYPES; t++) {
		big[t] = H5Tcopy(little[t]);
		if (big[t] < 0 || H5Tset_order(big[t], H5T_ORDER_BE) < 0)
			die("this HDF5 library cannot describe big-endian numbers");
	}
}

static _Noreturn void refuse_object(const char *file, const char *path)
{
	die("%s: %s: the HDF5 library fails here; the file is damaged, or memory is short", file, path);
}

hid_t hdf5_id(hid_t id, const char *file, const char *path)
{
	if (id < 0)
		refuse_object(file, path);
	return id;
}

bool hdf5_true(htri_t value, const char *file, const char *path)
{
	if (value < 0)
		refuse_object(file, path);
	return value > 0;
}

bool hdf5_has(hid_t file, const char *path, const char *name)
{
	char *p = xformat("%s", path);
	bool there = true;

	for (char *s = p; there && s && strcmp(p, "/");) {
		s = strchr(s + 1, '/');
		if (s)
			*s = 0;
		there = hdf5_true(H5Lexists(file, p, H5P_DEFAULT), name, path);
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
		*exact = hdf5_true(H5Tequal(type, little[t]), file, path);
		if (*exact || hdf5_true(H5Tequal(type, big[t]), file, path))
			return (enum tensor_type)t;
	}
	*exact = false;
	return TENSOR_ANY;
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
	H5FD_file_image_callbacks_t cb =
		{ image_malloc, image_memcpy, image_realloc, image_free, user_copy, user_free, b };
	hid_t p = H5Pcreate(H5P_FILE_ACCESS);

	if (p < 0 || H5Pset_fapl_core(p, 2 << 20, 0) < 0 || H5Pset_file_image_callbacks(p, &cb) < 0)
		die("this HDF5 library cannot keep files in memory");
	return p;
}

hid_t hdf5_open(const char *name, const unsigned char *image, size_t length)
{
	struct buffer view = { .data = (unsigned char *)(uintptr_t)image, .capacity = SIZE_MAX };
	hid_t p = hdf5_memory_plist(&view), file;
	static unsigned opened;
	char *unique;

	if (H5Pset_file_image(p, view.data, length) < 0)
		die("%s: the HDF5 library refuses this image", name);
	/* The library identifies files by their names; no file can have this name. */
	unique = xformat("/dev/null/input %u", ++opened);
	file = H5Fopen(unique, H5F_ACC_RDONLY, p);
	H5Pclose(p);
	free(unique);
	return file;
}

bool hdf5_signature(const unsigned char *data, size_t n)
{
	return n >= 8 && !memcmp(data, "\211HDF\r\n\032\n", 8);
}

size_t hdf5_length(const char *name, const unsigned char h[HDF5_HEAD])
{
	int version = h[8];
	int width = version < 2 ? h[13] : h[9], base = version == 0 ? 24 : version == 1 ? 28 : 12;
	int end = version == 0 ? 40 : version == 1 ? 44 : 28;
	uint64_t n = 0, b = 0;

	if (!hdf5_signature(h, HDF5_HEAD))
		die("%s: is not an HDF5 file", name);
	if (version > 3 || width != 8)
		die("%s: has HDF5 superblock version %d with %d-byte addresses, expected 0 to 3 with 8",
			name, version, width);
	for (int i = 7; i >= 0; i--)
		n = n << 8 | h[end + i], b = b << 8 | h[base + i];
	if (b)
		die("%s: has an HDF5 user block; store it without one", name);
	if (n < HDF5_HEAD || n > PTRDIFF_MAX)
		die("%s: has an HDF5 superblock with an impossible length", name);
	return n;
}
