/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vision_tokens.c -- see vision_tokens.h */
#include "model/vision_tokens.h"
#include <jansson.h>
#include <string.h>
#include "base/error.h"

enum { SIDE_MOST = 1 << 16 };

/* Towers of LLaVA, by the model_type of vision_config, with what their class takes where a key is not
 * there. */
static const struct tower {
	const char *name;
	size_t patch, side;
	bool class_row;
} towers[] = {
	{ "clip_vision_model", 32, 224, true },
	{ "siglip_vision_model", 16, 224, false },
};

static size_t get_size(const char *name, const json_t *json, const char *key, size_t otherwise, size_t most)
{
	const json_t *v = json_object_get(json, key);

	if (!v || json_is_null(v))
		return otherwise;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || (size_t)json_integer_value(v) > most)
		die("%s: /config: '%s' must be a whole number from 1 to %zu", name, key, most);
	return (size_t)json_integer_value(v);
}

static void read_llava(const char *name, const json_t *root, const json_t *vision, struct vision_tokens *y)
{
	const char *type = json_string_value(json_object_get(vision, "model_type"));
	const char *strategy = json_string_value(json_object_get(root, "vision_feature_select_strategy"));
	const struct tower *tower = NULL;

	for (size_t i = 0; i < sizeof towers / sizeof *towers; i++)
		if (!strcmp(type ? type : towers[0].name, towers[i].name))
			tower = &towers[i];
	if (!tower)
		die("%s: /config: vision_config: model_type '%s' is not known, expected clip_vision_model or "
			"siglip_vision_model", name, type);
	if (strategy && strcmp(strategy, "default") && strcmp(strategy, "full"))
		die("%s: /config: vision_feature_select_strategy '%s' is not known, expected default or "
			"full", name, strategy);
	y->patch = get_size(name, vision, "patch_size", vision ? tower->patch : 14, SIDE_MOST);
	y->side = get_size(name, vision, "image_size", vision ? tower->side : 336, SIDE_MOST);
	y->class_row = tower->class_row;
	y->drops_first = !strategy || !strcmp(strategy, "default");
	y->merge = 1;
}

static void read_qwen2_vl(const char *name, const json_t *root, const json_t *vision, struct vision_tokens *y)
{
	(void)root;
	y->patch = get_size(name, vision, "patch_size", 14, SIDE_MOST);
	y->merge = get_size(name, vision, "spatial_merge_size", 2, SIDE_MOST);
}

static const struct vision_model {
	const char *name;		/* model_type */
	size_t placeholder;		/* where the config names none */
	void (*read)(const char *name, const json_t *root, const json_t *vision, struct vision_tokens *y);
} models[] = {
	{ "llava", 32000, read_llava },
	{ "qwen2_vl", 151655, read_qwen2_vl },
};

static struct vision_tokens read_model(const char *name, const json_t *root)
{
	const json_t *type = json_object_get(root, "model_type"), *text;
	struct vision_tokens y = { 0 };

	text = json_object_get(root, "text_config");
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		size_t id = models[i].placeholder;

		if (!json_is_string(type) || strcmp(json_string_value(type), models[i].name))
			continue;
		models[i].read(name, root, json_object_get(root, "vision_config"), &y);
		id = get_size(name, root, "image_token_index", id, INT32_MAX);
		y.placeholder = (int32_t)get_size(name, root, "image_token_id", id, INT32_MAX);
		/* a config of early Qwen2-VL has the language model's keys at its root */
		y.vocab = get_size(name, root, "vocab_size", 0, INT32_MAX);
		y.vocab = get_size(name, text, "vocab_size", y.vocab, INT32_MAX);
		return y;
	}
	die("%s: /config: is not of a model that sees pictures, expected model_type llava or qwen2_vl", name);
}

struct vision_tokens vision_tokens_parse(const char *name, const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	struct vision_tokens y;

	if (!json_is_object(root))
		die("%s: /config: is not a JSON object", name);
	y = read_model(name, root);
	json_decref(root);
	return y;
}

size_t vision_tokens_count(const struct vision_tokens *v, size_t rows, size_t columns)
{
	const size_t all = rows / v->merge * (columns / v->merge) + v->class_row;

	return all ? all - v->drops_first : 0;
}

void vision_tokens_grid(const struct vision_tokens *v, const struct processor *p, size_t h, size_t w,
	size_t *rows, size_t *columns)
{
	size_t height, width;

	if (p->patch && (p->patch != v->patch || p->merge != v->merge))
		die("%s: makes patches of %zu pixels, %zu x %zu of them a token; the model takes %zu, and "
			"%zu x %zu", p->name, p->patch, p->merge, p->merge, v->patch, v->merge, v->merge);
	processor_size(p, h, w, &height, &width);
	if (v->side && (height != v->side || width != v->side))
		die("%s: makes %zu x %zu pixels of a picture of %zu x %zu; the vision tower takes %zu x %zu",
			p->name, height, width, h, w, v->side, v->side);
	*rows = height / v->patch, *columns = width / v->patch;
	if (!v->side && (!p->patch || *rows % v->merge || *columns % v->merge))
		die("%s: is of %sImageProcessor, expected Qwen2VLImageProcessor for this model", p->name,
			p->kind);
}
