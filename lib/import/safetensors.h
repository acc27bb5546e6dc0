/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * safetensors.h -- read-only view of the tensors of a Hugging Face folder
 *
 * A folder has `model.safetensors`, or shards that the `weight_map` of `model.safetensors.index.json` names.
 * If both exist, the single file is read, as in transformers. A file is a little-endian 64-bit header length,
 * a JSON header
 *
 *	{"name": {"dtype": "F32", "shape": [m, n], "data_offsets": [begin, end]}, ...}
 *
 * and the data, without holes or overlap. Offsets count from the end of the header. Files are mapped. Headers
 * are checked in safetensors_open(), so a view never leaves the map.
 *
 *	struct safetensors *s = safetensors_open("folder");
 *	struct tensor t = safetensors_tensor(s, "model.norm.weight");
 *
 *	safetensors_release(s);		t is no longer valid
 *	safetensors_close(s);
 *
 * Source: https://github.com/huggingface/safetensors, README "Format".
 */
#ifndef IMPORT_SAFETENSORS_H
#define IMPORT_SAFETENSORS_H
#include <stdbool.h>
#include <stddef.h>
#include "io/tensor.h"

struct safetensors;

/* Bad data is a fatal error in all functions, with the message "FILE: TENSOR: what is wrong". */
struct safetensors *safetensors_open(const char *folder);
void safetensors_close(struct safetensors *s);

/* Names of all tensors of the folder, each once, in ascending order of bytes. */
size_t safetensors_count(const struct safetensors *s);
const char *safetensors_at(const struct safetensors *s, size_t i);

/* The file with the tensor, or NULL. */
const char *safetensors_file(const struct safetensors *s, const char *name);

/* Type and extents without the data (NULL). The type is TENSOR_ANY if safetensors_tensor() would refuse the
 * type or rank. A name without a tensor is a fatal error. */
struct tensor safetensors_describe(const struct safetensors *s, const char *name);

/*
 * The tensor of that name, of type F32, F16 or BF16 and rank at most TENSOR_RANK. It is a view of the map,
 * or a copy if the file is not aligned to the elements. It is valid until safetensors_release() or _close().
 * Other types and ranks, and a name without a tensor, are fatal errors.
 */
struct tensor safetensors_tensor(struct safetensors *s, const char *name);

/* As safetensors_tensor(), but of any type; rank at most TENSOR_RANK. */
struct safetensors_raw {
	const char *dtype;		/* "I32", "F8_E4M3", ...: its name in the file */
	int rank;
	size_t dim[TENSOR_RANK];
	size_t bytes;
	const void *data;
};
struct safetensors_raw safetensors_raw(struct safetensors *s, const char *name);

/* Invalidates all views: frees the copies and the pages that were read. */
void safetensors_release(struct safetensors *s);
/* Calls safetensors_release() if there are copies; else views stay valid. */
void safetensors_free_copies(struct safetensors *s);
#endif
