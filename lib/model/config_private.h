/* SPDX-License-Identifier: GPL-3.0-or-later */
/* config_private.h -- parts of the reader of config.json: classes, a stack, the encoder of images */
#ifndef MODEL_CONFIG_PRIVATE_H
#define MODEL_CONFIG_PRIVATE_H
#include <jansson.h>
#include "model/config.h"
#include "model/key.h"

/* Adds to a list of names for a message. */
enum { CONFIG_NAMES = 512 };
void config_list_name(char list[CONFIG_NAMES], const char *name);

/* The classes that config.json names, by their rows; NULL: none of the tables has it. */
struct config_classes {
	const struct multimodal *multimodal;	/* NULL: a language model alone */
	const struct architecture *arch, *encoder;
	const json_t *text;			/* what is said of the language model */
	const json_t *vision;			/* of the encoder; NULL: nothing */
};
struct config_classes config_classes(const json_t *json);
/* Dies: the language model is of a class that is not known. */
_Noreturn void config_unknown(const char *file, const struct config_classes *of);

/* A stack of a language model, or of an encoder; its activation, as the key says. */
void config_stack(struct config *c, struct stack *s, const struct keys *k);
void config_activation(struct stack *s, const struct keys *k, const char *key);
/* The encoder of images and its projector, the first stacks. k: the whole; last: the language model. */
void config_vision(struct config *c, const struct config_classes *of, const struct keys *k,
	const struct stack *last);
#endif
