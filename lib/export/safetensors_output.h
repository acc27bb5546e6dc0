/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * safetensors_output.h -- writer of safetensors files of a folder, one tensor after the other
 *
 *	struct safetensors_output *s = safetensors_create(&folder, "model", shard_bytes, room);
 *
 *	safetensors_add(s, "model.norm.weight",
 *		(struct safetensors_data){ "F32", 4, 1, { n }, x });
 *	...
 *	safetensors_finish(s);
 *
 * The result is one file, model.safetensors, or shards model-00001-of-00003.safetensors, ... with
 * model.safetensors.index.json. A shard has at most shard_bytes, or one larger tensor. With shard_bytes
 * SIZE_MAX there is always one file.
 *
 * A file begins with reserved room for its header; if it is full, the shard ends. An entry of the header
 * needs about 100 bytes and the name. Only headers are in memory, and tensors that would leave later data
 * unaligned.
 */
#ifndef EXPORT_SAFETENSORS_OUTPUT_H
#define EXPORT_SAFETENSORS_OUTPUT_H
#include <stddef.h>
#include "base/folder.h"
#include "io/tensor.h"

struct safetensors_output;
struct safetensors_data {
	const char *dtype;		/* "F32", "BF16", "I32", "F8_E4M3", ... */
	size_t element;			/* bytes of an element */
	int rank;
	size_t dim[TENSOR_RANK];
	const void *data;
	size_t bytes;			/* set by safetensors_add() */
};

/* A full disk is a fatal error in all functions. Names must be unique, which is not checked. */
enum { SAFETENSORS_ROOM = 1 << 26 };	/* max bytes of a header; readers accept 100 million */
struct safetensors_output *safetensors_create(struct folder *folder, const char *stem,
	size_t shard_bytes, size_t room);
void safetensors_add(struct safetensors_output *s, const char *name, struct safetensors_data t);
/* Writes headers and the index, renames the files to their names, and frees s. */
void safetensors_finish(struct safetensors_output *s);
#endif
