/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * safetensors.h -- read-only view of the tensors of a Hugging Face folder
 *
 * A folder holds `model.safetensors`, or shards named by the `weight_map` of `model.safetensors.index.json`
 * (the single file wins, as in transformers). A file is a little-endian 64-bit header length, a JSON header
 *
 *	{"name": {"dtype": "F32", "shape": [m, n], "data_offsets": [begin, end]}, ...}
 *
 * and the data, offsets counted from the header's end, without holes or overlap. Files are mapped;
 * everything in the header is checked when the folder is opened, so that a view never leaves the map.
 *
 * Source: https://github.com/huggingface/safetensors, README "Format".
 */
#ifndef IMPORT_SAFETENSORS_H
#define IMPORT_SAFETENSORS_H
#include <stdbool.h>
#include <stddef.h>
#include "io/tensor.h"

struct safetensors;

/* All functions die with "FILE: TENSOR: what is wrong" on bad data. */
struct safetensors *safetensors_open(const char *folder);
void safetensors_close(struct safetensors *s);

/* Names of all tensors of the folder, once each, in ascending order of bytes. */
size_t safetensors_count(const struct safetensors *s);
const char *safetensors_at(const struct safetensors *s, size_t i);

/* The file that the tensor is in, or NULL. */
const char *safetensors_file(const struct safetensors *s, const char *name);

/* Type and extents without the data (NULL); type TENSOR_ANY where safetensors_tensor() would refuse it for
 * its type or rank. Dies if there is no such tensor. */
struct tensor safetensors_describe(const struct safetensors *s, const char *name);

/*
 * The tensor of that name: F32, F16 or BF16 (others are refused by name), rank at most TENSOR_RANK. A view
 * of the map, or a copy where the file is not aligned to the elements; valid until safetensors_release() or
 * _close(). Dies if there is no such tensor.
 */
struct tensor safetensors_tensor(struct safetensors *s, const char *name);

/* The same of any type; rank at most TENSOR_RANK. */
struct safetensors_raw {
	const char *dtype;		/* "I32", "F8_E4M3", ...: as the file names it */
	int rank;
	size_t dim[TENSOR_RANK];
	size_t bytes;
	const void *data;
};
struct safetensors_raw safetensors_raw(struct safetensors *s, const char *name);

/* Ends all views: frees the copies, and the pages that were read. */
void safetensors_release(struct safetensors *s);
/* The same if there are copies, which take memory; else views stay. */
void safetensors_free_copies(struct safetensors *s);
#endif
