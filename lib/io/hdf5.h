/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hdf5.h -- the HDF5 library: start, types, checks of return values, files in memory
 *
 * hdf5_init() comes first. hdf5_id(), hdf5_true() and hdf5_has() check the result of a call of the library.
 * If the call failed, they end with a fatal error that names file and path.
 */
#ifndef IO_HDF5_H
#define IO_HDF5_H
#define H5_USE_110_API
#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include "io/buffer.h"
#include "io/tensor.h"

void hdf5_init(void);				/* starts the library and silences its messages */
hid_t hdf5_type(enum tensor_type type);		/* little-endian file type; never closed */
/* The tensor type of an HDF5 type of either byte order; TENSOR_ANY if no tensor type fits. *exact: it is
 * little-endian. */
enum tensor_type hdf5_type_of(hid_t type, bool *exact, const char *file, const char *path);

hid_t hdf5_id(hid_t id, const char *file, const char *path);		/* returns id */
bool hdf5_true(htri_t value, const char *file, const char *path);
/* Whether a link of this path and a link of each group above it exist. name: the file, for messages. */
bool hdf5_has(hid_t file, const char *path, const char *name);

enum { HDF5_HEAD = 56 };	/* enough bytes for any superblock */
/* Whether n bytes start with the signature of HDF5. */
bool hdf5_signature(const unsigned char *data, size_t n);
/* The number of bytes of the HDF5 file that starts with this superblock. Fatal error if the superblock is
 * not valid, has addresses of other than 8 bytes, or follows a user block. */
size_t hdf5_length(const char *name, const unsigned char head[HDF5_HEAD]);
/* Opens an HDF5 file in memory for reading; negative if the library refuses it. */
hid_t hdf5_open(const char *name, const unsigned char *image, size_t length);
hid_t hdf5_memory_plist(struct buffer *b);	/* file access list that stores the file in *b */
#endif
