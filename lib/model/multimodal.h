/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * multimodal.h -- the table of models that see images: an encoder, a projector, a language model
 *
 * In the tree the language model stands where it stands alone, so that what is made for it works on it: below
 * /model, /lm_head and so on, by its own row (model/architecture.h). The encoder and the projector have
 * groups of their own beside it.
 */
#ifndef MODEL_MULTIMODAL_H
#define MODEL_MULTIMODAL_H
#include <stdint.h>
#include "model/architecture.h"

/* Names of tensors that begin so begin otherwise in the tree, or the other way round; ends with NULL. */
struct rename_row {
	const char *from, *to;
};

struct multimodal {
	const char *name, *model_type;	/* "LlavaForConditionalGeneration", "llava" */
	const char *text;		/* model_type of the language model where its config names none */
	const struct rename_row *renames;	/* of a checkpoint's names: each that fits, in their order */
	const struct rename_row *written;	/* of names in the tree: the first that fits */
	int32_t placeholder;		/* the id of an image's tokens, where config.json names none */
	int feature_layer;		/* vision_feature_layer where it is absent; 0: several */
	const char *strategy_key;	/* says whether the encoder's first row is dropped; NULL: it is */
	const char *projector_eps_key;	/* of the projector's norm; NULL: it has the encoder's epsilon */
	bool merges;			/* images of any size, of whose patches squares become one feature */
	const char *const *unused;	/* patterns of tensors that nothing reads; ends with NULL */
	const struct architecture *encoders;	/* by their model_type; ends with NULL */
	struct architecture projector;
};

/* Ends with a row without a name. */
extern const struct multimodal multimodals[];

/* By model_type; where that is NULL by the class that saved the model. NULL: none. */
const struct multimodal *multimodal_find(const char *model_type, const char *name);
#endif
