/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * hdf5.h -- the HDF5 library as io calls it: its start, its types, its answers, files in memory
 *
 * Where a call of the library fails, hdf5_id(), hdf5_yes() and hdf5_has() die, naming file and path.
 */
#ifndef IO_HDF5_H
#define IO_HDF5_H
#define H5_USE_110_API
#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include "io/buffer.h"
#include "io/tensor.h"

void hdf5_init(void);				/* starts the library, without messages of its own */
hid_t hdf5_type(enum tensor_type type);		/* little-endian file type, kept open */
/* Which tensor type an HDF5 type of either byte order is; TENSOR_ANY: none. exact: it is little-endian. */
enum tensor_type hdf5_type_of(hid_t type, bool *exact, const char *file, const char *path);

hid_t hdf5_id(hid_t id, const char *file, const char *path);		/* returns id */
bool hdf5_yes(htri_t answer, const char *file, const char *path);
/* Whether there is a link of this path, and one of each group on the way. name: of the file. */
bool hdf5_has(hid_t file, const char *path, const char *name);

enum { HDF5_HEAD = 56 };	/* bytes that hold any superblock */
/* Whether n bytes begin with the signature of HDF5. */
bool hdf5_signature(const unsigned char *data, size_t n);
/* Bytes of the part that begins with this superblock; dies if it cannot be read. */
size_t hdf5_length(const char *name, const unsigned char head[HDF5_HEAD]);
/* Opens a part in memory for reading; negative if the library cannot. */
hid_t hdf5_open(const char *name, const unsigned char *image, size_t length);
hid_t hdf5_memory_plist(struct buffer *b);	/* access list of a file that is kept in *b */
#endif
