/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config_class.c -- the classes that config.json names, and the parts of a model of them; see
 * config_private.h
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "model/config_private.h"

void config_list_name(char list[CONFIG_NAMES], const char *name)
{
	size_t n = strlen(list);

	snprintf(list + n, CONFIG_NAMES - n, "%s%s", n ? ", " : "", name);
}

static const char *model_type(const json_t *json)
{
	return json_string_value(json_object_get(json, "model_type"));
}

static const char *class_name(const json_t *json)
{
	return json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
}

static const struct architecture *find_architecture(const json_t *text, const struct multimodal *m)
{
	const char *type = model_type(text);

	if (m)
		return architecture_find(type && strcmp(type, m->model_type) ? type : m->text, NULL);
	return architecture_find(type, class_name(text));
}

/* The row of an encoder, or NULL. Older files of classes with one encoder have the name of the whole class
 * here; SmolVLM's have that of Idefics3. */
static const struct architecture *find_encoder(const struct multimodal *m, const json_t *own)
{
	const char *type = model_type(own);
	const struct architecture *a = m->encoders;

	if (!a[1].name && (!type || multimodal_find(type, NULL)))
		return a;
	while (a->name && (!type || strcmp(type, a->model_type)))
		a++;
	return a->name ? a : NULL;
}

struct config_classes config_classes(const json_t *json)
{
	struct config_classes y = { .multimodal = multimodal_find(model_type(json), class_name(json)),
		.text = json };
	const json_t *text = json_object_get(json, "text_config");
	const json_t *vision = json_object_get(json, "vision_config");

	if (y.multimodal && json_is_object(text))
		y.text = text;
	if (y.multimodal && json_is_object(vision)) {
		y.vision = vision;
		y.encoder = find_encoder(y.multimodal, vision);
	}
	y.arch = find_architecture(y.text, y.multimodal);
	return y;
}

_Noreturn void config_unknown(const char *file, const struct config_classes *of)
{
	const char *type = model_type(of->text), *name = class_name(of->text);
	char known[CONFIG_NAMES] = "";

	for (const struct architecture *a = architectures; a->name; a++)
		config_list_name(known, type ? a->model_type : a->name);
	for (const struct multimodal *m = multimodals; m->name; m++)
		config_list_name(known, type ? m->model_type : m->name);
	if (!type && !name)
		die("%s: /config: names neither model_type nor architectures, expected one of %s", file,
			known);
	die("%s: /config: unknown %s '%s', expected one of %s", file, type ? "model_type" : "architecture",
		type ? type : name, known);
}

/* Appends patterns to a list of n. */
static const char **add_patterns(const char **list, size_t *n, const char *const *pattern)
{
	for (; *pattern; pattern++) {
		list = xgrow(list, *n + 2, sizeof *list);
		list[(*n)++] = *pattern;
		list[*n] = NULL;
	}
	return list;
}

/* Joins the patterns of the encoder, the projector, and the language model, which matches the rest. m NULL:
 * only a language model. */
static const char **join_layouts(const struct multimodal *m, const struct architecture *encoder,
	const struct architecture *text)
{
	const char **list = NULL;
	size_t n = 0;

	if (m) {
		list = add_patterns(list, &n, encoder->layout);
		list = add_patterns(list, &n, m->projector.layout);
	}
	return add_patterns(list, &n, text->layout);
}

const char **config_layout(const struct config *c)
{
	const struct stack *encoder = config_encoder(c);

	return join_layouts(c->vision.class, encoder ? encoder->arch : NULL, c->arch);
}

const char **model_layout(const char *config)
{
	json_t *json = config ? json_loads(config, 0, NULL) : NULL;
	const struct config_classes of = json ? config_classes(json) : (struct config_classes){ 0 };

	if (config && !json && json_loads(config, 0, NULL))	/* it parses now, so memory was short */
		die("/config: out of memory");
	json_decref(json);
	if (!of.arch || (of.multimodal && !of.encoder))
		return NULL;
	return join_layouts(of.multimodal, of.encoder, of.arch);
}
