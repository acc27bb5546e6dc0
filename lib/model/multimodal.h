/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * multimodal.h -- the table of vision-language models: encoder, projector, language model
 *
 * In the tree the language model has the same paths as a separate model, so every tool for language models
 * works on it: /model, /lm_head and so on, by its own row (model/architecture.h). The encoder and the
 * projector have other groups.
 */
#ifndef MODEL_MULTIMODAL_H
#define MODEL_MULTIMODAL_H
#include <stdint.h>
#include "model/architecture.h"

/* A prefix of names in one form and in the other; a list ends with NULL. */
struct rename_row {
	const char *from, *to;
};

struct multimodal {
	const char *name, *model_type;	/* "LlavaForConditionalGeneration", "llava" */
	const char *text;		/* model_type of the language model if its config has none */
	const struct rename_row *renames;	/* checkpoint to tree: every row that matches, in order */
	const struct rename_row *written;	/* tree to checkpoint: the first row that matches */
	int32_t placeholder;		/* id of image tokens if config.json has none */
	const char *feature_key;	/* key of the layer whose output is used; NULL: the last */
	int feature_layer;		/* its value if absent; 0: a list of layers, unsupported */
	bool skips;			/* the encoder's first row is dropped */
	const char *strategy_key;	/* key: whether it is dropped; NULL: no such key */
	const char *projector_eps_key;	/* epsilon of the projector's norm; NULL: as in the encoder */
	bool any_size;			/* images have any size; squares of patches become one feature */
	const char *merge_key;		/* key of such squares in images of one size; NULL: none */
	const char *const *unused;	/* patterns of unused tensors; ends with NULL */
	const struct architecture *encoders;	/* found by model_type; ends with NULL */
	struct architecture projector;
};

/* Ends with a row without a name. */
extern const struct multimodal multimodals[];

/* Finds a row by model_type, or, if that is NULL, by the class that saved the model; NULL: none. */
const struct multimodal *multimodal_find(const char *model_type, const char *name);
#endif
