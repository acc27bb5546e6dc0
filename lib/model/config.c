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
enum { LIST = 512 };				/* bytes of names in a message */

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
		if (!strcmp(k->ours, key)) {
			const bool theirs = k->theirs && json_object_get(json, k->theirs);
			const bool ours = k->both && json_object_get(json, key);

			return ours && !(k->both == THEIRS_FIRST && theirs) ? key : k->theirs;
		}
	return key;
}

/* A whole number of 1..top. absent, null: its value where the key is not there, or null; 0: an error. */
static size_t get_size(const struct architecture *arch, const json_t *json, const char *key, size_t absent,
	size_t null, size_t top)
{
	const char *name = name_of(arch, json, key);
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

/* layer_types as a list of which blocks have the window, NULL if absent. "attention" is an older name. */
static bool *parse_types(const struct stack *s, const json_t *json)
{
	const json_t *types = get(json, "layer_types");
	bool *slides;

	if (!types)
		return NULL;
	if (json_array_size(types) != s->blocks)
		die("%s: /config: 'layer_types' must be a list of %zu kinds, one a block", file, s->blocks);
	slides = xalloc(s->blocks, sizeof *slides);
	for (size_t i = 0; i < s->blocks; i++) {
		const char *kind = json_string_value(json_array_get(types, i));

		slides[i] = kind && !strcmp(kind, "sliding_attention");
		if (!kind || (!slides[i] && strcmp(kind, "full_attention") && strcmp(kind, "attention")))
			die("%s: /config: 'layer_types': block %zu is '%s', "
				"expected full_attention or sliding_attention", file, i, kind ? kind : "");
		if (slides[i] && s->arch->sliding_kind != SLIDING_NONE && !s->sliding_window)
			die("%s: /config: 'layer_types': block %zu is 'sliding_attention', "
				"but there is no 'sliding_window'", file, i);
	}
	return slides;
}

/* Whether the class has a window at all: by its kind and the keys beside it. */
static bool has_window(enum sliding_kind kind, const json_t *json)
{
	const json_t *window = json_object_get(json, "sliding_window");

	switch (kind) {
	case SLIDING_NONE:	return false;
	case SLIDING_ALL:	return !json_is_null(window);
	case SLIDING_GIVEN:	return window && !json_is_null(window);
	default:		return !json_is_null(window) && get_bool(json, "use_sliding_window", false);
	}
}

static void parse_windows(struct stack *s, const json_t *json)
{
	enum sliding_kind kind = s->arch->sliding_kind;
	const json_t *first = json_object_get(json, "max_window_layers");
	const bool some = kind == SLIDING_LATE || kind == SLIDING_EVEN;
	const json_int_t from = first && json_is_integer(first) ? json_integer_value(first) : FIRST_WINDOWED;

	if (has_window(kind, json))
		s->sliding_window = get_size(s->arch, json, "sliding_window", WINDOW, 0, SIZE_MAX >> 1);
	if (some && first && !json_is_integer(first))
		die("%s: /config: 'max_window_layers' must be a whole number", file);
	if (kind != SLIDING_GIVEN && kind != SLIDING_SWITCHED)
		s->slides = parse_types(s, json);
	if (s->slides || !some || !s->sliding_window)
		return;
	s->slides = xalloc(s->blocks, sizeof *s->slides);
	for (size_t i = 0; i < s->blocks; i++)
		s->slides[i] = kind == SLIDING_LATE ? (json_int_t)i >= from :
			i % 2 == 0 && (json_int_t)i < from;
}

/* Experts, and which blocks have none: those that the class counts out, and those of a list. */
static void parse_experts(struct stack *s, const json_t *json)
{
	enum { WIDE = 1 << 22, MANY = 1 << 16, ALL = 1 << 18 };
	const struct architecture *a = s->arch;
	const char *normalized = name_of(a, json, "norm_topk_prob");
	const char *list = name_of(a, json, "mlp_only_layers");
	const json_t *dense = list ? get(json, list) : NULL;
	size_t step = 1;

	if (!a->absent.experts)
		return;
	s->experts = get_size(a, json, "num_experts", a->absent.experts, 0, MANY);
	s->chosen = get_size(a, json, "num_experts_per_tok", a->absent.chosen, 0, MANY);
	s->expert = get_size(a, json, "moe_intermediate_size", a->absent.expert, 0, WIDE);
	if (a->absent.shared)
		s->shared = get_size(a, json, "shared_expert_intermediate_size", a->absent.shared, 0, WIDE);
	s->normalized = normalized ? get_bool(json, normalized, a->absent.normalized) : a->absent.normalized;
	if (s->experts > ALL / s->blocks)
		die("%s: /config: %zu blocks of %zu experts are too many, expected at most %d experts in all",
			file, s->blocks, s->experts, ALL);
	if (s->chosen > s->experts)
		die("%s: /config: 'num_experts_per_tok' is %zu, there are only %zu experts", file, s->chosen,
			s->experts);
	if (name_of(a, json, "decoder_sparse_step"))
		step = get_size(a, json, "decoder_sparse_step", 1, 0, MANY);
	if (dense && !json_is_array(dense))
		die("%s: /config: '%s' must be a list of blocks", file, list);
	s->dense = xalloc(s->blocks, sizeof *s->dense);
	for (size_t i = 0; i < s->blocks; i++)
		s->dense[i] = (i + 1) % step != 0;
	for (size_t i = 0; i < json_array_size(dense); i++) {
		const json_t *block = json_array_get(dense, i);
		const json_int_t n = json_integer_value(block);

		if (!json_is_integer(block))
			die("%s: /config: '%s' must hold whole numbers", file, list);
		if (n >= 0 && (size_t)n < s->blocks)
			s->dense[n] = true;
	}
}

/*
 * Channels of a head that are rotated. A class without a key for them rotates all: it does not heed
 * partial_rotary_factor under the default kind, and fails with it under the others.
 */
static void parse_rotary(struct stack *s, const json_t *json, const json_t *rope)
{
	const char *key = "partial_rotary_factor", *name = name_of(s->arch, json, key);
	const json_t *inside = json_object_get(rope, key), *v = inside ? inside : get(json, key);
	double part = 1;

	if (s->arch->absent.rotary)
		part = get_real(inside ? rope : json, inside ? key : name, s->arch->absent.rotary);
	else if (s->rope != ROPE_DEFAULT && v && json_number_value(v) != 1)
		die("%s: /config: a %s does not have rotary positions on a part of the head", file,
			s->arch->name);
	s->rotary = (size_t)((double)s->head_dim * part);
	if (part > 1 || !s->rotary || s->rotary % 2)
		die("%s: /config: positions turn %g of %zu channels of a head, expected an even number",
			file, part * (double)s->head_dim, s->head_dim);
}

/*
 * transformers 5 keeps theta and scaling together under rope_parameters, older
 * files in rope_theta and rope_scaling. Where both are there rope_scaling wins
 * as a whole; theta beside it, or beside rope_parameters, holds if there is
 * none inside; original_max_position_embeddings beside it holds in any case.
 */
static void parse_rope(struct stack *s, const json_t *json, size_t positions)
{
	json_t *rope = get(json, "rope_scaling"), *v;
	const char *kind, *key = "rope_theta";

	if (!rope || (json_is_object(rope) && !json_object_size(rope)))
		rope = get(json, "rope_parameters");
	if (rope && !json_is_object(rope))
		die("%s: /config: the rotary settings must be an object", file);
	v = json_object_get(rope, key);
	s->theta = get_real(v ? rope : json, v ? key : name_of(s->arch, json, key),
		s->arch->absent.theta > 0 ? s->arch->absent.theta : 10000);
	json_object_foreach(rope, key, v)
		if (json_is_object(v))
			die("%s: /config: rotary settings of '%s' alone are not supported", file, key);
	kind = get_text(rope, "rope_type", get_text(rope, "type", "default"));
	if (!strcmp(kind, "linear"))
		s->rope = ROPE_LINEAR;
	else if (!strcmp(kind, "llama3"))
		s->rope = ROPE_LLAMA3;
	else if (strcmp(kind, "default"))
		die("%s: /config: rotary scaling '%s' is not supported, expected default, linear or llama3",
			file, kind);
	parse_rotary(s, json, rope);
	if (s->rope != ROPE_DEFAULT)
		s->factor = get_real(rope, "factor", NAN);
	if (s->rope != ROPE_LLAMA3)
		return;
	s->low = get_real(rope, "low_freq_factor", NAN);
	s->high = get_real(rope, "high_freq_factor", NAN);
	key = "original_max_position_embeddings";
	s->original = get_real(json_object_get(json, key) ? json : rope, key, (double)positions);
	if (s->high <= s->low)
		die("%s: /config: high_freq_factor must be above low_freq_factor", file);
}

static void parse_act(struct stack *s, const json_t *json)
{
	const char *name = get_text(json, name_of(s->arch, json, "hidden_act"), s->arch->absent.act);
	char known[LIST] = "";

	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		list_name(known, acts[i].name);
		if (!strcmp(name, acts[i].name)) {
			s->activation = acts[i].act;
			return;
		}
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
static void parse_block(struct stack *s, const json_t *json)
{
	const struct architecture *a = s->arch;

	for (int i = 0; i < ROLES; i++)
		s->bias[i] = a->bias_key[i] ? get_bool(json, a->bias_key[i], a->bias[i]) : a->bias[i];
	s->parallel = a->parallel_key ? get_bool(json, a->parallel_key, a->parallel) : a->parallel;
}

/* hidden / heads where neither config.json nor the class says it. */
static void parse_head_dim(struct stack *s, const json_t *json)
{
	enum { WIDE = 1 << 20 };
	const char *name = name_of(s->arch, json, "head_dim");
	size_t absent = s->arch->absent.head_dim, each = s->hidden / s->heads ? s->hidden / s->heads : 1;

	s->head_dim = get_size(s->arch, json, "head_dim", absent ? absent : each, absent ? 0 : each, WIDE);
	if (!absent && !(name && get(json, name)) && s->hidden % s->heads)
		die("%s: /config: hidden size %zu is not a multiple of %zu heads", file, s->hidden, s->heads);
	s->attention_scale = 1 / sqrt((double)s->head_dim);
}

static void parse_sizes(struct stack *s, const json_t *json)
{
	enum { WIDE = 1 << 20, MANY = 1 << 16 };
	const struct architecture *a = s->arch;
	size_t kv_heads, inner, null;

	s->hidden = get_size(a, json, "hidden_size", a->absent.hidden, 0, WIDE);
	s->blocks = get_size(a, json, "num_hidden_layers", a->absent.blocks, 0, MANY);
	s->heads = get_size(a, json, "num_attention_heads", a->absent.heads, 0, MANY);
	kv_heads = a->absent.kv_heads ? a->absent.kv_heads : s->heads;
	s->kv_heads = get_size(a, json, "num_key_value_heads", kv_heads, s->heads, MANY);
	parse_head_dim(s, json);
	null = a->absent.intermediate ? 0 : 4 * s->hidden;
	inner = null ? null : a->absent.intermediate;
	s->intermediate = get_size(a, json, "intermediate_size", inner, null, 4 * WIDE);
	s->eps = get_real(json, name_of(a, json, "rms_norm_eps"), a->absent.eps);
	if (s->heads % s->kv_heads)
		die("%s: /config: %zu attention heads are not a multiple of %zu key and value heads",
			file, s->heads, s->kv_heads);
	if (s->eps >= 1)
		die("%s: /config: a norm's epsilon is %g, expected a number below 1", file, s->eps);
}

struct config config_parse(const char *name, const char *text)
{
	enum { VOCAB = 1 << 28, LONG = 1 << 28 };
	struct config c = { .stacks = 1 };
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
	c.vocab = get_size(c.arch, json, "vocab_size", c.arch->absent.vocab, 0, VOCAB);
	c.positions = get_size(c.arch, json, "max_position_embeddings", c.arch->absent.positions, 0, LONG);
	for (struct stack *s = c.stack; s < c.stack + c.stacks; s++) {
		*s = (struct stack){ .arch = c.arch, .first = c.blocks, .rope = ROPE_DEFAULT, .factor = 1 };
		parse_sizes(s, json);
		parse_act(s, json);
		if (!s->arch->position)
			parse_rope(s, json, c.positions);
		parse_block(s, json);
		parse_windows(s, json);
		parse_experts(s, json);
		c.blocks += s->blocks;
	}
	c.tied = get_bool(json, "tie_word_embeddings", c.arch->absent.tied);
	c.quantized = json_object_size(get(json, "quantization_config"));
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

void stack_rope(const struct stack *s, double frequency[s->rotary / 2])
{
	for (size_t i = 0; i < s->rotary / 2; i++) {
		double f = pow(s->theta, -2.0 * (double)i / (double)s->rotary);
		double turns = s->original * f / (2 * M_PI);	/* over the original context */

		if (s->rope == ROPE_LINEAR || (s->rope == ROPE_LLAMA3 && turns < s->low))
			f /= s->factor;
		else if (s->rope == ROPE_LLAMA3 && turns <= s->high) {
			double keep = (turns - s->low) / (s->high - s->low);

			f = (1 - keep) * f / s->factor + keep * f;
		}
		frequency[i] = f;
	}
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
