/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * safetensors_output.h -- tensors as safetensors files of a folder, one after the other
 *
 *	struct safetensors_output *s = safetensors_create(&folder, "model", shard_bytes, room);
 *
 *	safetensors_add(s, "model.norm.weight",
 *		(struct safetensors_data){ "F32", 4, 1, { n }, x });
 *	...
 *	safetensors_finish(s);
 *
 * One file, model.safetensors, or shards of shard_bytes at most (but for one large tensor),
 * model-00001-of-00003.safetensors and so on, with model.safetensors.index.json; with shard_bytes SIZE_MAX
 * always one file. Nothing is held in memory but headers and what would leave later data unaligned: a file
 * begins with room for its header, and a shard also ends where the room is full. An entry of the header is
 * some 100 bytes and the name.
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

/* All functions die where the disk is full; names are not checked for being new. */
enum { SAFETENSORS_ROOM = 1 << 26 };	/* bytes of a header, at most: readers take 100 million */
struct safetensors_output *safetensors_create(struct folder *folder, const char *stem,
	size_t shard_bytes, size_t room);
void safetensors_add(struct safetensors_output *s, const char *name, struct safetensors_data t);
/* Writes headers and the index, gives the files their names, and frees s. */
void safetensors_finish(struct safetensors_output *s);
#endif
