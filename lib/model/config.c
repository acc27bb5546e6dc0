/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c -- reads config.json; see config.h
 *
 * Meanings are those of transformers 5, so that a model is the same function
 * here and there: defaults of absent keys by class, model_type before
 * architectures, rope_scaling before rope_parameters; null where the class has
 * no meaning for it is an error. What changes the function and is not done here
 * is refused by its key. Rotary scaling "llama3" is Llama 3.1's (long waves divided
 * by `factor`, short ones kept, a linear blend between).
 */
#include "model/config.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"


enum { WINDOW = 4096, FIRST_WINDOWED = 28 };	/* sliding_window, max_window_layers where they are absent */

static const struct { const char *name; enum activation act; } acts[] = {
	{ "silu", ACTIVATION_SILU }, { "swish", ACTIVATION_SILU },
	{ "gelu", ACTIVATION_GELU }, { "gelu_python", ACTIVATION_GELU }, { "gelu_new", ACTIVATION_GELU_TANH },
	{ "gelu_pytorch_tanh", ACTIVATION_GELU_TANH }, { "gelu_fast", ACTIVATION_GELU_TANH },
	{ "gelu_python_tanh", ACTIVATION_GELU_TANH }, { "gelu_accurate", ACTIVATION_GELU_TANH },
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

/* A whole number of 1..top. absent, null: its value where the key is not there, or null; 0: an error. */
static size_t get_size(const struct config *c, const json_t *json, const char *key, size_t absent,
	size_t null, size_t top)
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

static const struct architecture *find(const json_t *json)
{
	return architecture_find(model_type(json), class_name(json));
}

static _Noreturn void unknown(const json_t *json)
{
	const char *type = model_type(json), *name = class_name(json);
	char known[512] = "";

	for (const struct architecture *a = architectures; a->name; a++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", type ? a->model_type : a->name);
	}
	if (!type && !name)
		die("%s: /config: names neither model_type nor architectures; known are %s", file, known);
	die("%s: /config: unknown %s '%s'; known are %s", file, type ? "model_type" : "architecture",
		type ? type : name, known);
}

static void check_switch(const json_t *json, const char *key, bool supported)
{
	if (get_bool(json, key, supported) != supported)
		die("%s: /config: '%s' is not supported other than %s", file, key,
			supported ? "true" : "false");
}

static void check_switches(const struct config *c, const json_t *json)
{
	check_switch(json, "is_causal", true);
	for (const struct switch_row *s = c->arch->switches; s && s->key; s++)
		check_switch(json, s->key, s->supported);
	if (json_object_size(get(json, "per_layer_config")))
		die("%s: /config: 'per_layer_config': blocks that differ in size or kind are not supported",
			file);
}

/* layer_types as a list of which blocks have a window, NULL if absent. "attention" is an older name. */
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
			die("%s: /config: 'layer_types': block %zu is '%s', "
				"expected full_attention or sliding_attention", file, i, kind ? kind : "");
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
			die("%s: /config: 'layer_types': block %zu is 'sliding_attention', "
				"but there is no 'sliding_window'", file, i);
	c->windowed = windowed;
}

/*
 * Channels of a head that are turned. A class without a key for them turns all: it does not heed
 * partial_rotary_factor under the default kind, and fails with it under the others.
 */
static void parse_rotary(struct config *c, const json_t *json, const json_t *rope)
{
	const char *key = "partial_rotary_factor", *name = name_of(c->arch, json, key);
	const json_t *inside = json_object_get(rope, key), *v = inside ? inside : get(json, key);
	double part = 1;

	if (c->arch->absent.rotary)
		part = get_real(inside ? rope : json, inside ? key : name, c->arch->absent.rotary);
	else if (c->rope != ROPE_DEFAULT && v && json_number_value(v) != 1)
		die("%s: /config: a %s does not have rotary positions on a part of the head", file,
			c->arch->name);
	c->rotary = (size_t)((double)c->head_dim * part);
	if (part > 1 || !c->rotary || c->rotary % 2)
		die("%s: /config: positions turn %g of %zu channels of a head, expected an even number",
			file, part * (double)c->head_dim, c->head_dim);
}

/*
 * transformers 5 keeps theta and scaling together under rope_parameters, older
 * files in rope_theta and rope_scaling. Where both are there rope_scaling wins
 * as a whole; theta beside it, or beside rope_parameters, holds if there is
 * none inside; original_max_position_embeddings beside it holds in any case.
 */
static void parse_rope(struct config *c, const json_t *json)
{
	json_t *rope = get(json, "rope_scaling"), *v;
	const char *kind, *key = "rope_theta";

	if (!rope || (json_is_object(rope) && !json_object_size(rope)))
		rope = get(json, "rope_parameters");
	if (rope && !json_is_object(rope))
		die("%s: /config: the rotary settings must be an object", file);
	v = json_object_get(rope, key);
	c->theta = get_real(v ? rope : json, v ? key : name_of(c->arch, json, key), 10000);
	json_object_foreach(rope, key, v)
		if (json_is_object(v))
			die("%s: /config: rotary settings of '%s' alone are not supported", file, key);
	kind = get_text(rope, "rope_type", get_text(rope, "type", "default"));
	if (!strcmp(kind, "linear"))
		c->rope = ROPE_LINEAR;
	else if (!strcmp(kind, "llama3"))
		c->rope = ROPE_LLAMA3;
	else if (strcmp(kind, "default"))
		die("%s: /config: rotary scaling '%s' is not supported, expected default, linear or llama3",
			file, kind);
	parse_rotary(c, json, rope);
	if (c->rope != ROPE_DEFAULT)
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
	const char *name = get_text(json, name_of(c->arch, json, "hidden_act"), c->arch->absent.act);
	char known[256] = "";

	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		size_t n = strlen(known);

		if (!strcmp(name, acts[i].name)) {
			c->activation = acts[i].act;
			return;
		}
		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", acts[i].name);
	}
	die("%s: /config: unknown activation '%s'; known are %s", file, name, known);
}

/* Outside the vocabulary it is none: models of a small one are saved with the ids of their class. */
static long token_id(const struct config *c, const json_t *v, long absent)
{
	long id = json_is_integer(v) ? (long)json_integer_value(v) : v ? -1 : absent;

	return id >= 0 && (size_t)id < c->vocab ? id : -1;
}

static void parse_ids(struct config *c, const json_t *json)
{
	const json_t *bos = json_object_get(json, "bos_token_id");
	const json_t *eos = json_object_get(json, "eos_token_id");
	size_t n = json_is_array(eos) ? json_array_size(eos) : 1;

	if (json_is_array(bos))
		bos = json_array_get(bos, 0);
	c->bos = token_id(c, bos, c->arch->absent.bos);
	if (n > EOS)
		die("%s: /config: 'eos_token_id' lists %zu ids, expected at most %d", file, n, EOS);
	for (size_t i = 0; i < n; i++) {
		long id = token_id(c, json_is_array(eos) ? json_array_get(eos, i) : eos, c->arch->absent.eos);

		if (id >= 0)
			c->eos[c->eos_count++] = id;
	}
}

/* Which layers have a bias, and how the branches of a block join the residual stream. */
static void parse_block(struct config *c, const json_t *json)
{
	const struct architecture *a = c->arch;

	for (int i = 0; i < ROLES; i++)
		c->bias[i] = a->bias_key[i] ? get_bool(json, a->bias_key[i], a->bias[i]) : a->bias[i];
	c->parallel = a->residual == RESIDUAL_PARALLEL;
	if (a->parallel_key)
		c->parallel = get_bool(json, a->parallel_key, c->parallel);
}

/* hidden / heads where neither config.json nor the class says it. */
static void parse_head_dim(struct config *c, const json_t *json)
{
	enum { WIDE = 1 << 20 };
	const char *name = name_of(c->arch, json, "head_dim");
	size_t absent = c->arch->absent.head_dim, each = c->hidden / c->heads ? c->hidden / c->heads : 1;

	c->head_dim = get_size(c, json, "head_dim", absent ? absent : each, absent ? 0 : each, WIDE);
	if (!absent && !(name && get(json, name)) && c->hidden % c->heads)
		die("%s: /config: hidden size %zu is not a multiple of %zu heads", file, c->hidden, c->heads);
	c->attention_scale = 1 / sqrt((double)c->head_dim);
}

static void parse_sizes(struct config *c, const json_t *json)
{
	enum { WIDE = 1 << 20, MANY = 1 << 16, VOCAB = 1 << 28, LONG = 1 << 28 };
	const struct architecture *a = c->arch;
	size_t kv_heads, inner, null;

	c->vocab = get_size(c, json, "vocab_size", a->absent.vocab, 0, VOCAB);
	c->hidden = get_size(c, json, "hidden_size", a->absent.hidden, 0, WIDE);
	c->blocks = get_size(c, json, "num_hidden_layers", a->absent.blocks, 0, MANY);
	c->heads = get_size(c, json, "num_attention_heads", a->absent.heads, 0, MANY);
	kv_heads = a->absent.kv_heads ? a->absent.kv_heads : c->heads;
	c->kv_heads = get_size(c, json, "num_key_value_heads", kv_heads, c->heads, MANY);
	parse_head_dim(c, json);
	null = a->absent.intermediate ? 0 : 4 * c->hidden;
	inner = null ? null : a->absent.intermediate;
	c->intermediate = get_size(c, json, "intermediate_size", inner, null, 4 * WIDE);
	c->positions = get_size(c, json, "max_position_embeddings", a->absent.positions, 0, LONG);
	c->eps = get_real(json, name_of(a, json, "rms_norm_eps"), a->absent.eps);
	if (c->heads % c->kv_heads)
		die("%s: /config: %zu attention heads are not a multiple of %zu key and value heads",
			file, c->heads, c->kv_heads);
	if (c->eps >= 1)
		die("%s: /config: a norm's epsilon is %g, expected a number below 1", file, c->eps);
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
	parse_block(&c, json);
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
		die("%s: /config: is missing; a model needs its config.json to be run", image_name(image));
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

	if (config && !json && json_loads(config, 0, NULL))	/* it parses now: memory was short */
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
	switch (projection) {
	case PROJECTION_OUTPUT:	return c->heads * c->head_dim;
	case PROJECTION_DOWN:	return c->intermediate;
	default:		return c->hidden;
	}
}

size_t config_sliding_window(const struct config *c, size_t block)
{
	return !c->windowed || c->windowed[block] ? c->window : 0;
}

void config_rope(const struct config *c, double frequency[c->rotary / 2])
{
	for (size_t i = 0; i < c->rotary / 2; i++) {
		double f = pow(c->theta, -2.0 * (double)i / (double)c->rotary);
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

struct row_place config_rows(const struct config *c, const struct linear_row *row)
{
	size_t groups = row->order == ROWS_INTERLEAVED ? c->kv_heads : 1;
	size_t each = config_out(c, row->role) / groups;
	struct row_place p = { .groups = groups, .each = each, .rows = each * groups };

	for (const struct linear_row *l = c->arch->linear; row->fused && l->name; l++) {
		if (l == row || !l->fused || strcmp(l->fused, row->fused))
			continue;
		p.rows += config_out(c, l->role);
		if (l < row)
			p.before += config_out(c, l->role) / groups;
	}
	return p;
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
