/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c -- config.json and the table of architectures; see config.h
 *
 * Defaults and meanings are those of the Hugging Face classes; rotary scaling
 * "llama3" is Llama 3.1's (long waves divided by `factor`, short ones kept, a
 * linear blend between). transformers 5 keeps theta and scaling together under
 * rope_parameters, older files in rope_theta and rope_scaling: both are read.
 */
#include "model/config.h"
#include "base/error.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const compute_types[] = { [COMPUTE_F32] = "f32", [COMPUTE_BF16] = "bf16", [COMPUTE_INT16] = "int16", NULL };

struct key_row { const char *ours, *theirs; };

static void mistral_window(struct config *c, const void *json);
static void qwen2_window(struct config *c, const void *json);

#define LLAMA_TREE \
	.layout = (const char *const []){ "/model/embed_tokens", "/model/layers/#", "*", NULL }, \
	.embedding = "/model/embed_tokens", .blocks = "/model/layers", \
	.norm = { "input_layernorm", "post_attention_layernorm" }, \
	.final_norm = "/model/norm", .head = "/lm_head", \
	.norm_kind = NORM_RMS, .position_kind = POSITION_ROPE, .mlp_kind = MLP_GATED, \
	.linear = { \
		{ "self_attn/q_proj", ROLE_Q, SITE_ATTENTION }, \
		{ "self_attn/k_proj", ROLE_K, SITE_ATTENTION }, \
		{ "self_attn/v_proj", ROLE_V, SITE_ATTENTION }, \
		{ "self_attn/o_proj", ROLE_OUTPUT, SITE_OUTPUT }, \
		{ "mlp/gate_proj", ROLE_GATE, SITE_MLP }, \
		{ "mlp/up_proj", ROLE_UP, SITE_MLP }, \
		{ "mlp/down_proj", ROLE_DOWN, SITE_DOWN }, \
	}

static const struct architecture architectures[] = {
	{ .name = "LlamaForCausalLM", .model_type = "llama", LLAMA_TREE },
	{ .name = "MistralForCausalLM", .model_type = "mistral", LLAMA_TREE, .adjust = mistral_window },
	{ .name = "Qwen2ForCausalLM", .model_type = "qwen2", LLAMA_TREE, .adjust = qwen2_window,
	  .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true } },
	{ .name = "GPT2LMHeadModel", .model_type = "gpt2",
	  .layout = (const char *const []){ "/transformer/wte", "/transformer/wpe", "/transformer/h/#", "*", NULL },
	  .embedding = "/transformer/wte", .position = "/transformer/wpe", .blocks = "/transformer/h",
	  .norm = { "ln_1", "ln_2" }, .final_norm = "/transformer/ln_f", .head = "/lm_head",
	  .norm_kind = NORM_LAYER, .position_kind = POSITION_LEARNED, .mlp_kind = MLP_PLAIN,
	  .linear = {
		{ "attn/c_attn", ROLE_QKV, SITE_ATTENTION },
		{ "attn/c_proj", ROLE_OUTPUT, SITE_OUTPUT },
		{ "mlp/c_fc", ROLE_UP, SITE_MLP },
		{ "mlp/c_proj", ROLE_DOWN, SITE_DOWN },
	  },
	  .bias = { [ROLE_QKV] = true, [ROLE_OUTPUT] = true, [ROLE_UP] = true, [ROLE_DOWN] = true },
	  .tied = true,
	  .keys = (const struct key_row []){ { "hidden_size", "n_embd" }, { "num_attention_heads", "n_head" },
		{ "num_hidden_layers", "n_layer" }, { "max_position_embeddings", "n_positions" },
		{ "intermediate_size", "n_inner" }, { "rms_norm_eps", "layer_norm_epsilon" },
		{ "hidden_act", "activation_function" }, { NULL, NULL } } },
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

static const struct { const char *name; enum act_kind act; } acts[] = {
	{ "silu", ACT_SILU }, { "swish", ACT_SILU }, { "gelu", ACT_GELU },
	{ "gelu_new", ACT_GELU_TANH }, { "gelu_pytorch_tanh", ACT_GELU_TANH }, { "gelu_fast", ACT_GELU_TANH },
};

/* Where messages say the trouble is; set by config_parse(). */
static _Thread_local const char *file = "?";

static json_t *get(const json_t *json, const char *key)
{
	json_t *v = json_object_get(json, key);

	return v && !json_is_null(v) ? v : NULL;
}

static const char *name_of(const struct architecture *arch, const char *key)
{
	for (const struct key_row *k = arch->keys; k && k->ours; k++)
		if (!strcmp(k->ours, key))
			return k->theirs;
	return key;
}

/* A whole number of 1..top; otherwise 0: the key must be there. */
static size_t get_size(const struct config *c, const json_t *json, const char *key, size_t otherwise, size_t top)
{
	const char *name = name_of(c->arch, key);
	json_t *v = get(json, name);

	if (!v && otherwise)
		return otherwise;
	if (!v)
		die("%s: /config: no '%s'", file, name);
	if (!json_is_integer(v) || json_integer_value(v) < 1 || (size_t)json_integer_value(v) > top)
		die("%s: /config: '%s' must be a whole number from 1 to %zu", file, name, top);
	return (size_t)json_integer_value(v);
}

static double get_real(const json_t *json, const char *key, double otherwise)
{
	json_t *v = get(json, key);

	if (!v && !isnan(otherwise))
		return otherwise;
	if (!json_is_number(v) || !(json_number_value(v) > 0) || isinf(json_number_value(v)))
		die("%s: /config: '%s' must be a positive number", file, key);
	return json_number_value(v);
}

static bool get_bool(const json_t *json, const char *key, bool otherwise)
{
	json_t *v = get(json, key);

	if (v && !json_is_boolean(v))
		die("%s: /config: '%s' must be true or false", file, key);
	return v ? json_is_true(v) : otherwise;
}

static const char *get_text(const json_t *json, const char *key)
{
	json_t *v = get(json, key);

	if (v && !json_is_string(v))
		die("%s: /config: '%s' must be a string", file, key);
	return v ? json_string_value(v) : NULL;
}

static const struct architecture *find(const json_t *json)
{
	const json_t *list = json_object_get(json, "architectures");
	const char *name = json_string_value(json_array_get(list, 0));
	const char *type = json_string_value(json_object_get(json, "model_type"));

	for (size_t i = 0; i < ARCHITECTURES; i++) {
		const struct architecture *a = &architectures[i];

		if (name ? !strcmp(name, a->name) : type && !strcmp(type, a->model_type))
			return a;
	}
	return NULL;
}

static _Noreturn void unknown(const json_t *json)
{
	const char *name = json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
	const char *type = json_string_value(json_object_get(json, "model_type"));
	char known[512] = "";

	for (size_t i = 0; i < ARCHITECTURES; i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", architectures[i].name);
	die("%s: /config: unknown architecture '%s'; known are %s", file, name ? name : type ? type : "", known);
}

/* sliding_window of every block */
static void mistral_window(struct config *c, const void *json)
{
	if (get(json, "sliding_window"))
		c->window = get_size(c, json, "sliding_window", 0, SIZE_MAX >> 1);
}

/* use_sliding_window: of the blocks from max_window_layers on, or of those that layer_types names */
static void qwen2_window(struct config *c, const void *json)
{
	const json_t *types = get(json, "layer_types");
	size_t first = 28;

	if (!get_bool(json, "use_sliding_window", false) || !get(json, "sliding_window"))
		return;
	if (get(json, "max_window_layers") && json_integer_value(get(json, "max_window_layers")) == 0)
		first = 0;
	else
		first = get_size(c, json, "max_window_layers", first, SIZE_MAX >> 1);
	mistral_window(c, json);
	c->windowed = xalloc(c->blocks, sizeof *c->windowed);
	for (size_t i = 0; i < c->blocks; i++) {
		const char *type = json_string_value(json_array_get(types, i));

		c->windowed[i] = type ? !strcmp(type, "sliding_attention") : i >= first;
	}
}

static void parse_rope(struct config *c, const json_t *json)
{
	const json_t *rope = get(json, "rope_parameters");
	const json_t *scaling = rope ? rope : get(json, "rope_scaling");
	const char *kind;

	c->theta = get_real(rope && get(rope, "rope_theta") ? rope : json, "rope_theta", 10000);
	if (!scaling)
		return;
	if (!json_is_object(scaling))
		die("%s: /config: the rotary settings must be an object", file);
	kind = get_text(scaling, "rope_type");
	if (!kind)
		kind = get_text(scaling, "type");
	if (get_real(scaling, "partial_rotary_factor", 1) != 1)
		die("%s: /config: rotary positions on a part of the head are not supported", file);
	if ((!kind && rope && get(rope, "rope_theta")) || (kind && !strcmp(kind, "default")))
		return;
	if (kind && !strcmp(kind, "linear"))
		c->rope = ROPE_LINEAR;
	else if (kind && !strcmp(kind, "llama3"))
		c->rope = ROPE_LLAMA3;
	else
		die("%s: /config: rotary scaling '%s' is not supported; supported are default, linear, llama3",
			file, kind ? kind : "");
	c->factor = get_real(scaling, "factor", NAN);
	if (c->rope != ROPE_LLAMA3)
		return;
	c->low = get_real(scaling, "low_freq_factor", NAN);
	c->high = get_real(scaling, "high_freq_factor", NAN);
	c->original = get_real(scaling, "original_max_position_embeddings", (double)c->positions);
	if (c->high <= c->low)
		die("%s: /config: high_freq_factor must be above low_freq_factor", file);
}

static void parse_act(struct config *c, const json_t *json)
{
	const char *name = get_text(json, name_of(c->arch, "hidden_act"));
	char known[128] = "";

	if (!name)
		name = c->arch->mlp_kind == MLP_GATED ? "silu" : "gelu_new";
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		if (!strcmp(name, acts[i].name)) {
			c->act = acts[i].act;
			return;
		}
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", acts[i].name);
	}
	die("%s: /config: unknown activation '%s'; known are %s", file, name, known);
}

static void parse_ids(struct config *c, const json_t *json)
{
	const json_t *bos = get(json, "bos_token_id"), *eos = get(json, "eos_token_id");
	size_t n = json_is_array(eos) ? json_array_size(eos) : eos ? 1 : 0;

	if (json_is_array(bos))
		bos = json_array_get(bos, 0);
	c->bos = json_is_integer(bos) ? (long)json_integer_value(bos) : -1;
	for (size_t i = 0; i < n && c->eos_count < EOS; i++)
		c->eos[c->eos_count++] = (long)json_integer_value(json_is_array(eos) ? json_array_get(eos, i) : eos);
	if (c->bos >= (long)c->vocab)
		die("%s: /config: bos_token_id %ld is not in the vocabulary of %zu", file, c->bos, c->vocab);
}

static void parse_biases(struct config *c, const json_t *json)
{
	bool attention = get_bool(json, "attention_bias", false), mlp = get_bool(json, "mlp_bias", false);

	memcpy(c->bias, c->arch->bias, sizeof c->bias);
	if (attention)
		c->bias[ROLE_Q] = c->bias[ROLE_K] = c->bias[ROLE_V] = c->bias[ROLE_OUTPUT] = true;
	if (mlp)
		c->bias[ROLE_GATE] = c->bias[ROLE_UP] = c->bias[ROLE_DOWN] = true;
}

static void check(const struct config *c, const json_t *json)
{
	if (!get(json, "head_dim") && c->hidden % c->heads)
		die("%s: /config: hidden size %zu is not a multiple of %zu heads", file, c->hidden, c->heads);
	if (c->heads % c->kv_heads)
		die("%s: /config: %zu attention heads are not a multiple of %zu key and value heads",
			file, c->heads, c->kv_heads);
	if (c->arch->position_kind == POSITION_ROPE && c->head_dim % 2)
		die("%s: /config: head size %zu must be even for rotary positions", file, c->head_dim);
	if (c->eps >= 1)
		die("%s: /config: a norm's epsilon of %g is absurd", file, c->eps);
}

struct config config_parse(const char *name, const char *text)
{
	enum { WIDE = 1 << 20, MANY = 1 << 16, VOCAB = 1 << 28, LONG = 1 << 28 };
	struct config c = { .rope = ROPE_DEFAULT, .factor = 1 };
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	file = name;
	if (!json)
		die("%s: /config: not JSON: line %d: %s", file, error.line, error.text);
	if (!json_is_object(json))
		die("%s: /config: not a JSON object", file);
	c.arch = find(json);
	if (!c.arch)
		unknown(json);
	c.hidden = get_size(&c, json, "hidden_size", 0, WIDE);
	c.heads = get_size(&c, json, "num_attention_heads", 0, MANY);
	c.kv_heads = get_size(&c, json, "num_key_value_heads", c.heads, MANY);
	c.head_dim = get_size(&c, json, "head_dim", c.hidden / c.heads ? c.hidden / c.heads : 1, WIDE);
	c.intermediate = get_size(&c, json, "intermediate_size", c.arch->keys ? 4 * c.hidden : 0, 4 * WIDE);
	c.blocks = get_size(&c, json, "num_hidden_layers", 0, MANY);
	c.vocab = get_size(&c, json, "vocab_size", 0, VOCAB);
	c.positions = get_size(&c, json, "max_position_embeddings", 2048, LONG);
	c.eps = get_real(json, name_of(c.arch, "rms_norm_eps"), c.arch->norm_kind == NORM_RMS ? 1e-6 : 1e-5);
	c.tied = get_bool(json, "tie_word_embeddings", c.arch->tied);
	check(&c, json);
	parse_act(&c, json);
	parse_rope(&c, json);
	parse_biases(&c, json);
	parse_ids(&c, json);
	if (c.arch->adjust)
		c.arch->adjust(&c, json);
	json_decref(json);
	return c;
}

struct config config_read(const struct image *image)
{
	char *text = image_config(image);
	struct config c;

	if (!text)
		die("%s: /config: missing; a model that is to be run needs its config.json", image_name(image));
	c = config_parse(image_name(image), text);
	free(text);
	return c;
}

void config_free(struct config *c)
{
	free(c->windowed);
	c->windowed = NULL;
}

const char *const *model_layout(const char *config)
{
	json_t *json = config ? json_loads(config, 0, NULL) : NULL;
	const struct architecture *arch = json ? find(json) : NULL;

	if (config && !json && json_loads(config, 0, NULL))	/* Jansson calls it a wrong token */
		die("/config: out of memory");
	json_decref(json);
	return arch ? arch->layout : NULL;
}

size_t config_out(const struct config *c, enum role role)
{
	size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;

	switch (role) {
	case ROLE_Q:	return q;
	case ROLE_K:
	case ROLE_V:	return kv;
	case ROLE_QKV:	return q + 2 * kv;
	case ROLE_GATE:
	case ROLE_UP:	return c->intermediate;
	default:	return c->hidden;
	}
}

size_t config_in(const struct config *c, enum site_name site)
{
	return site == SITE_OUTPUT ? c->heads * c->head_dim : site == SITE_DOWN ? c->intermediate : c->hidden;
}

size_t config_window(const struct config *c, size_t block)
{
	return !c->windowed || c->windowed[block] ? c->window : 0;
}

void config_rope(const struct config *c, double frequency[c->head_dim / 2])
{
	for (size_t i = 0; i < c->head_dim / 2; i++) {
		double f = pow(c->theta, -2.0 * (double)i / (double)c->head_dim);
		double turns = c->original * f / (2 * M_PI);	/* over the original context */

		if (c->rope == ROPE_LINEAR || (c->rope == ROPE_LLAMA3 && turns < c->low))
			f /= c->factor;
		else if (c->rope == ROPE_LLAMA3 && turns <= c->high) {
			double keep = (turns - c->low) / (c->high - c->low);

			f = (1 - keep) * f / c->factor + keep * f;
		}
		frequency[i] = f;
	}
}

char *config_path(const struct config *c, size_t block, const char *name)
{
	return xformat("%s/%zu/%s", c->arch->blocks, block, name);
}

/* The number below the group of blocks, and in *rest what follows it. */
static bool block_of(const struct config *c, const char *path, size_t *block, const char **rest)
{
	size_t n = strlen(c->arch->blocks);
	char *end;

	if (strncmp(path, c->arch->blocks, n) || path[n] != '/' || path[n + 1] < '0' || path[n + 1] > '9')
		return false;
	*block = strtoul(path + n + 1, &end, 10);
	*rest = *end == '/' ? end + 1 : end;
	return !*end || *end == '/';
}

bool config_block(const struct config *c, const char *path, size_t *block)
{
	const char *rest;

	return block_of(c, path, block, &rest);
}

bool config_find(const struct config *c, const char *path, size_t *block, size_t *row)
{
	const char *rest;

	if (!block_of(c, path, block, &rest))
		return false;
	for (*row = 0; c->arch->linear[*row].name; ++*row)
		if (!strcmp(c->arch->linear[*row].name, rest))
			return true;
	return false;
}
