/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.h -- the configuration of a model: its config.json, read by the row of its architecture
 *
 * config_parse() and config_read() end with a fatal error on keys or values that would change the model and
 * are not supported. Nothing changes a configuration after it was read; the settings of a run of the model
 * are in forward/execution.h.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/part.h"
#include "model/multimodal.h"
#include "model/stack.h"

enum { EOS = 8 };		/* most ids that end a text */
enum { CHANNELS = 3 };		/* channels of a pixel */

/* How images become rows of an encoder (vision/vision.h); class NULL: the model has no encoder. */
struct vision {
	const struct multimodal *class;
	size_t patch, frames;		/* of a patch: pixels per side, copies of the image */
	size_t merge;			/* patches per side of a square that becomes one feature */
	size_t window;			/* such squares per side of an attention window; 0: no window */
	size_t side;			/* pixels per side of an image; 0: any size */
	size_t rows;			/* encoder rows per image, with class token; 0: by its size */
	size_t skipped;			/* first rows that the projector does not read */
	int32_t placeholder;		/* id of an image in a text, then of each of its tokens */
};

/* A model is a list of stacks: blocks of one kind, followed by the final norm of the row. The last stack is
 * the language model; the encoder of images and its projector, if any, are before it. */
enum { STACKS = 3 };

struct config {
	const struct architecture *arch;	/* of the language model: paths, keys */
	struct vision vision;
	size_t stacks;
	struct stack stack[STACKS];
	size_t blocks, vocab, positions;	/* blocks: sum over all stacks */
	bool tied;
	double embedding_scale;		/* factor of the embeddings of tokens; 1: none */
	double logit_cap;		/* cap of logits, see stack.attention_cap */
	long bos, eos[EOS];		/* bos -1: none */
	size_t eos_count;
};

/* Parses the text of config.json. name: the file's name, for messages. */
struct config config_parse(const char *name, const char *text);
/* Parses the /config of a part; fatal error if it is absent. */
struct config config_read(const struct part *part);
void config_free(const struct config *c);
/* config_read() into allocated memory; config_close() it. */
const struct config *config_open(const struct part *part);
void config_close(const struct config *c);

/* The layout of a model's file (part_layout, io/part.h); NULL if `config` is NULL or not of a known class.
 * The caller frees the list. */
const char **model_layout(const char *config);
const char **config_layout(const struct config *c);

/* Numbers of a patch, CHANNELS x frames x patch x patch. */
size_t vision_numbers(const struct vision *v);
/* The name of the class of the whole model. */
const char *config_class(const struct config *c);

/* The group after the blocks of every model: the final norm, or the head if the model has no final norm. */
const char *config_end(const struct config *c);
/* The stack of the language model, which the head follows. */
const struct stack *config_last(const struct config *c);
/* The encoder of images and its projector; NULL if the model has none. */
const struct stack *config_encoder(const struct config *c);
const struct stack *config_projector(const struct config *c);
#endif
