/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config_private.h -- shared functions of the reader of config.json: classes, a stack, the encoder of
 * images
 */
#ifndef MODEL_CONFIG_PRIVATE_H
#define MODEL_CONFIG_PRIVATE_H
#include <jansson.h>
#include "model/config.h"
#include "model/key.h"

/* Appends a name to a list for a message. */
enum { CONFIG_NAMES = 1024 };
void config_list_name(char list[CONFIG_NAMES], const char *name);

/* The rows of the classes that config.json names; NULL: not in the tables. */
struct config_classes {
	const struct multimodal *multimodal;	/* NULL: only a language model */
	const struct architecture *arch, *encoder;
	const json_t *text;			/* the object with the keys of the language model */
	const json_t *vision;			/* the object of the encoder; NULL: absent */
};
struct config_classes config_classes(const json_t *json);
/* Fatal error: the class of the language model is unknown. */
_Noreturn void config_unknown(const char *file, const struct config_classes *of);

/* Parses a stack of a language model or of an encoder, and its activation, by its key. */
void config_stack(struct config *c, struct stack *s, const struct keys *k);
void config_activation(struct stack *s, const struct keys *k, const char *key);
/* Parses the layers of a stack that have a bias. */
void config_biases(struct stack *s, const struct keys *k);
/* Adds the first stacks: the encoder of images and its projector. k: the whole file. last: the language
 * model. */
void config_vision(struct config *c, const struct config_classes *of, const struct keys *k,
	const struct stack *last);
#endif
