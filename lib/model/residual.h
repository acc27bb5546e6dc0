/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * residual.h -- residual streams: which layers read them, which add to them, and through which norms
 *
 * What transforms of weights go by, from the row of the architecture (model/architecture.h). Columns and rows
 * of a layer are channels of some kind; what turns the channels of one kind turns every layer that has
 * them, and leaves the model's function as it is:
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
 *
 * A model has one stream, or two, of an encoder and of the language model.
 */
#ifndef MODEL_RESIDUAL_H
#define MODEL_RESIDUAL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"
#include "model/config.h"

enum channels { CHANNELS_OWN, CHANNELS_RESIDUAL, CHANNELS_VALUE, CHANNELS_INNER };

/* Where a norm stands: before a branch; on what is added to the stream, embeddings too; on the sum. */
enum norm_use { NORM_PRE, NORM_BRANCH, NORM_POST };

struct stream {
	size_t index;		/* of its stack in the config */
	bool normed;		/* norms read it */
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
	struct stream reads, adds;	/* of columns, of rows that are channels of a stream */
	size_t first;		/* rows before it are their own: queries and keys in one layer with values */
	bool table;		/* its rows are added to the stream */
	bool vector;		/* such a row alone: a data set, not a group with a weight */
	int64_t norm;		/* index of that through which it reads or adds; RESIDUAL_NONE */
	enum role role;		/* of a block's layer; ROLES: it is none */
	/* Index of the layer whose outputs, from its row `first` on, the inputs are proportional to, channel
	 * by channel: values, where each head has its own; what a gate multiplies, or a ReLU lets through. */
	int64_t source;
};

struct residual {
	size_t norms, layers;
	struct residual_norm *norm;
	struct residual_layer *layer;
};

/* Adds what stands where; *r all zero at first. residual_images(): all before the blocks of the encoder;
 * residual_end(): final norm and head. */
void residual_embedding(struct residual *r, const struct config *c);
void residual_position(struct residual *r, const struct config *c);
void residual_images(struct residual *r, const struct config *c);
void residual_block(struct residual *r, const struct config *c, const struct stack *s, size_t block);
void residual_end(struct residual *r, const struct config *c);
/* What the part has of all this; dies on a block that the config does not have. */
struct residual residual_of(const struct part *part, const struct config *c);
void residual_free(struct residual *r);
#endif
