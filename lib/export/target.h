/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * target.h -- file formats for export
 *
 * A target is a row of the table in target.c. It receives the tensors of a checkpoint of the model's class,
 * with the names and shapes of the class in transformers, part by part (export/export.h). It writes the files
 * of its format.
 *
 *	target->begin(e);
 *	target->weight(e, &w), target->tensor(e, name, &t);	for each tensor
 *	target->end(e);
 *
 * Errors are fatal.
 */
#ifndef EXPORT_TARGET_H
#define EXPORT_TARGET_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/report.h"
#include "import/texts.h"
#include "io/tensor.h"
#include "model/config.h"
#include "model/layer.h"
#include "num/half.h"

enum export_blocks { BLOCKS_AUTO, BLOCKS_Q8_0, BLOCKS_NONE };
struct export_options {
	enum half_type dtype;		/* of plain weights */
	bool weights_only;		/* leave out the rounding of inputs, keys and values */
	bool allow_rounding;		/* round and report scales that the target cannot represent */
	bool skip_compute;		/* leave out and report the rounding of weights to a compute format */
	enum export_blocks blocks;	/* the type of codes in GGUF */
	bool unify_scales;		/* write one scale per channel instead of one per tensor */
	const char *adapter;		/* the folder of an adapter for low-rank branches; NULL: none */
	struct report *report;		/* receives a row for each weight that rounding changed */
	size_t shard_bytes;		/* approximate size of a safetensors file */
};

/* A tensor of the checkpoint: the weight of one linear layer, or of several layers with one input. */
struct export_weight {
	const char *name;		/* "model.layers.0.self_attn.q_proj" */
	size_t rows, columns;		/* [out, in] of all layers together */
	int rank;
	size_t dim[TENSOR_RANK];	/* extents in the checkpoint, with as many elements */
	bool transposed;		/* the checkpoint has [in, out] */
	bool table;			/* an embedding: looked up, not multiplied */
	size_t n;
	const struct layer *layer;	/* [n] */
	const struct row_slice *slice;	/* [n], the rows of each layer */
};

struct export {
	const struct target *target;
	struct export_options options;
	const char *from, *to;		/* names of files for messages */
	const struct config *config;
	char *text[TEXTS];		/* files of text; NULL: absent */
	bool tied;			/* the head is the embedding and has no tensor */
	void *data;			/* private data of the target */
	struct folder_target *folder;	/* from folder_begin() (export/folder_target.h) */
	struct adapter *adapter;	/* receives low-rank branches; NULL: they are added to the weights */
	size_t members;			/* number of tensors of the class */
	json_t *seen;			/* paths of the tensors that were read */
};

struct target {
	const char *name, *what;	/* value of --to, its text in --help */
	const char *unused_options;	/* options of model-export without effect, separated by blanks */
	void (*begin)(struct export *e);	/* config and text are set */
	void (*weight)(struct export *e, const struct export_weight *w);
	void (*tensor)(struct export *e, const char *name, const struct tensor *t);	/* f32, f16 or bf16 */
	void (*end)(struct export *e);		/* renames the result to its name */
};

extern const char *const export_blocks_names[];	/* by enum export_blocks */
const struct target *target_at(size_t i);	/* NULL: there are no more */
const char *const *target_names(void);		/* of all targets, NULL-terminated */
const char *const *target_meanings(void);	/* descriptions for --help, NULL-terminated */

/* Approximate bytes of a safetensors header of all tensors. A layer has up to five tensors. */
size_t export_header_room(const struct export *e);
/* The effective weight of all layers, in float, [out, in]; free() it. */
float *export_dense(const struct export_weight *w);
/* The number of the layer with a row of the tensor; *of_layer: the number of the row in it. */
size_t export_row(const struct export_weight *w, size_t row, size_t *of_layer);
#endif
