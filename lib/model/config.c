/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c -- reads config.json; see config.h
 *
 * Meanings are those of transformers 5, so that a model is the same function
 * here and there: defaults of absent keys by class, model_type before
 * architectures, rope_scaling before rope_parameters; null where the class has
 * no meaning for it is an error. What changes the function and is not done here
 * is refused by its key.
 */
#include "model/config.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/key.h"
#include "model/rope.h"
#include "model/sliding.h"

enum { LIST = 512 };				/* bytes of names in a message */

static const struct { const char *name; enum activation act; } acts[] = {
	{ "silu", ACTIVATION_SILU }, { "swish", ACTIVATION_SILU }, { "gelu", ACTIVATION_GELU },
	{ "gelu_python", ACTIVATION_GELU }, { "gelu_new", ACTIVATION_GELU_TANH }, { "tanh", ACTIVATION_TANH },
	{ "gelu_pytorch_tanh", ACTIVATION_GELU_TANH }, { "gelu_fast", ACTIVATION_GELU_TANH },
	{ "gelu_python_tanh", ACTIVATION_GELU_TANH }, { "gelu_accurate", ACTIVATION_GELU_TANH },
	{ "quick_gelu", ACTIVATION_QUICK_GELU }, { "relu", ACTIVATION_RELU }, { "mish", ACTIVATION_MISH },
	{ "gelu_10", ACTIVATION_GELU_10 }, { "relu2", ACTIVATION_RELU2 }, { "relu6", ACTIVATION_RELU6 },
	{ "hardswish", ACTIVATION_HARDSWISH }, { "laplace", ACTIVATION_LAPLACE },
	{ "leaky_relu", ACTIVATION_LEAKY_RELU }, { "sigmoid", ACTIVATION_SIGMOID },
	{ "sqrtsoftplus", ACTIVATION_SQRTSOFTPLUS }, { "linear", ACTIVATION_LINEAR },
};

/* Adds to a list of names for a message. */
static void list_name(char list[LIST], const char *name)
{
	size_t n = strlen(list);

	snprintf(list + n, LIST - n, "%s%s", n ? ", " : "", name);
}

static const char *model_type(const json_t *json)
{
	return json_string_value(json_object_get(json, "model_type"));
}

static const char *class_name(const json_t *json)
{
	return json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
}

/* The class of a model that sees images, or NULL, and in *text what config.json says of its language
 * model. */
static const struct multimodal *find_multimodal(const json_t *json, const json_t **text)
{
	const struct multimodal *m = multimodal_find(model_type(json), class_name(json));
	const json_t *inside = m ? json_object_get(json, "text_config") : NULL;

	*text = json_is_object(inside) ? inside : json;
	return m;
}

static const struct architecture *find_architecture(const json_t *text, const struct multimodal *m)
{
	const char *type = model_type(text);

	if (m)
		return architecture_find(type && strcmp(type, m->model_type) ? type : m->text, NULL);
	return architecture_find(type, class_name(text));
}

static _Noreturn void unknown(const struct keys *k)
{
	const char *type = model_type(k->json), *name = class_name(k->json);
	char known[LIST] = "";

	for (const struct architecture *a = architectures; a->name; a++)
		list_name(known, type ? a->model_type : a->name);
	for (const struct multimodal *m = multimodals; m->name; m++)
		list_name(known, type ? m->model_type : m->name);
	if (!type && !name)
		die("%s: /config: names neither model_type nor architectures; known are %s", k->file, known);
	die("%s: /config: unknown %s '%s'; known are %s", k->file, type ? "model_type" : "architecture",
		type ? type : name, known);
}

static void check_switch(const struct keys *k, const char *key, bool supported)
{
	const bool null = json_is_null(json_object_get(k->json, key));	/* as false is */

	if ((null ? false : key_bool(k, key, supported)) != supported)
		die("%s: /config: '%s' is not supported other than %s", k->file, key,
			supported ? "true" : "false");
}

static void check_switches(const struct keys *k)
{
	check_switch(k, "is_causal", true);
	for (const struct switch_row *s = k->arch->switches; s && s->key; s++)
		check_switch(k, s->key, s->supported);
	if (json_object_size(key_get(k->json, "per_layer_config")))
		die("%s: /config: 'per_layer_config': blocks that differ in size or kind are not supported",
			k->file);
}

/* Experts, and which blocks have none: those that the class counts out, and those of a list. */
static void parse_experts(struct stack *s, const struct keys *k)
{
	enum { WIDE = 1 << 22, MANY = 1 << 16, ALL = 1 << 18 };
	const struct architecture *a = s->arch;
	const char *normalized = key_name(k, "norm_topk_prob");
	const char *list = key_name(k, "mlp_only_layers");
	const json_t *dense = list ? key_get(k->json, list) : NULL;
	size_t step = 1;

	if (!a->absent.experts)
		return;
	s->experts = key_size(k, "num_experts", a->absent.experts, 0, MANY);
	s->chosen = key_size(k, "num_experts_per_tok", a->absent.chosen, 0, MANY);
	s->expert = key_size(k, "moe_intermediate_size", a->absent.expert, 0, WIDE);
	if (a->absent.shared)
		s->shared = key_size(k, "shared_expert_intermediate_size", a->absent.shared, 0, WIDE);
	s->normalized = normalized ? key_bool(k, normalized, a->absent.normalized) : a->absent.normalized;
	if (s->experts > ALL / s->blocks)
		die("%s: /config: %zu blocks of %zu experts are too many, expected at most %d experts in all",
			k->file, s->blocks, s->experts, ALL);
	if (s->chosen > s->experts)
		die("%s: /config: 'num_experts_per_tok' is %zu, there are only %zu experts", k->file,
			s->chosen, s->experts);
	if (key_name(k, "decoder_sparse_step"))
		step = key_size(k, "decoder_sparse_step", 1, 0, MANY);
	if (dense && !json_is_array(dense))
		die("%s: /config: '%s' must be a list of blocks", k->file, list);
	s->dense = xalloc(s->blocks, sizeof *s->dense);
	for (size_t i = 0; i < s->blocks; i++)
		s->dense[i] = (i + 1) % step != 0;
	for (size_t i = 0; i < json_array_size(dense); i++) {
		const json_t *block = json_array_get(dense, i);
		const json_int_t n = json_integer_value(block);

		if (!json_is_integer(block))
			die("%s: /config: '%s' must hold whole numbers", k->file, list);
		if (n >= 0 && (size_t)n < s->blocks)
			s->dense[n] = true;
	}
}

/* A soft-cap; null: none. */
static double parse_cap(const struct keys *k, const char *key, double absent)
{
	return !key || json_is_null(json_object_get(k->json, key)) ? 0 : key_real(k, key, absent);
}

static void parse_act(struct stack *s, const struct keys *k, const char *key)
{
	const char *absent = s->arch->absent.act ? s->arch->absent.act : "gelu";
	const char *name = key_text(k, key_name(k, key), absent);
	char known[LIST] = "";

	if (s->arch->gelu_is_tanh && !strcmp(name, "gelu"))
		name = "gelu_pytorch_tanh";
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		list_name(known, acts[i].name);
		if (!strcmp(name, acts[i].name)) {
			s->activation = acts[i].act;
			return;
		}
	}
	die("%s: /config: unknown activation '%s'; known are %s", k->file, name, known);
}

/* Outside the vocabulary it is none: models of a small one are saved with the ids of their class. */
static long token_id(const struct config *c, const json_t *v, long absent)
{
	long id = json_is_integer(v) ? (long)json_integer_value(v) : v ? -1 : absent;

	return id >= 0 && (size_t)id < c->vocab ? id : -1;
}

static void parse_ids(struct config *c, const struct keys *k)
{
	const json_t *bos = json_object_get(k->json, "bos_token_id");
	const json_t *eos = json_object_get(k->json, "eos_token_id");
	size_t n = json_is_array(eos) ? json_array_size(eos) : 1;

	if (json_is_array(bos))
		bos = json_array_get(bos, 0);
	c->bos = token_id(c, bos, c->arch->absent.bos);
	if (n > EOS)
		die("%s: /config: 'eos_token_id' lists %zu ids, expected at most %d", k->file, n, EOS);
	for (size_t i = 0; i < n; i++) {
		long id = token_id(c, json_is_array(eos) ? json_array_get(eos, i) : eos, c->arch->absent.eos);

		if (id >= 0)
			c->eos[c->eos_count++] = id;
	}
}

/* Which layers have a bias, and how the branches of a block join the residual stream. */
static void parse_block(struct stack *s, const struct keys *k)
{
	const struct architecture *a = s->arch;

	for (int i = 0; i < ROLES; i++)
		s->bias[i] = a->bias_key[i] ? key_bool(k, a->bias_key[i], a->bias[i]) : a->bias[i];
	s->norms_last = a->before_key && !key_bool(k, a->before_key, true);
	s->attention_cap = parse_cap(k, a->attention_cap_key, a->absent.attention_cap);
	s->parallel = a->parallel_key ? key_bool(k, a->parallel_key, a->parallel) : a->parallel;
}

/* Embeddings of another width than the residual stream: a projection behind them, and one before the head. */
static void check_width(const struct stack *s, const struct keys *k)
{
	const char *key = s->arch->width_key;
	size_t width = key ? key_size(k, key, s->hidden, s->hidden, SIZE_MAX >> 1) : s->hidden;

	if (width != s->hidden)
		die("%s: /config: '%s' is %zu, the hidden size %zu: embeddings of another width, "
			"with their projections, are not supported", k->file, key, width, s->hidden);
}

/* hidden / heads where neither config.json nor the class says it. */
static void parse_head_dim(struct stack *s, const struct keys *k)
{
	enum { WIDE = 1 << 20 };
	const char *name = key_name(k, "head_dim");
	size_t absent = s->arch->absent.head_dim, each = s->hidden / s->heads ? s->hidden / s->heads : 1;

	s->head_dim = key_size(k, "head_dim", absent ? absent : each, absent ? 0 : each, WIDE);
	if (!absent && !(name && key_get(k->json, name)) && s->hidden % s->heads)
		die("%s: /config: hidden size %zu is not a multiple of %zu heads", k->file, s->hidden,
			s->heads);
	s->attention_scale = 1 / sqrt(s->arch->scale_key ?
		key_real(k, s->arch->scale_key, s->arch->absent.scale) : (double)s->head_dim);
}

static void parse_sizes(struct stack *s, const struct keys *k)
{
	enum { WIDE = 1 << 20, MANY = 1 << 16 };
	const struct architecture *a = s->arch;
	size_t kv_heads, inner, null;

	s->hidden = key_size(k, "hidden_size", a->absent.hidden, 0, WIDE);
	s->blocks = key_size(k, "num_hidden_layers", a->absent.blocks, 0, MANY);
	s->heads = key_size(k, "num_attention_heads", a->absent.heads, 0, MANY);
	kv_heads = a->absent.kv_heads ? a->absent.kv_heads : s->heads;
	s->kv_heads = key_size(k, "num_key_value_heads", kv_heads, s->heads, MANY);
	check_width(s, k);
	parse_head_dim(s, k);
	null = a->absent.intermediate ? 0 : 4 * s->hidden;
	inner = null ? null : a->absent.intermediate;
	s->intermediate = key_size(k, "intermediate_size", inner, null, 4 * WIDE);
	s->eps = key_real(k, key_name(k, "rms_norm_eps"), a->absent.eps);
	if (s->heads % s->kv_heads)
		die("%s: /config: %zu attention heads are not a multiple of %zu key and value heads",
			k->file, s->heads, s->kv_heads);
	if (s->eps >= 1)
		die("%s: /config: a norm's epsilon is %g, expected a number below 1", k->file, s->eps);
}

static struct stack *add_stack(struct config *c, const struct architecture *arch)
{
	struct stack *s = &c->stack[c->stacks++];

	*s = (struct stack){ .arch = arch };
	return s;
}

/* A stack of a language model, or of an encoder. */
static void parse_stack(struct config *c, struct stack *s, const struct keys *k)
{
	parse_sizes(s, k);
	parse_act(s, k, "hidden_act");
	if (!s->arch->position)
		rope_parse(s, k, c->positions);
	parse_block(s, k);
	sliding_parse(s, k);
	parse_experts(s, k);
}

/* Those blocks of an encoder that the projector reads the output of: hidden_states[layer] of transformers. */
static size_t parse_depth(const struct multimodal *m, const struct keys *k, size_t blocks)
{
	const json_t *v = json_object_get(k->json, "vision_feature_layer");
	const json_int_t said = v ? json_integer_value(v) : m->feature_layer;
	const json_int_t layer = said + (said < 0 ? (json_int_t)blocks + 1 : 0);

	if (v ? !json_is_integer(v) : !m->feature_layer)
		die("%s: /config: 'vision_feature_layer' must be a whole number: features of several layers "
			"side by side are not supported", k->file);
	if (layer < 1 || layer > (json_int_t)blocks)
		die("%s: /config: 'vision_feature_layer' is %lld, expected one behind a block of the %zu of "
			"the encoder", k->file, (long long)said, blocks);
	return (size_t)layer;
}

/* Images of one size, whose features the projector reads one by one. */
static void parse_fixed(struct vision *v, const struct keys *k, const struct keys *own)
{
	enum { WIDE = 1 << 16 };
	const char *key = v->class->strategy_key;
	const char *strategy = key ? key_text(k, key, "default") : "default";

	v->merge = v->frames = 1;
	v->side = key_size(own, "image_size", own->arch->absent.image, 0, WIDE);
	if (v->patch > v->side)
		die("%s: /config: 'patch_size' is %zu, the images are %zu pixels wide", k->file, v->patch,
			v->side);
	v->rows = (v->side / v->patch) * (v->side / v->patch) + !!own->arch->class_token;
	if (strcmp(strategy, "default") && strcmp(strategy, "full"))
		die("%s: /config: '%s' is '%s', expected default or full", k->file, key, strategy);
	v->skipped = !strcmp(strategy, "default");
}

/* How images become rows. */
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
		die("%s: /config: '%s' is not supported other than %d", k->file,
			key_name(own, "num_channels"), CHANNELS);
	if (m->merges) {
		v->merge = key_size(own, "spatial_merge_size", 2, 0, FEW);
		v->frames = key_size(own, "temporal_patch_size", 2, 0, FEW);
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
	s->intermediate = v->class->merges ? s->merged * s->hidden : last->hidden;
	s->eps = eps ? key_real(k, eps, 1e-5) : encoder->eps;
	parse_act(s, k, "projector_hidden_act");
	s->bias[ROLE_UP] = s->bias[ROLE_DOWN] = key_bool(k, "multimodal_projector_bias", true);
}

/* The row of an encoder; the whole's name, which older files have there, is that of its first. NULL: none. */
static const struct architecture *find_encoder(const struct multimodal *m, const json_t *own)
{
	const char *type = model_type(own);
	const struct architecture *a = m->encoders;

	if (m->merges && (!type || !strcmp(type, m->model_type)))
		return a;
	while (a->name && (!type || strcmp(type, a->model_type)))
		a++;
	return a->name ? a : NULL;
}

/* Intermediate size as a multiple of the hidden size. */
static size_t parse_ratio(const struct stack *s, const struct keys *k)
{
	const double inner = (double)s->hidden * key_real(k, "mlp_ratio", NAN);

	if (!(inner >= 1 && inner <= 1 << 22))
		die("%s: /config: 'mlp_ratio' makes an intermediate size of %g, expected 1 to %d", k->file,
			inner, 1 << 22);
	return (size_t)inner;
}

/* The encoder of images and its projector, before the language model. */
static void parse_vision(struct config *c, const struct multimodal *m, const struct keys *k,
	const struct stack *last)
{
	const json_t *own = json_object_get(k->json, "vision_config");
	const struct architecture *a = json_is_object(own) ? find_encoder(m, own) : NULL;
	const struct keys inner = { .file = k->file, .json = own, .arch = a };
	const struct keys outer = { .file = k->file, .json = k->json, .arch = &m->projector };
	char known[LIST] = "";
	struct stack *encoder;

	if (!json_is_object(own))
		die("%s: /config: 'vision_config' is missing, expected an object", k->file);
	for (const struct architecture *e = m->encoders; e->name; e++)
		list_name(known, e->model_type);
	if (!a)
		die("%s: /config: 'vision_config': unknown model_type '%s'; known are %s", k->file,
			model_type(own) ? model_type(own) : "", known);
	encoder = add_stack(c, a);
	parse_stack(c, encoder, &inner);
	parse_images(&c->vision, m, k, &inner, c->vocab);
	if (!key_name(&inner, "intermediate_size") && json_object_get(own, "mlp_ratio"))
		encoder->intermediate = parse_ratio(encoder, &inner);
	if (!m->merges)
		encoder->blocks = parse_depth(m, k, encoder->blocks);
	parse_projector(add_stack(c, &m->projector), &c->vision, encoder, last, &outer);
}

/* What there is of a language model. */
static void parse_text(struct config *c, struct stack *s, const struct keys *k)
{
	enum { VOCAB = 1 << 28, LONG = 1 << 28 };

	check_switches(k);
	c->vocab = key_size(k, "vocab_size", c->arch->absent.vocab, 0, VOCAB);
	c->positions = key_size(k, "max_position_embeddings", c->arch->absent.positions, 0, LONG);
	*s = (struct stack){ .arch = c->arch };
	parse_stack(c, s, k);
	c->embedding_scale = c->arch->embedding_scaled ? sqrt((double)s->hidden) : 1;
	c->logit_cap = parse_cap(k, c->arch->logit_cap_key, c->arch->absent.logit_cap);
	c->tied = key_bool(k, "tie_word_embeddings", c->arch->absent.tied);
	parse_ids(c, k);
}

struct config config_parse(const char *name, const char *text)
{
	struct config c = { 0 };
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);
	const struct multimodal *m;
	struct keys whole = { .file = name, .json = json }, text_keys = whole;
	struct stack last;

	if (!json)
		die("%s: /config: not JSON: line %d: %s", name, error.line, error.text);
	if (!json_is_object(json))
		die("%s: /config: not a JSON object", name);
	m = find_multimodal(json, &text_keys.json);
	c.arch = text_keys.arch = find_architecture(text_keys.json, m);
	if (!c.arch)
		unknown(&text_keys);
	parse_text(&c, &last, &text_keys);
	if (m) {
		c.logit_cap = 0;	/* the head is that of the class */
		parse_vision(&c, m, &whole, &last);
	}
	c.tied |= m && key_bool(&whole, "tie_word_embeddings", false);
	c.stack[c.stacks++] = last;
	for (struct stack *s = c.stack; s < c.stack + c.stacks; s++) {
		s->first = c.blocks;
		c.blocks += s->blocks;
	}
	c.quantized = json_object_size(key_get(json, "quantization_config"));
	json_decref(json);
	return c;
}

struct config config_read(const struct part *part)
{
	char *text = part_config(part);
	struct config c;

	if (!text)
		die("%s: /config: is missing; a model needs its config.json to be run", part_name(part));
	c = config_parse(part_name(part), text);
	free(text);
	return c;
}

void config_free(const struct config *c)
{
	for (const struct stack *s = c->stack; s < c->stack + c->stacks; s++) {
		free(s->slides);
		free(s->dense);
		rope_settings_free(s);
	}
}

const struct config *config_open(const struct part *part)
{
	struct config *c = xalloc(1, sizeof *c);

	*c = config_read(part);
	return c;
}

void config_close(const struct config *c)
{
	config_free(c);
	free((void *)(uintptr_t)c);
}

const char *config_end(const struct config *c)
{
	const char *norm = stack_final_norm(config_last(c));

	return norm ? norm : c->arch->head;
}

const struct stack *config_last(const struct config *c)
{
	return &c->stack[c->stacks - 1];
}

const struct stack *config_encoder(const struct config *c)
{
	return c->vision.class ? &c->stack[0] : NULL;
}

const struct stack *config_projector(const struct config *c)
{
	return c->vision.class ? &c->stack[1] : NULL;
}

const char *config_class(const struct config *c)
{
	return c->vision.class ? c->vision.class->name : c->arch->name;
}

size_t vision_numbers(const struct vision *v)
{
	return CHANNELS * v->frames * v->patch * v->patch;
}

/* Adds patterns to the n of a list. */
static const char **add_patterns(const char **list, size_t *n, const char *const *pattern)
{
	for (; *pattern; pattern++) {
		list = xgrow(list, *n + 2, sizeof *list);
		list[(*n)++] = *pattern;
		list[*n] = NULL;
	}
	return list;
}

/* The patterns of the encoders of a class, of its projector, and of the language model, which take the rest.
 * m NULL: those of a language model alone. */
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
	const json_t *text = NULL, *own;
	const struct multimodal *m = json ? find_multimodal(json, &text) : NULL;
	const struct architecture *arch = json ? find_architecture(text, m) : NULL, *encoder;

	if (config && !json && json_loads(config, 0, NULL))	/* it parses now: memory was short */
		die("/config: out of memory");
	own = m ? json_object_get(json, "vision_config") : NULL;
	encoder = own ? find_encoder(m, own) : NULL;
	json_decref(json);
	if (!arch || (m && !encoder))
		return NULL;
	return join_layouts(m, encoder, arch);
}
