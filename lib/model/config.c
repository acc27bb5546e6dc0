/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c -- config.json and the table of architectures; see config.h
 *
 * Meanings are those of transformers 5, so that a model is the same function
 * here and there: defaults of absent keys by class, model_type before
 * architectures, rope_scaling before rope_parameters; null where the class has
 * no meaning for it is an error. What changes the function and is not done here
 * is refused by its key. Rotary scaling "llama3" is Llama 3.1's (long waves divided
 * by `factor`, short ones kept, a linear blend between).
 */
#include "model/config.h"
#include "base/error.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


struct key_row {
	const char *ours, *theirs;	/* theirs NULL: the class has no such key */
	bool both;			/* ours is a name of the same, and wins */
};

#define LLAMA_TREE \
	.layout = (const char *const []){ "/model/embed_tokens", "/model/layers/#", "*", NULL }, \
	.embedding = "/model/embed_tokens", .blocks = "/model/layers", \
	.norm = { "input_layernorm", "post_attention_layernorm" }, \
	.final_norm = "/model/norm", .head = "/lm_head", \
	.norm_kind = NORM_RMS, .position_kind = POSITION_ROPE, .mlp_kind = MLP_GATED, \
	.linear = { \
		{ "self_attn/q_proj", ROLE_Q, PROJECTION_QKV }, \
		{ "self_attn/k_proj", ROLE_K, PROJECTION_QKV }, \
		{ "self_attn/v_proj", ROLE_V, PROJECTION_QKV }, \
		{ "self_attn/o_proj", ROLE_OUTPUT, PROJECTION_OUTPUT }, \
		{ "mlp/gate_proj", ROLE_GATE, PROJECTION_GATE_UP }, \
		{ "mlp/up_proj", ROLE_UP, PROJECTION_GATE_UP }, \
		{ "mlp/down_proj", ROLE_DOWN, PROJECTION_DOWN }, \
	}

#define MISTRAL \
	LLAMA_TREE, .sliding_kind = SLIDING_ALL, \
	.absent = { .vocab = 32000, .hidden = 4096, .blocks = 32, .heads = 32, .kv_heads = 8, .intermediate = 14336, \
		.positions = 131072, .bos = 1, .eos = 2 }

static const struct architecture architectures[] = {
	{ .name = "LlamaForCausalLM", .model_type = "llama", LLAMA_TREE, .bias_keys = true,
	  .absent = { .vocab = 32000, .hidden = 4096, .blocks = 32, .heads = 32, .intermediate = 11008, .positions = 2048,
		.bos = 1, .eos = 2 } },
	{ .name = "MistralForCausalLM", .model_type = "mistral", MISTRAL },
	{ .name = "MinistralForCausalLM", .model_type = "ministral", MISTRAL },	/* the same with layer_types */
	{ .name = "Qwen2ForCausalLM", .model_type = "qwen2", LLAMA_TREE, .sliding_kind = SLIDING_LATE,
	  .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true },
	  .absent = { .vocab = 151936, .hidden = 4096, .blocks = 32, .heads = 32, .kv_heads = 32, .intermediate = 22016,
		.positions = 32768, .bos = -1, .eos = -1 } },
	{ .name = "GPT2LMHeadModel", .model_type = "gpt2",
	  .layout = (const char *const []){ "/transformer/wte", "/transformer/wpe", "/transformer/h/#", "*", NULL },
	  .embedding = "/transformer/wte", .position = "/transformer/wpe", .blocks = "/transformer/h",
	  .norm = { "ln_1", "ln_2" }, .final_norm = "/transformer/ln_f", .head = "/lm_head",
	  .norm_kind = NORM_LAYER, .position_kind = POSITION_LEARNED, .mlp_kind = MLP_PLAIN,
	  .linear = {
		{ "attn/c_attn", ROLE_QKV, PROJECTION_QKV },
		{ "attn/c_proj", ROLE_OUTPUT, PROJECTION_OUTPUT },
		{ "mlp/c_fc", ROLE_UP, PROJECTION_GATE_UP },
		{ "mlp/c_proj", ROLE_DOWN, PROJECTION_DOWN },
	  },
	  .bias = { [ROLE_QKV] = true, [ROLE_OUTPUT] = true, [ROLE_UP] = true, [ROLE_DOWN] = true },
	  .absent = { .vocab = 50257, .hidden = 768, .blocks = 12, .heads = 12, .positions = 1024, .bos = 50256, .eos = 50256,
		.tied = true },
	  .keys = (const struct key_row []){ { "hidden_size", "n_embd", true }, { "num_attention_heads", "n_head", true },
		{ "num_hidden_layers", "n_layer", true }, { "max_position_embeddings", "n_positions", true },
		{ "intermediate_size", "n_inner", false }, { "rms_norm_eps", "layer_norm_epsilon", false },
		{ "hidden_act", "activation_function", false }, { "num_key_value_heads", NULL, false },
		{ "head_dim", NULL, false }, { NULL, NULL, false } } },
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };
enum { WINDOW = 4096, FIRST_WINDOWED = 28 };	/* sliding_window, max_window_layers where they are absent */

static const struct { const char *name; enum activation act; } acts[] = {
	{ "silu", ACTIVATION_SILU }, { "swish", ACTIVATION_SILU }, { "gelu", ACTIVATION_GELU }, { "gelu_python", ACTIVATION_GELU },
	{ "gelu_new", ACTIVATION_GELU_TANH }, { "gelu_pytorch_tanh", ACTIVATION_GELU_TANH }, { "gelu_fast", ACTIVATION_GELU_TANH },
	{ "gelu_python_tanh", ACTIVATION_GELU_TANH }, { "gelu_accurate", ACTIVATION_GELU_TANH },
};

/* Switches that change what the model computes. */
static const struct { const char *model_type, *key; bool supported; } switches[] = {
	{ NULL, "is_causal", true },
	{ "gpt2", "scale_attn_weights", true }, { "gpt2", "scale_attn_by_inverse_layer_idx", false },
};

/* Where messages say the trouble is; set by config_parse(). */
static _Thread_local const char *file = "?";

static json_t *get(const json_t *json, const char *key)
{
	json_t *v = json_object_get(json, key);

	return v && !json_is_null(v) ? v : NULL;
}

/* What the class calls a key, NULL if it has none of the kind. */
static const char *name_of(const struct architecture *arch, const json_t *json, const char *key)
{
	for (const struct key_row *k = arch->keys; k && k->ours; k++)
		if (!strcmp(k->ours, key))
			return k->both && json_object_get(json, key) ? key : k->theirs;
	return key;
}

/* A whole number of 1..top. absent, null: its value where the key is not there, or null; 0: that is an error. */
static size_t get_size(const struct config *c, const json_t *json, const char *key, size_t absent, size_t null, size_t top)
{
	const char *name = name_of(c->arch, json, key);
	json_t *v = name ? json_object_get(json, name) : NULL;

	if (!v && absent)
		return absent;
	if (json_is_null(v) && null)
		return null;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || (size_t)json_integer_value(v) > top)
		die("%s: /config: '%s' must be a whole number from 1 to %zu", file, name, top);
	return (size_t)json_integer_value(v);
}

static double get_real(const json_t *json, const char *key, double absent)
{
	json_t *v = json_object_get(json, key);

	if (!v && !isnan(absent))
		return absent;
	if (!json_is_number(v) || !(json_number_value(v) > 0) || isinf(json_number_value(v)))
		die("%s: /config: '%s' must be a positive number", file, key);
	return json_number_value(v);
}

static bool get_bool(const json_t *json, const char *key, bool absent)
{
	json_t *v = json_object_get(json, key);

	if (v && !json_is_boolean(v))
		die("%s: /config: '%s' must be true or false", file, key);
	return v ? json_is_true(v) : absent;
}

static const char *get_text(const json_t *json, const char *key, const char *absent)
{
	json_t *v = json_object_get(json, key);

	if (v && !json_is_string(v))
		die("%s: /config: '%s' must be a string", file, key);
	return v ? json_string_value(v) : absent;
}

static const char *model_type(const json_t *json)
{
	return json_string_value(json_object_get(json, "model_type"));
}

static const char *class_name(const json_t *json)
{
	return json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
}

/* By model_type, as AutoModelForCausalLM; only a config without one goes by the class that saved it. */
static const struct architecture *find(const json_t *json)
{
	const char *type = model_type(json), *name = class_name(json);

	for (size_t i = 0; i < ARCHITECTURES; i++) {
		const struct architecture *a = &architectures[i];

		if (type ? !strcmp(type, a->model_type) : name && !strcmp(name, a->name))
			return a;
	}
	return NULL;
}

static _Noreturn void unknown(const json_t *json)
{
	const char *type = model_type(json), *name = class_name(json);
	char known[512] = "";

	for (size_t i = 0; i < ARCHITECTURES; i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
			type ? architectures[i].model_type : architectures[i].name);
	if (!type && !name)
		die("%s: /config: names neither model_type nor architectures; known are %s", file, known);
	die("%s: /config: unknown %s '%s'; known are %s", file, type ? "model_type" : "architecture", type ? type : name,
		known);
}

static void check_switches(const struct config *c, const json_t *json)
{
	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
		if ((!switches[i].model_type || !strcmp(switches[i].model_type, c->arch->model_type)) &&
		    get_bool(json, switches[i].key, switches[i].supported) != switches[i].supported)
			die("%s: /config: '%s' is not supported other than %s", file, switches[i].key,
				switches[i].supported ? "true" : "false");
	if (json_object_size(get(json, "per_layer_config")))
		die("%s: /config: 'per_layer_config': blocks that differ in size or kind are not supported", file);
}

/* layer_types as a list of which blocks have a window, or NULL if there is none. "attention" is the older name. */
static bool *parse_types(const struct config *c, const json_t *json)
{
	const json_t *types = get(json, "layer_types");
	bool *windowed;

	if (!types)
		return NULL;
	if (json_array_size(types) != c->blocks)
		die("%s: /config: 'layer_types' must be a list of %zu kinds, one a block", file, c->blocks);
	windowed = xalloc(c->blocks, sizeof *windowed);
	for (size_t i = 0; i < c->blocks; i++) {
		const char *kind = json_string_value(json_array_get(types, i));

		windowed[i] = kind && !strcmp(kind, "sliding_attention");
		if (!kind || (!windowed[i] && strcmp(kind, "full_attention") && strcmp(kind, "attention")))
			die("%s: /config: 'layer_types': block %zu is '%s'; full_attention or sliding_attention was wanted", file, i,
				kind ? kind : "");
	}
	return windowed;
}

static void parse_windows(struct config *c, const json_t *json)
{
	enum sliding_kind kind = c->arch->sliding_kind;
	bool *windowed = parse_types(c, json);
	json_t *first = json_object_get(json, "max_window_layers");

	if (kind == SLIDING_NONE) {
		free(windowed);
		return;
	}
	if (!json_is_null(json_object_get(json, "sliding_window")) &&
	    (kind == SLIDING_ALL || get_bool(json, "use_sliding_window", false)))
		c->window = get_size(c, json, "sliding_window", WINDOW, 0, SIZE_MAX >> 1);
	if (kind == SLIDING_LATE && first && !json_is_integer(first))
		die("%s: /config: 'max_window_layers' must be a whole number", file);
	if (!windowed && kind == SLIDING_LATE && c->window) {
		windowed = xalloc(c->blocks, sizeof *windowed);
		for (size_t i = 0; i < c->blocks; i++)
			windowed[i] = (json_int_t)i >= (first ? json_integer_value(first) : FIRST_WINDOWED);
	}
	for (size_t i = 0; windowed && i < c->blocks; i++)
		if (windowed[i] && !c->window)
			die("%s: /config: 'layer_types': block %zu is 'sliding_attention', but there is no 'sliding_window'", file, i);
	c->windowed = windowed;
}

/*
 * transformers 5 keeps theta and scaling together under rope_parameters, older
 * files in rope_theta and rope_scaling. Where both are there rope_scaling wins
 * as a whole; theta beside it, or beside rope_parameters, holds if there is
 * none inside; original_max_position_embeddings beside it holds in any case.
 */
static void parse_rope(struct config *c, const json_t *json)
{
	json_t *rope = get(json, "rope_scaling"), *part, *v;
	const char *kind, *key;

	if (!rope || (json_is_object(rope) && !json_object_size(rope)))
		rope = get(json, "rope_parameters");
	if (rope && !json_is_object(rope))
		die("%s: /config: the rotary settings must be an object", file);
	json_object_foreach(rope, key, v)
		if (json_is_object(v))
			die("%s: /config: rotary settings of '%s' blocks of their own are not supported", file, key);
	c->theta = get_real(json_object_get(rope, "rope_theta") ? rope : json, "rope_theta", 10000);
	kind = get_text(rope, "rope_type", get_text(rope, "type", "default"));
	if (!strcmp(kind, "default"))
		return;
	if (!strcmp(kind, "linear"))
		c->rope = ROPE_LINEAR;
	else if (!strcmp(kind, "llama3"))
		c->rope = ROPE_LLAMA3;
	else
		die("%s: /config: rotary scaling '%s' is not supported; supported are default, linear, llama3", file, kind);
	part = json_object_get(rope, "partial_rotary_factor");
	if (!part)
		part = get(json, "partial_rotary_factor");
	if (part && json_number_value(part) != 1)	/* the default kind does not heed it */
		die("%s: /config: rotary positions on a part of the head are not supported", file);
	c->factor = get_real(rope, "factor", NAN);
	if (c->rope != ROPE_LLAMA3)
		return;
	c->low = get_real(rope, "low_freq_factor", NAN);
	c->high = get_real(rope, "high_freq_factor", NAN);
	key = "original_max_position_embeddings";
	c->original = get_real(json_object_get(json, key) ? json : rope, key, (double)c->positions);
	if (c->high <= c->low)
		die("%s: /config: high_freq_factor must be above low_freq_factor", file);
}

static void parse_act(struct config *c, const json_t *json)
{
	const char *name = get_text(json, name_of(c->arch, json, "hidden_act"),
		c->arch->mlp_kind == MLP_GATED ? "silu" : "gelu_new");
	char known[256] = "";

	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		if (!strcmp(name, acts[i].name)) {
			c->activation = acts[i].act;
			return;
		}
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", acts[i].name);
	}
	die("%s: /config: unknown activation '%s'; known are %s", file, name, known);
}

/* Outside the vocabulary it is none: so are the defaults of a class, and what it saves, in models of a small one. */
static long token_id(const struct config *c, const json_t *v, long absent)
{
	long id = json_is_integer(v) ? (long)json_integer_value(v) : v ? -1 : absent;

	return id >= 0 && (size_t)id < c->vocab ? id : -1;
}

static void parse_ids(struct config *c, const json_t *json)
{
	const json_t *bos = json_object_get(json, "bos_token_id"), *eos = json_object_get(json, "eos_token_id");
	size_t n = json_is_array(eos) ? json_array_size(eos) : 1;

	if (json_is_array(bos))
		bos = json_array_get(bos, 0);
	c->bos = token_id(c, bos, c->arch->absent.bos);
	if (n > EOS)
		die("%s: /config: 'eos_token_id' lists %zu ids, at most %d were wanted", file, n, EOS);
	for (size_t i = 0; i < n; i++) {
		long id = token_id(c, json_is_array(eos) ? json_array_get(eos, i) : eos, c->arch->absent.eos);

		if (id >= 0)
			c->eos[c->eos_count++] = id;
	}
}

static void parse_biases(struct config *c, const json_t *json)
{
	memcpy(c->bias, c->arch->bias, sizeof c->bias);
	if (!c->arch->bias_keys)
		return;
	if (get_bool(json, "attention_bias", false))
		c->bias[ROLE_Q] = c->bias[ROLE_K] = c->bias[ROLE_V] = c->bias[ROLE_OUTPUT] = true;
	if (get_bool(json, "mlp_bias", false))
		c->bias[ROLE_GATE] = c->bias[ROLE_UP] = c->bias[ROLE_DOWN] = true;
}

static void parse_sizes(struct config *c, const json_t *json)
{
	enum { WIDE = 1 << 20, MANY = 1 << 16, VOCAB = 1 << 28, LONG = 1 << 28 };
	const struct architecture *a = c->arch;
	size_t each, inner;

	c->vocab = get_size(c, json, "vocab_size", a->absent.vocab, 0, VOCAB);
	c->hidden = get_size(c, json, "hidden_size", a->absent.hidden, 0, WIDE);
	c->blocks = get_size(c, json, "num_hidden_layers", a->absent.blocks, 0, MANY);
	c->heads = get_size(c, json, "num_attention_heads", a->absent.heads, 0, MANY);
	c->kv_heads = get_size(c, json, "num_key_value_heads", a->absent.kv_heads ? a->absent.kv_heads : c->heads, c->heads, MANY);
	each = c->hidden / c->heads ? c->hidden / c->heads : 1;
	c->head_dim = get_size(c, json, "head_dim", each, each, WIDE);
	inner = a->absent.intermediate ? 0 : 4 * c->hidden;
	c->intermediate = get_size(c, json, "intermediate_size", inner ? inner : a->absent.intermediate, inner, 4 * WIDE);
	c->positions = get_size(c, json, "max_position_embeddings", a->absent.positions, 0, LONG);
	c->eps = get_real(json, name_of(a, json, "rms_norm_eps"), a->norm_kind == NORM_RMS ? 1e-6 : 1e-5);

	if ((!get(json, "head_dim") || a->position_kind == POSITION_LEARNED) && c->hidden % c->heads)
		die("%s: /config: hidden size %zu is not a multiple of %zu heads", file, c->hidden, c->heads);
	if (c->heads % c->kv_heads)
		die("%s: /config: %zu attention heads are not a multiple of %zu key and value heads",
			file, c->heads, c->kv_heads);
	if (a->position_kind == POSITION_ROPE && c->head_dim % 2)
		die("%s: /config: head size %zu must be even for rotary positions", file, c->head_dim);
	c->parallel = a->residual == RESIDUAL_PARALLEL;
	c->rotary = c->head_dim;
	c->attention_scale = 1 / sqrt((double)c->head_dim);
	if (c->eps >= 1)
		die("%s: /config: a norm's epsilon is %g, a number below 1 was wanted", file, c->eps);
}

struct config config_parse(const char *name, const char *text)
{
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
	check_switches(&c, json);
	parse_sizes(&c, json);
	c.tied = get_bool(json, "tie_word_embeddings", c.arch->absent.tied);
	c.quantized = json_object_size(get(json, "quantization_config"));
	parse_act(&c, json);
	if (c.arch->position_kind == POSITION_ROPE)
		parse_rope(&c, json);
	parse_biases(&c, json);
	parse_ids(&c, json);
	parse_windows(&c, json);
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

	if (config && !json && json_loads(config, 0, NULL))	/* it parses the second time: memory was short */
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

size_t config_in(const struct config *c, enum projection_name projection)
{
	return projection == PROJECTION_OUTPUT ? c->heads * c->head_dim : projection == PROJECTION_DOWN ? c->intermediate : c->hidden;
}

size_t config_sliding_window(const struct config *c, size_t block)
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

	if (!block_of(c, path, block, &rest) || *block >= c->blocks)
		return false;
	for (*row = 0; c->arch->linear[*row].name; ++*row)
		if (!strcmp(c->arch->linear[*row].name, rest))
			return true;
	return false;
}
