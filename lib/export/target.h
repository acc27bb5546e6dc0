/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * target.h -- what a model can be exported to
 *
 * A target is a row of the table in target.c. It gets what a checkpoint of the model's class holds, under the
 * names and in the shapes that the class in transformers gives them, part by part (export/export.h), and
 * writes the files of its kind.
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
	enum half_type dtype;		/* of weights that are written plainly */
	bool weights_only;		/* rounding of inputs, keys and values is left out */
	bool allow_rounding;		/* scales that the target cannot hold are rounded, and reported */
	bool skip_compute;		/* rounding of weights to a compute format, the same */
	enum export_blocks blocks;	/* what becomes of codes in GGUF */
	bool unify_scales;		/* a scale for each channel in the place of one for a tensor */
	const char *adapter;		/* the folder of an adapter of low-rank branches; NULL: none */
	struct report *report;		/* a row for each weight that rounding changed */
	size_t shard_bytes;		/* approximate size of a safetensors file */
};

/* A tensor of the checkpoint that is the weight of a linear layer, or of several of one input. */
struct export_weight {
	const char *name;		/* "model.layers.0.self_attn.q_proj" */
	size_t rows, columns;		/* of [out, in], all layers */
	int rank;
	size_t dim[TENSOR_RANK];	/* of the checkpoint's tensor, as many numbers */
	bool transposed;		/* it is [in, out] */
	bool table;			/* it is looked up, not multiplied */
	size_t n;
	const struct layer *layer;	/* [n] */
	const struct row_place *place;	/* [n] of the rows of each */
};

struct export {
	const struct target *target;
	struct export_options options;
	const char *from, *to;		/* names of files for messages */
	const struct config *config;
	char *text[TEXTS];		/* files of text; NULL: the model has none */
	bool tied;			/* the head is the embedding: there is no tensor of it */
	void *data;			/* of the target alone */
	struct folder_target *folder;	/* what folder_begin() made (export/folder_target.h) */
	struct adapter *adapter;	/* where low-rank branches go; NULL: to the weights */
	size_t members;			/* tensors that the class has */
	json_t *seen;			/* paths of those that came */
};

struct target {
	const char *name, *what;	/* of --to, and what --help says of it */
	const char *idle;		/* options of model-export that it does not use; blanks between */
	void (*begin)(struct export *e);	/* config and text are there */
	void (*weight)(struct export *e, const struct export_weight *w);
	void (*tensor)(struct export *e, const char *name, const struct tensor *t);	/* f32, f16 or bf16 */
	void (*end)(struct export *e);		/* gives the result its name */
};

extern const char *const export_blocks_names[];	/* by enum export_blocks */
const struct target *target_at(size_t i);	/* NULL: there are no more */
const char *const *target_names(void);		/* of all targets, NULL-terminated */
const char *const *target_meanings(void);	/* what they are, for --help, NULL-terminated */

/* Bytes of a safetensors header of all tensors, about: layers have up to five. */
size_t export_header_room(const struct export *e);
/* All layers of the weight, in float, by rows [out, in]; free() it. */
float *export_dense(const struct export_weight *w);
/* Which of the layers has a row of the tensor; *of_layer: which row of it. */
size_t export_row(const struct export_weight *w, size_t row, size_t *of_layer);
#endif
