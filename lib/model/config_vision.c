/* SPDX-License-Identifier: GPL-3.0-or-later */
/* config_vision.c -- the encoder of images and its projector; see config_private.h */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "model/config_private.h"

/* The number of encoder blocks before the output that the projector reads, hidden_states[layer] of
 * transformers. */
static size_t parse_depth(const struct multimodal *m, const struct keys *k, size_t blocks)
{
	const json_t *v = json_object_get(k->json, m->feature_key);
	const json_int_t said = v ? json_integer_value(v) : m->feature_layer;
	const json_int_t layer = said + (said < 0 ? (json_int_t)blocks + 1 : 0);

	if (v ? !json_is_integer(v) : !m->feature_layer)
		die("%s: /config: '%s' must be a whole number: features of several layers are not supported",
			k->file, m->feature_key);
	if (layer < 1 || layer > (json_int_t)blocks)
		die("%s: /config: '%s' is %lld, expected the output of one of the %zu blocks of the encoder",
			k->file, m->feature_key, (long long)said, blocks);
	return (size_t)layer;
}

/* Parses settings of a class with images of one size. */
static void parse_fixed(struct vision *v, const struct keys *k, const struct keys *own)
{
	enum { WIDE = 1 << 16, FEW = 64 };
	const char *key = v->class->strategy_key, *merge = v->class->merge_key;
	const char *strategy = key ? key_text(k, key, "default") : "default";

	v->merge = merge ? key_size(k, merge, 2, 0, FEW) : 1;
	v->frames = 1;
	v->side = key_size(own, "image_size", own->arch->absent.image, 0, WIDE);
	if (v->patch > v->side)
		die("%s: /config: 'patch_size' is %zu, the images are %zu pixels wide", k->file, v->patch,
			v->side);
	v->rows = (v->side / v->patch) * (v->side / v->patch) + !!own->arch->class_token;
	if (strcmp(strategy, "default") && strcmp(strategy, "full"))
		die("%s: /config: '%s' is '%s', expected default or full", k->file, key, strategy);
	v->skipped = v->class->skips && !strcmp(strategy, "default");
	if (v->side / v->patch % v->merge)
		die("%s: /config: '%s' is %zu, expected a divisor of the %zu patches per side of an image",
			k->file, merge, v->merge, v->side / v->patch);
}

/* Parses the width of an attention window, in squares that become one feature. */
static size_t parse_window(const struct vision *v, const struct keys *own)
{
	enum { WIDE = 1 << 16 };
	const size_t pixels = key_size(own, "window_size", own->arch->absent.window, 0, WIDE);
	const size_t squares = pixels / v->merge / v->patch;

	if (!squares)
		die("%s: /config: 'window_size' is %zu, expected at least the %zu x %zu pixels of a feature",
			own->file, pixels, v->merge, v->patch);
	return squares;
}

/* Parses the conversion of images to rows. */
static void parse_images(struct vision *v, const struct multimodal *m, const struct keys *k,
	const struct keys *own, size_t vocab)
{
	enum { WIDE = 1 << 16, FEW = 64 };
	const json_t *of = json_object_get(k->json, "image_token_id");
	json_int_t id;

	of = of ? of : json_object_get(k->json, "image_token_index");
	id = json_is_integer(of) ? json_integer_value(of) : of && !json_is_null(of) ? -1 : m->placeholder;
	if (id < 0 || (size_t)id >= vocab)
		die("%s: /config: an image is token %lld ('image_token_id'), which is none of the %zu of the "
			"vocabulary", k->file, (long long)id, vocab);
	v->class = m;
	v->placeholder = (int32_t)id;
	v->patch = key_size(own, "patch_size", own->arch->absent.patch, 0, WIDE);
	if (key_size(own, "num_channels", CHANNELS, 0, WIDE) != CHANNELS)
		die("%s: /config: '%s' must be %d; other values are not supported", k->file,
			key_name(own, "num_channels"), CHANNELS);
	if (m->any_size) {
		v->merge = key_size(own, "spatial_merge_size", 2, 0, FEW);
		v->frames = key_size(own, "temporal_patch_size", 2, 0, FEW);
		if (own->arch->sliding_kind == SLIDING_GRID)
			v->window = parse_window(v, own);
	} else {
		parse_fixed(v, k, own);
	}
}

static void parse_projector(struct stack *s, const struct vision *v, const struct stack *encoder,
	const struct stack *last, const struct keys *k)
{
	const char *eps = v->class->projector_eps_key;

	s->blocks = 1;
	s->hidden = encoder->hidden;
	s->merged = v->merge * v->merge;
	s->out = last->hidden;
	if (stack_width(s, PROJECTION_DOWN))
		s->intermediate = v->class->any_size ? s->merged * s->hidden : last->hidden;
	s->eps = eps ? key_real(k, eps, 1e-5) : encoder->eps;
	config_activation(s, k, "projector_hidden_act");
	config_biases(s, k);
}

/* Intermediate size, from its ratio to the hidden size. */
static size_t parse_ratio(const struct stack *s, const struct keys *k)
{
	const double inner = (double)s->hidden * key_real(k, "mlp_ratio", NAN);

	if (!(inner >= 1 && inner <= 1 << 22))
		die("%s: /config: 'mlp_ratio' makes an intermediate size of %g, expected 1 to %d", k->file,
			inner, 1 << 22);
	return (size_t)inner;
}

static struct stack *add_stack(struct config *c, const struct architecture *arch)
{
	struct stack *s = &c->stack[c->stacks++];

	*s = (struct stack){ .arch = arch };
	return s;
}

static void check_encoder(const struct config_classes *of, const char *file)
{
	const char *type = json_string_value(json_object_get(of->vision, "model_type"));
	char known[CONFIG_NAMES] = "";

	if (!of->vision)
		die("%s: /config: 'vision_config' is missing, expected an object", file);
	if (of->encoder)
		return;
	for (const struct architecture *e = of->multimodal->encoders; e->name; e++)
		config_list_name(known, e->model_type);
	die("%s: /config: 'vision_config': unknown model_type '%s', expected one of %s", file,
		type ? type : "", known);
}

void config_vision(struct config *c, const struct config_classes *of, const struct keys *k,
	const struct stack *last)
{
	const struct multimodal *m = of->multimodal;
	const struct keys inner = { .file = k->file, .json = of->vision, .arch = of->encoder };
	const struct keys outer = { .file = k->file, .json = k->json, .arch = &m->projector };
	struct stack *encoder;

	check_encoder(of, k->file);
	encoder = add_stack(c, of->encoder);
	config_stack(c, encoder, &inner);
	parse_images(&c->vision, m, &outer, &inner, c->vocab);
	if (!key_name(&inner, "intermediate_size") && json_object_get(of->vision, "mlp_ratio"))
		encoder->intermediate = parse_ratio(encoder, &inner);
	if (m->feature_key)
		encoder->blocks = parse_depth(m, k, encoder->blocks);
	parse_projector(add_stack(c, &m->projector), &c->vision, encoder, last, &outer);
}

size_t vision_numbers(const struct vision *v)
{
	return CHANNELS * v->frames * v->patch * v->patch;
}
