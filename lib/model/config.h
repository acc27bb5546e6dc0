/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.h -- what a model is: its config.json, read by the row of its architecture
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"
#include "model/multimodal.h"
#include "model/stack.h"

enum { EOS = 8 };		/* ids that may end a text, at most */
enum { CHANNELS = 3 };		/* of a pixel */

/* How images become rows of an encoder (vision/vision.h); class NULL: there is none. */
struct vision {
	const struct multimodal *class;
	size_t patch, frames;		/* of a patch: pixels of a side, images (of the same) */
	size_t merge;			/* patches of a feature, of a side; in the order of such squares */
	size_t side;			/* of an image, pixels; 0: it may have any size */
	size_t rows;			/* of the encoder for an image, its class token too; 0: by its size */
	size_t skipped;			/* rows of it, the first ones, that the projector does not see */
	int32_t placeholder;		/* the id of an image in a text, then of each of its tokens */
};

/* A model is a list of them: blocks of one kind, and the final norm of its row behind them. The last is the
 * language model; before it, where there are images, stand their encoder and its projector. */
enum { STACKS = 3 };

struct config {
	const struct architecture *arch;	/* of the language model: its tree, its keys */
	struct vision vision;
	size_t stacks;
	struct stack stack[STACKS];
	size_t blocks, vocab, positions;	/* blocks: of all stacks */
	bool tied;
	double embedding_scale;		/* of tokens' embeddings; 1: none */
	double logit_cap;		/* as attention_cap, of logits */
	long bos, eos[EOS];		/* bos: -1 if there is none */
	size_t eos_count;
};

/* From the text of config.json; dies, naming `name` and /config, on what it does not know. */
struct config config_parse(const char *name, const char *text);
/* From a part that carries /config, dies if it does not. Nobody changes it after that: how the model is run
 * is in forward/execution.h. */
struct config config_read(const struct part *part);
void config_free(const struct config *c);
/* The same in memory of its own. */
const struct config *config_open(const struct part *part);
void config_close(const struct config *c);

/* How a model's file is cut into parts (a part_layout): NULL if there is no config. free() the list. */
const char **model_layout(const char *config);
const char **config_layout(const struct config *c);

/* Numbers of a patch of an image. */
size_t vision_numbers(const struct vision *v);
/* The class of the whole model. */
const char *config_class(const struct config *c);

/* What stands behind the blocks in every model: group of the final norm, or of the head if there is none. */
const char *config_end(const struct config *c);
/* The stack of the language model, which the head stands behind. */
const struct stack *config_last(const struct config *c);
/* The encoder of images and its projector; NULL: there is none. */
const struct stack *config_encoder(const struct config *c);
const struct stack *config_projector(const struct config *c);
#endif
