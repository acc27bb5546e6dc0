/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c -- reads config.json; see config.h
 *
 * Keys have the meaning that they have in transformers 5, so that both compute the same function: defaults
 * of absent keys depend on the class, model_type is read before architectures, rope_scaling before
 * rope_parameters. null is an error if the class has no meaning for it. A key that changes the function and
 * is not supported is refused by name.
 */
#include "model/config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/config_private.h"
#include "model/rope.h"
#include "model/sliding.h"

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

static void check_switch(const struct keys *k, const char *key, bool supported)
{
	const bool null = json_is_null(json_object_get(k->json, key));	/* null counts as false */

	if ((null ? false : key_bool(k, key, supported)) != supported)
		die("%s: /config: '%s' must be %s; other values are not supported", k->file, key,
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

/* Parses the experts, and the blocks without experts, which the class counts out or a list names. */
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

void config_activation(struct stack *s, const struct keys *k, const char *key)
{
	const char *absent = s->arch->absent.act ? s->arch->absent.act : "gelu";
	const char *name = key_text(k, key_name(k, key), absent);
	char known[CONFIG_NAMES] = "";

	if (s->arch->gelu_is_tanh && !strcmp(name, "gelu"))
		name = "gelu_pytorch_tanh";
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		config_list_name(known, acts[i].name);
		if (!strcmp(name, acts[i].name)) {
			s->activation = acts[i].act;
			return;
		}
	}
	die("%s: /config: unknown activation '%s', expected one of %s", k->file, name, known);
}

/* An id outside the vocabulary is none: small test models are saved with the ids of their class. */
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

void config_biases(struct stack *s, const struct keys *k)
{
	const struct architecture *a = s->arch;

	for (int i = 0; i < ROLES; i++)
		s->bias[i] = a->bias_key[i] ? key_bool(k, a->bias_key[i], a->bias[i]) : a->bias[i];
}

/* Parses the layers that have a bias, and the connection of residual branches to the stream. */
static void parse_block(struct stack *s, const struct keys *k)
{
	const struct architecture *a = s->arch;

	config_biases(s, k);
	s->norms_last = a->before_key && !key_bool(k, a->before_key, true);
	s->attention_cap = parse_cap(k, a->attention_cap_key, a->absent.attention_cap);
	s->parallel = a->parallel_key ? key_bool(k, a->parallel_key, a->parallel) : a->parallel;
}

/* Refuses embeddings of another width than the residual stream, which need a projection after them and one
 * before the head. */
static void check_width(const struct stack *s, const struct keys *k)
{
	const char *key = s->arch->width_key;
	size_t width = key ? key_size(k, key, s->hidden, s->hidden, SIZE_MAX >> 1) : s->hidden;

	if (width != s->hidden)
		die("%s: /config: '%s' is %zu, the hidden size %zu: embeddings of another width, "
			"with their projections, are not supported", k->file, key, width, s->hidden);
}

/* Parses the width of a head; hidden / heads if neither config.json nor the class has it. */
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

void config_stack(struct config *c, struct stack *s, const struct keys *k)
{
	parse_sizes(s, k);
	config_activation(s, k, "hidden_act");
	if (!s->arch->position)
		rope_parse(s, k, c->positions);
	parse_block(s, k);
	sliding_parse(s, k);
	parse_experts(s, k);
}

/* Parses the language model. */
static void parse_text(struct config *c, struct stack *s, const struct keys *k)
{
	enum { VOCAB = 1 << 28, LONG = 1 << 28 };

	check_switches(k);
	c->vocab = key_size(k, "vocab_size", c->arch->absent.vocab, 0, VOCAB);
	c->positions = key_size(k, "max_position_embeddings", c->arch->absent.positions, 0, LONG);
	*s = (struct stack){ .arch = c->arch };
	config_stack(c, s, k);
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
	const struct keys whole = { .file = name, .json = json };
	struct config_classes of;
	struct stack last;

	if (!json)
		die("%s: /config: not JSON: line %d: %s", name, error.line, error.text);
	if (!json_is_object(json))
		die("%s: /config: not a JSON object", name);
	of = config_classes(json);
	c.arch = of.arch;
	if (!c.arch)
		config_unknown(name, &of);
	parse_text(&c, &last, &(struct keys){ .file = name, .json = of.text, .arch = of.arch });
	if (of.multimodal) {
		c.logit_cap = 0;	/* the head is of the multimodal class */
		config_vision(&c, &of, &whole, &last);
		c.tied |= key_bool(&whole, "tie_word_embeddings", false);
	}
	c.stack[c.stacks++] = last;
	for (struct stack *s = c.stack; s < c.stack + c.stacks; s++) {
		s->first = c.blocks;
		c.blocks += s->blocks;
	}
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
