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

enum { FIRST_WINDOWED = 28 };			/* max_window_layers where it is absent */
enum { LIST = 512 };				/* bytes of names in a message */

static const struct { const char *name; enum activation act; } acts[] = {
	{ "silu", ACTIVATION_SILU }, { "swish", ACTIVATION_SILU },
	{ "gelu", ACTIVATION_GELU }, { "gelu_python", ACTIVATION_GELU }, { "gelu_new", ACTIVATION_GELU_TANH },
	{ "gelu_pytorch_tanh", ACTIVATION_GELU_TANH }, { "gelu_fast", ACTIVATION_GELU_TANH },
	{ "gelu_python_tanh", ACTIVATION_GELU_TANH }, { "gelu_accurate", ACTIVATION_GELU_TANH },
	{ "relu", ACTIVATION_RELU },
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

static const struct architecture *find(const json_t *json)
{
	return architecture_find(model_type(json), class_name(json));
}

static _Noreturn void unknown(const json_t *json)
{
	const char *type = model_type(json), *name = class_name(json);
	char known[LIST] = "";

	for (const struct architecture *a = architectures; a->name; a++)
		list_name(known, type ? a->model_type : a->name);
	if (!type && !name)
		die("%s: /config: names neither model_type nor architectures; known are %s", key_file, known);
	die("%s: /config: unknown %s '%s'; known are %s", key_file, type ? "model_type" : "architecture",
		type ? type : name, known);
}

static void check_switch(const json_t *json, const char *key, bool supported)
{
	const bool null = json_is_null(json_object_get(json, key));	/* as false is */

	if ((null ? false : key_bool(json, key, supported)) != supported)
		die("%s: /config: '%s' is not supported other than %s", key_file, key,
			supported ? "true" : "false");
}

static void check_switches(const struct config *c, const json_t *json)
{
	check_switch(json, "is_causal", true);
	for (const struct switch_row *s = c->arch->switches; s && s->key; s++)
		check_switch(json, s->key, s->supported);
	if (json_object_size(key_get(json, "per_layer_config")))
		die("%s: /config: 'per_layer_config': blocks that differ in size or kind are not supported",
			key_file);
}

/* layer_types as a list of which blocks have the window, NULL if absent. "attention" is an older name. */
static bool *parse_types(const struct stack *s, const json_t *json)
{
	const json_t *types = key_get(json, "layer_types");
	bool *slides;

	if (!types)
		return NULL;
	if (json_array_size(types) != s->blocks)
		die("%s: /config: 'layer_types' must be a list of %zu kinds, one a block", key_file,
			s->blocks);
	slides = xalloc(s->blocks, sizeof *slides);
	for (size_t i = 0; i < s->blocks; i++) {
		const char *kind = json_string_value(json_array_get(types, i));

		slides[i] = kind && !strcmp(kind, "sliding_attention");
		if (!kind || (!slides[i] && strcmp(kind, "full_attention") && strcmp(kind, "attention")))
			die("%s: /config: 'layer_types': block %zu is '%s', "
				"expected full_attention or sliding_attention", key_file, i,
				kind ? kind : "");
	}
	return slides;
}

/* Whether the class has a window at all: by its kind and the keys beside it. */
static bool has_window(const struct architecture *a, const json_t *json)
{
	const json_t *window = json_object_get(json, "sliding_window");
	const enum sliding_kind kind = a->sliding_kind;

	if (kind == SLIDING_NONE || (window ? json_is_null(window) : !a->absent.window))
		return false;
	return kind == SLIDING_WHOLE || kind == SLIDING_ALL || kind == SLIDING_PATTERN ||
		key_bool(json, "use_sliding_window", false);
}

/* The same where there is no such list and not all blocks are alike: NULL otherwise. */
static bool *place_windows(const struct stack *s, const json_t *json, json_int_t first)
{
	const struct architecture *a = s->arch;
	const enum sliding_kind kind = a->sliding_kind;
	const bool some = (kind == SLIDING_LATE || kind == SLIDING_EVEN) && s->sliding_window;
	size_t every = a->absent.pattern;
	bool *slides;

	if (!some && kind != SLIDING_PATTERN)
		return NULL;
	if (a->pattern_key)
		every = key_size(a, json, a->pattern_key, every, 0, SIZE_MAX >> 1);
	slides = xalloc(s->blocks, sizeof *slides);
	for (size_t i = 0; i < s->blocks; i++)
		slides[i] = kind == SLIDING_LATE ? (json_int_t)i >= first :
			kind == SLIDING_EVEN ? i % 2 == 0 && (json_int_t)i < first : (i + 1) % every;
	return slides;
}

static void parse_windows(struct stack *s, const json_t *json)
{
	enum sliding_kind kind = s->arch->sliding_kind;
	const json_t *first = json_object_get(json, "max_window_layers");
	const bool some = kind == SLIDING_LATE || kind == SLIDING_EVEN;
	const json_int_t from = first && json_is_integer(first) ? json_integer_value(first) : FIRST_WINDOWED;

	if (has_window(s->arch, json))
		s->sliding_window = key_size(s->arch, json, "sliding_window", s->arch->absent.window, 0,
			SIZE_MAX >> 1);
	if (some && first && !json_is_integer(first))
		die("%s: /config: 'max_window_layers' must be a whole number", key_file);
	s->slides = parse_types(s, json);
	if (kind == SLIDING_WHOLE || kind == SLIDING_SWITCHED) {
		free(s->slides);
		s->slides = NULL;
	}
	if (!s->slides)
		s->slides = place_windows(s, json, from);
	for (size_t i = 0; s->slides && kind != SLIDING_NONE && !s->sliding_window && i < s->blocks; i++)
		if (s->slides[i])
			die("%s: /config: block %zu is of kind 'sliding_attention', "
				"but there is no 'sliding_window'", key_file, i);
}

/* Experts, and which blocks have none: those that the class counts out, and those of a list. */
static void parse_experts(struct stack *s, const json_t *json)
{
	enum { WIDE = 1 << 22, MANY = 1 << 16, ALL = 1 << 18 };
	const struct architecture *a = s->arch;
	const char *normalized = key_name(a, json, "norm_topk_prob");
	const char *list = key_name(a, json, "mlp_only_layers");
	const json_t *dense = list ? key_get(json, list) : NULL;
	size_t step = 1;

	if (!a->absent.experts)
		return;
	s->experts = key_size(a, json, "num_experts", a->absent.experts, 0, MANY);
	s->chosen = key_size(a, json, "num_experts_per_tok", a->absent.chosen, 0, MANY);
	s->expert = key_size(a, json, "moe_intermediate_size", a->absent.expert, 0, WIDE);
	if (a->absent.shared)
		s->shared = key_size(a, json, "shared_expert_intermediate_size", a->absent.shared, 0, WIDE);
	s->normalized = normalized ? key_bool(json, normalized, a->absent.normalized) : a->absent.normalized;
	if (s->experts > ALL / s->blocks)
		die("%s: /config: %zu blocks of %zu experts are too many, expected at most %d experts in all",
			key_file, s->blocks, s->experts, ALL);
	if (s->chosen > s->experts)
		die("%s: /config: 'num_experts_per_tok' is %zu, there are only %zu experts", key_file,
			s->chosen, s->experts);
	if (key_name(a, json, "decoder_sparse_step"))
		step = key_size(a, json, "decoder_sparse_step", 1, 0, MANY);
	if (dense && !json_is_array(dense))
		die("%s: /config: '%s' must be a list of blocks", key_file, list);
	s->dense = xalloc(s->blocks, sizeof *s->dense);
	for (size_t i = 0; i < s->blocks; i++)
		s->dense[i] = (i + 1) % step != 0;
	for (size_t i = 0; i < json_array_size(dense); i++) {
		const json_t *block = json_array_get(dense, i);
		const json_int_t n = json_integer_value(block);

		if (!json_is_integer(block))
			die("%s: /config: '%s' must hold whole numbers", key_file, list);
		if (n >= 0 && (size_t)n < s->blocks)
			s->dense[n] = true;
	}
}

/* A soft-cap; null: none. */
static double parse_cap(const json_t *json, const char *key, double absent)
{
	return !key || json_is_null(json_object_get(json, key)) ? 0 : key_real(json, key, absent);
}

static void parse_act(struct stack *s, const json_t *json)
{
	const char *name = key_text(json, key_name(s->arch, json, "hidden_act"), s->arch->absent.act);
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
	die("%s: /config: unknown activation '%s'; known are %s", key_file, name, known);
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
		die("%s: /config: 'eos_token_id' lists %zu ids, expected at most %d", key_file, n, EOS);
	for (size_t i = 0; i < n; i++) {
		long id = token_id(c, json_is_array(eos) ? json_array_get(eos, i) : eos, c->arch->absent.eos);

		if (id >= 0)
			c->eos[c->eos_count++] = id;
	}
}

/* Which layers have a bias, and how the branches of a block join the residual stream. */
static void parse_block(struct stack *s, const json_t *json)
{
	const struct architecture *a = s->arch;

	for (int i = 0; i < ROLES; i++)
		s->bias[i] = a->bias_key[i] ? key_bool(json, a->bias_key[i], a->bias[i]) : a->bias[i];
	s->norms_last = a->before_key && !key_bool(json, a->before_key, true);
	s->attention_cap = parse_cap(json, a->attention_cap_key, a->absent.attention_cap);
	s->parallel = a->parallel_key ? key_bool(json, a->parallel_key, a->parallel) : a->parallel;
}

/* Embeddings of another width than the residual stream: a projection behind them, and one before the head. */
static void check_width(const struct stack *s, const json_t *json)
{
	const char *key = s->arch->width_key;
	size_t width = key ? key_size(s->arch, json, key, s->hidden, s->hidden, SIZE_MAX >> 1) : s->hidden;

	if (width != s->hidden)
		die("%s: /config: '%s' is %zu, the hidden size %zu: embeddings of another width, "
			"with their projections, are not supported", key_file, key, width, s->hidden);
}

/* hidden / heads where neither config.json nor the class says it. */
static void parse_head_dim(struct stack *s, const json_t *json)
{
	enum { WIDE = 1 << 20 };
	const char *name = key_name(s->arch, json, "head_dim");
	size_t absent = s->arch->absent.head_dim, each = s->hidden / s->heads ? s->hidden / s->heads : 1;

	s->head_dim = key_size(s->arch, json, "head_dim", absent ? absent : each, absent ? 0 : each, WIDE);
	if (!absent && !(name && key_get(json, name)) && s->hidden % s->heads)
		die("%s: /config: hidden size %zu is not a multiple of %zu heads", key_file, s->hidden,
			s->heads);
	s->attention_scale = 1 / sqrt(s->arch->scale_key ?
		key_real(json, s->arch->scale_key, s->arch->absent.scale) : (double)s->head_dim);
}

static void parse_sizes(struct stack *s, const json_t *json)
{
	enum { WIDE = 1 << 20, MANY = 1 << 16 };
	const struct architecture *a = s->arch;
	size_t kv_heads, inner, null;

	s->hidden = key_size(a, json, "hidden_size", a->absent.hidden, 0, WIDE);
	s->blocks = key_size(a, json, "num_hidden_layers", a->absent.blocks, 0, MANY);
	s->heads = key_size(a, json, "num_attention_heads", a->absent.heads, 0, MANY);
	kv_heads = a->absent.kv_heads ? a->absent.kv_heads : s->heads;
	s->kv_heads = key_size(a, json, "num_key_value_heads", kv_heads, s->heads, MANY);
	check_width(s, json);
	parse_head_dim(s, json);
	null = a->absent.intermediate ? 0 : 4 * s->hidden;
	inner = null ? null : a->absent.intermediate;
	s->intermediate = key_size(a, json, "intermediate_size", inner, null, 4 * WIDE);
	s->eps = key_real(json, key_name(a, json, "rms_norm_eps"), a->absent.eps);
	if (s->heads % s->kv_heads)
		die("%s: /config: %zu attention heads are not a multiple of %zu key and value heads",
			key_file, s->heads, s->kv_heads);
	if (s->eps >= 1)
		die("%s: /config: a norm's epsilon is %g, expected a number below 1", key_file, s->eps);
}

struct config config_parse(const char *name, const char *text)
{
	enum { VOCAB = 1 << 28, LONG = 1 << 28 };
	struct config c = { .stacks = 1 };
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	key_file = name;
	if (!json)
		die("%s: /config: not JSON: line %d: %s", key_file, error.line, error.text);
	if (!json_is_object(json))
		die("%s: /config: not a JSON object", key_file);
	c.arch = find(json);
	if (!c.arch)
		unknown(json);
	check_switches(&c, json);
	c.vocab = key_size(c.arch, json, "vocab_size", c.arch->absent.vocab, 0, VOCAB);
	c.positions = key_size(c.arch, json, "max_position_embeddings", c.arch->absent.positions, 0, LONG);
	for (struct stack *s = c.stack; s < c.stack + c.stacks; s++) {
		*s = (struct stack){ .arch = c.arch, .first = c.blocks };
		parse_sizes(s, json);
		parse_act(s, json);
		if (!s->arch->position)
			rope_parse(s, json, c.positions);
		parse_block(s, json);
		parse_windows(s, json);
		parse_experts(s, json);
		c.blocks += s->blocks;
	}
	c.embedding_scale = c.arch->embedding_scaled ? sqrt((double)c.stack->hidden) : 1;
	c.logit_cap = parse_cap(json, c.arch->logit_cap_key, c.arch->absent.logit_cap);
	c.tied = key_bool(json, "tie_word_embeddings", c.arch->absent.tied);
	c.quantized = json_object_size(key_get(json, "quantization_config"));
	parse_ids(&c, json);
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
	for (struct stack *s = c->stack; s < c->stack + c->stacks; s++) {
		free(s->slides);
		free(s->dense);
		s->slides = s->dense = NULL;
		rope_settings_free(s);
	}
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

bool stack_sparse(const struct stack *s, size_t block)
{
	return s->experts && !s->dense[block];
}

bool stack_has(const struct stack *s, size_t block, const struct linear_row *row)
{
	if (row->projection < PROJECTION_GATE_UP)
		return true;
	return (row->projection >= PROJECTION_ROUTER) == stack_sparse(s, block);
}

size_t stack_copies(const struct stack *s, const struct linear_row *row)
{
	return row->projection >= PROJECTION_EXPERT_GATE_UP ? s->experts : 1;
}

bool role_is_kept(enum role role)
{
	return role == ROLE_ROUTER || role == ROLE_SHARED_SWITCH;
}

size_t stack_out(const struct stack *s, enum role role)
{
	size_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;

	switch (role) {
	case ROLE_Q:	return q;
	case ROLE_K:
	case ROLE_V:	return kv;
	case ROLE_QKV:	return q + 2 * kv;
	case ROLE_GATE:
	case ROLE_UP:	return s->intermediate;
	case ROLE_SHARED_GATE:
	case ROLE_SHARED_UP:	return s->shared;
	case ROLE_EXPERT_GATE:
	case ROLE_EXPERT_UP:	return s->expert;
	case ROLE_ROUTER:	return s->experts;
	case ROLE_SHARED_SWITCH: return 1;
	default:	return s->hidden;
	}
}

size_t stack_in(const struct stack *s, enum projection_name projection)
{
	switch (projection) {
	case PROJECTION_OUTPUT:	return s->heads * s->head_dim;
	case PROJECTION_DOWN:	return s->intermediate;
	case PROJECTION_SHARED_DOWN: return s->shared;
	case PROJECTION_EXPERT_DOWN: return s->expert;
	default:		return s->hidden;
	}
}

size_t stack_width(const struct stack *s, enum projection_name projection)
{
	size_t n = 0;

	for (const struct linear_row *row = s->arch->linear; row->name; row++)
		if (row->projection == projection)
			n += stack_out(s, row->role);
	return n;
}

size_t stack_window(const struct stack *s, size_t block)
{
	return !s->slides || s->slides[block] ? s->sliding_window : 0;
}

const char *stack_final_norm(const struct stack *s)
{
	return s->norms_last ? NULL : s->arch->final_norm;
}

enum rope_blocks stack_rope(const struct stack *s, size_t block)
{
	return s->arch->local_theta_key && s->slides[block] ? ROPE_SLIDING : ROPE_FULL;
}

struct row_place stack_rows(const struct stack *s, const struct linear_row *row)
{
	size_t groups = row->order == ROWS_INTERLEAVED ? s->kv_heads : 1;
	size_t each = stack_out(s, row->role) / groups;
	struct row_place p = { .groups = groups, .each = each, .rows = each * groups };

	for (const struct linear_row *l = s->arch->linear; row->fused && l->name; l++) {
		if (l == row || !l->fused || strcmp(l->fused, row->fused))
			continue;
		p.rows += stack_out(s, l->role);
		if (l < row)
			p.before += stack_out(s, l->role) / groups;
	}
	return p;
}

const char *config_end(const struct config *c)
{
	const char *norm = stack_final_norm(config_last(c));

	return norm ? norm : c->arch->head;
}
