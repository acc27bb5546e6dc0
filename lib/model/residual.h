/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * residual.h -- residual streams: the layers that read them or add to them, and the norms between
 *
 * Transforms of weights use this description, which is derived from the row of the architecture
 * (model/architecture.h). Columns and rows of a layer are channels of some kind. A rotation of the channels
 * of one kind must be applied to every layer that has them; it leaves the model's function unchanged.
 *
 *	layer			columns		rows
 *	embeddings, positions	residual	of their own, looked up
 *	queries, keys		residual	of their own
 *	values			residual	value
 *	attention's output	value		residual
 *	gate, up, router	residual	of their own
 *	down			inner		residual
 *	head			residual	of their own
 *	patches of images	of their own	residual
 *	a projector's layers	residual of the encoder; inner	of their own; residual of the language model
 *	a projector's only layer	residual of the encoder	residual of the language model
 *
 * A model has one stream, or two: of the encoder and of the language model.
 *
 * Calling sequence: residual_of() for the layers and norms of a part, or the functions before it, one by
 * one, on a struct of zeros; residual_free().
 */
#ifndef MODEL_RESIDUAL_H
#define MODEL_RESIDUAL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"
#include "model/config.h"

enum channels { CHANNELS_OWN, CHANNELS_RESIDUAL, CHANNELS_VALUE, CHANNELS_INNER };

/* The position of a norm: before a residual branch; on a term that is added to the stream, embeddings
 * included; on the sum. */
enum norm_use { NORM_PRE, NORM_BRANCH, NORM_POST };

struct stream {
	size_t index;		/* index of its stack in the config */
	bool normed;		/* at least one norm reads it */
};

struct residual_norm {
	char *path;
	const struct stack *stack;
	struct stream stream;
	enum norm_use use;
};

enum { RESIDUAL_NONE = -1 };
struct residual_layer {
	char *path;
	const struct stack *stack;
	size_t out, in;
	enum channels columns, rows;
	struct stream reads, adds;	/* the stream of columns, and of rows that are channels of a stream */
	size_t first;		/* earlier rows are their own: queries and keys of a layer with values */
	bool table;		/* a table: its rows are added to the stream */
	bool vector;		/* one such row, stored as a dataset, not as a group with a weight */
	int64_t norm;		/* index of the norm through which it reads or adds, or RESIDUAL_NONE;
				 * of a projector's only layer: reads */
	enum role role;		/* role in a block; ROLES: outside the blocks */
	/*
	 * Index of a layer with outputs (from its row `first` on) to which the inputs are proportional,
	 * channel by channel, or RESIDUAL_NONE: values; the layer multiplied by a gate, or the input of a
	 * ReLU. residual_channel() has the output of an input.
	 */
	int64_t source;
	size_t shared, width;	/* `shared` groups of `width` inputs in sequence have the same outputs:
				 * query heads with one head of values. 1, in: each input has its own */
};

struct residual {
	size_t norms, layers;
	struct residual_norm *norm;
	struct residual_layer *layer;
};

/* Add layers and norms; *r is all zero at first. residual_images(): all before the blocks of the encoder.
 * residual_end(): final norm and head. */
void residual_embedding(struct residual *r, const struct config *c);
void residual_position(struct residual *r, const struct config *c);
void residual_images(struct residual *r, const struct config *c);
void residual_block(struct residual *r, const struct config *c, const struct stack *s, size_t block);
void residual_end(struct residual *r, const struct config *c);
/* The output of the source, counted from its row `first`, to which input j of the layer is proportional. */
size_t residual_channel(const struct residual_layer *l, size_t j);
/* The layers and norms that the part has. Fatal error on a block that the config does not have. */
struct residual residual_of(const struct part *part, const struct config *c);
void residual_free(struct residual *r);
#endif
