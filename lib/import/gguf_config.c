/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_config.c -- see gguf_config_private.h */
#include "import/gguf_config_private.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"

enum { LIST = 512, WIDE = 1 << 20 };

/* What is being made, and of what. */
struct making { const struct gguf *g; const char *path; const struct gguf_row *row; json_t *config; };

static void put_config_key(const struct making *m, const char *key, json_t *v)
{
	if (json_object_set_new(m->config, key, v))
		die("%s: out of memory", m->path);
}

static void put_size(const struct making *m, const char *key, size_t n)
{
	put_config_key(m, key, json_integer((json_int_t)n));
}

/* "ARCHITECTURE.key" */
static char *full(const struct making *m, const char *key)
{
	return xformat("%s.%s", m->row->name, key);
}

static _Noreturn void missing(const struct making *m, const char *key)
{
	die("%s: %s.%s: is missing, expected in the metadata of every such file", m->path, m->row->name, key);
}

/* A whole number that is not negative; false: there is none. */
static bool size_of(const struct making *m, const char *key, size_t *n)
{
	char *name = full(m, key);
	int64_t v;
	bool there = gguf_integer(m->g, name, &v);

	if (there && v < 0)
		die("%s: %s: is %jd, expected no negative number", m->path, name, (intmax_t)v);
	if (there)
		*n = (size_t)v;
	free(name);
	return there;
}

static bool real_of(const struct making *m, const char *key, double *v)
{
	char *name = full(m, key);
	bool there = gguf_real(m->g, name, v);

	free(name);
	return there;
}

/* The shortest decimal that rounds to the float32. */
static double shortest(double v)
{
	char text[NUMBER_CHARS];

	return (double)(float)v == v ? strtod(number_text_float((float)v, text), NULL) : v;
}

static void put_real(const struct making *m, const char *key, double v)
{
	put_config_key(m, key, json_real(shortest(v)));
}

static void put_key(const struct making *m, const struct gguf_key *k)
{
	char *name = full(m, k->theirs);
	size_t n;
	double v;
	bool flag, there = true;

	switch (k->kind) {
	case GGUF_SIZE:
		there = size_of(m, k->theirs, &n);
		if (there)
			put_size(m, k->ours, n);
		break;
	case GGUF_REAL:
		there = gguf_real(m->g, name, &v);
		if (there)
			put_real(m, k->ours, v);
		break;
	case GGUF_FLAG:
		there = gguf_flag(m->g, name, &flag);
		if (there)
			put_config_key(m, k->ours, json_boolean(flag));
		break;
	case GGUF_TENSOR:
		put_config_key(m, k->ours, json_boolean(gguf_tensor(m->g, k->theirs)));
		break;
	case GGUF_TRUE:
		put_config_key(m, k->ours, json_true());
		break;
	}
	if (!there && k->required)
		missing(m, k->theirs);
	free(name);
}

/* Heads, and the width of one. */
static struct gguf_sizes put_heads(const struct making *m)
{
	const struct gguf_row *row = m->row;
	struct gguf_sizes s = { 0 };
	size_t hidden = 0, key, value;

	if (!size_of(m, "attention.head_count", &s.heads))
		missing(m, "attention.head_count");
	if (!size_of(m, "attention.head_count_kv", &s.kv_heads))
		s.kv_heads = s.heads;
	size_of(m, "embedding_length", &hidden);
	if (!s.heads || !s.kv_heads || !hidden || hidden > WIDE || hidden % s.heads)
		key = 0;
	else
		key = hidden / s.heads;
	s.head_dim = key;
	size_of(m, "attention.key_length", &s.head_dim);
	value = s.head_dim;
	size_of(m, "attention.value_length", &value);
	if (value != s.head_dim)
		die("%s: %s.attention.value_length: is %zu, and keys have %zu: expected the same", m->path,
			row->name, value, s.head_dim);
	if (!row->head_dim && s.head_dim != key)
		die("%s: %s.attention.key_length: is %zu, a %s has %zu of hidden size by heads", m->path,
			row->name, s.head_dim, row->class, key);
	if (!row->kv_heads && s.kv_heads != s.heads)
		die("%s: %s.attention.head_count_kv: is %zu, a %s has as many as heads, %zu", m->path,
			row->name, s.kv_heads, row->class, s.heads);
	if (row->scale) {
		size_t blocks = 0;

		size_of(m, "block_count", &blocks);
		put_size(m, row->scale, blocks == row->scale_blocks ? key : s.head_dim);
	}
	put_size(m, row->heads, s.heads);
	if (row->kv_heads)
		put_size(m, row->kv_heads, s.kv_heads);
	if (row->head_dim && s.head_dim)	/* else config.c says what is wrong with the sizes */
		put_size(m, row->head_dim, s.head_dim);
	return s;
}

/* As many tokens as the embedding has rows, where there are none. */
static void put_vocab(const struct making *m)
{
	const struct gguf_tensor *embedding = gguf_tensor(m->g, "token_embd.weight");
	struct gguf_text *tokens;
	size_t n = 0, named;

	tokens = gguf_strings(m->g, "tokenizer.ggml.tokens", &n);
	free(tokens);
	if (size_of(m, "vocab_size", &named))
		n = named;
	else if (!tokens && embedding && embedding->rank == 2)
		n = embedding->dim[0];
	put_size(m, "vocab_size", n);
}

/* What llama.cpp takes where the file does not say: 1 and 2 for SentencePiece's; else none. */
static void put_ids(const struct making *m)
{
	static const struct { const char *theirs, *ours; int absent; } ids[] = {
		{ "tokenizer.ggml.bos_token_id", "bos_token_id", 1 },
		{ "tokenizer.ggml.eos_token_id", "eos_token_id", 2 },
	};
	char *kind = gguf_string(m->g, "tokenizer.ggml.model");
	bool sentencepiece = kind && !strcmp(kind, "llama");

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		int64_t id = sentencepiece ? ids[i].absent : -1;

		gguf_integer(m->g, ids[i].theirs, &id);
		put_config_key(m, ids[i].ours, id < 0 ? json_null() : json_integer(id));
	}
	free(kind);
}

/*
 * rope_freqs.weight holds what Llama 3 divides each frequency f by: 1 for short waves, `factor` for long
 * ones, between them 1 / ((1 - s) / factor + s) with s = (original f / 2 pi - low) / (high - low). Every
 * pair between tells the original context; all must agree.
 */
static json_t *llama3_scaling(const struct making *m, const struct gguf_tensor *t, size_t head_dim,
	double theta)
{
	const double low = 1, high = 4, close = 1e-4;
	const size_t n = head_dim / 2;
	const float *y = (const float *)(const void *)t->data;
	double factor = 0, original = 0;

	if (t->type || t->rank != 1 || t->dim[0] != n || t->room < n * sizeof *y)
		die("%s: %s: is not %zu numbers of type F32, one for each pair of channels", m->path, t->name,
			n);
	for (size_t i = 0; i < n; i++) {
		if (!(y[i] >= 1 && y[i] < 1e6f))
			die("%s: %s: element %zu is %g, expected a divisor from 1 on", m->path, t->name, i,
				(double)y[i]);
		factor = fmax(factor, y[i]);
	}
	for (size_t i = 0; i < n && factor > 1; i++) {
		const double f = pow(theta, -2.0 * (double)i / (double)head_dim);
		const double s = (1 / (double)y[i] - 1 / factor) / (1 - 1 / factor);

		if (!original && s > close && s < 1 - close)
			original = round(2 * M_PI / f * (low + s * (high - low)));
	}
	for (size_t i = 0; i < n && original > 0; i++) {
		const double f = pow(theta, -2.0 * (double)i / (double)head_dim);
		const double s = fmin(1, fmax(0, (original * f / (2 * M_PI) - low) / (high - low)));
		const double want = 1 / ((1 - s) / factor + s);

		if (fabs(y[i] - want) > close * want)
			original = -1;
	}
	if (factor > 1 && original <= 0)
		die("%s: %s: does not scale as Llama 3 does with low_freq_factor 1 and high_freq_factor 4; "
			"other rotary scalings by frequency are not supported", m->path, t->name);
	if (factor <= 1)
		return json_null();
	return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", shortest(factor),
		"low_freq_factor", low, "high_freq_factor", high, "original_max_position_embeddings",
		(json_int_t)original);
}

/* What the frequencies are divided by in short and in long contexts. */
static json_t *longrope(const struct making *m, size_t rotated)
{
	static const char *const names[][2] = { { "rope_factors_short.weight", "short_factor" },
		{ "rope_factors_long.weight", "long_factor" } };
	json_t *scaling = json_pack("{s:s}", "rope_type", "longrope");

	for (size_t k = 0; k < 2; k++) {
		const struct gguf_tensor *t = gguf_tensor(m->g, names[k][0]);
		const float *y = t ? (const float *)(const void *)t->data : NULL;
		json_t *list = json_array();

		if (!y || t->type || t->rank != 1 || t->dim[0] != rotated / 2 ||
			t->room / sizeof *y < t->dim[0])
			die("%s: %s: is not there, or not %zu numbers of type F32, one for each pair of "
				"channels",
				m->path, names[k][0], rotated / 2);
		for (size_t i = 0; i < t->dim[0]; i++) {
			if (!(y[i] > 0 && y[i] < 1e6f))
				die("%s: %s: element %zu is %g, expected a positive divisor", m->path,
					t->name, i, (double)y[i]);
			if (json_array_append_new(list, json_real(shortest(y[i]))))
				die("%s: out of memory", m->path);
		}
		if (json_object_set_new(scaling, names[k][1], list))
			die("%s: out of memory", m->path);
	}
	return scaling;
}

/* As llama.cpp reads it: a factor without a type is linear, and 0 or 1 is none. is_long: whether there are
 * factors of pairs, or the type says that there are. */
static json_t *keyed_scaling(const struct making *m, bool *is_long)
{
	char *name = full(m, "rope.scaling.type"), *kind = gguf_string(m->g, name);
	double factor = 0;
	bool none = kind && !strcmp(kind, "none");

	if (kind && !none && strcmp(kind, "linear") && !(m->row->longrope && !strcmp(kind, "longrope")))
		die("%s: %s: rotary scaling '%s' is not supported, expected none, linear%s", m->path, name,
			kind, m->row->longrope ? " or longrope" : " or Llama 3's");
	if (!real_of(m, "rope.scaling.factor", &factor))
		real_of(m, "rope.scale_linear", &factor);
	*is_long |= kind && !none && strcmp(kind, "linear") != 0;
	free(kind);
	free(name);
	if (none || factor == 0 || factor == 1 || *is_long)
		return NULL;
	return json_pack("{s:s, s:f}", "rope_type", "linear", "factor", shortest(factor));
}

/* The part of a head that is rotated. */
static void put_rotary(const struct making *m, size_t rotated, size_t head_dim)
{
	double part = (double)rotated / (double)head_dim;

	if (!rotated || rotated > head_dim)
		die("%s: %s.rope.dimension_count: is %zu, expected 1 to the %zu channels of a head", m->path,
			m->row->name, rotated, head_dim);
	while ((size_t)(part * (double)head_dim) < rotated)	/* it is rounded down */
		part = nextafter(part, 2);
	put_config_key(m, m->row->rotary, json_real(part));
}

static const char divisors_name[] = "rope_freqs.weight";
static const char *const factors[] = { "rope_factors_long.weight", "rope_factors_short.weight" };

bool gguf_config_takes(const char *tensor)
{
	return !strcmp(tensor, divisors_name) || !strcmp(tensor, factors[0]) || !strcmp(tensor, factors[1]);
}

static void put_rope(const struct making *m, size_t head_dim)
{
	const struct gguf_tensor *divisors = gguf_tensor(m->g, divisors_name);
	const struct gguf_row *row = m->row;
	double theta = 10000;
	size_t rotated = head_dim;
	bool is_long = false;
	json_t *scaling;

	for (size_t i = 0; i < 2; i++) {
		is_long |= gguf_tensor(m->g, factors[i]) != NULL;
		if (is_long && !row->longrope)
			die("%s: %s: rotary scaling 'longrope' is not supported", m->path, factors[i]);
	}
	scaling = keyed_scaling(m, &is_long);
	real_of(m, "rope.freq_base", &theta);
	put_real(m, row->theta, theta);
	size_of(m, "rope.dimension_count", &rotated);
	if (!row->rotary && rotated != head_dim)
		die("%s: %s.rope.dimension_count: is %zu, a %s turns all %zu channels of a head", m->path,
			row->name, rotated, row->class, head_dim);
	if (row->rotary)
		put_rotary(m, rotated, head_dim);
	if (divisors && (scaling || row->rotary || !head_dim || theta <= 1))
		die("%s: %s: rotary scaling by frequency is not supported beside others, nor of a part of a "
			"head", m->path, divisors->name);
	if (divisors)
		scaling = llama3_scaling(m, divisors, head_dim, theta);
	else if (is_long)
		scaling = longrope(m, rotated);
	if (scaling)
		put_config_key(m, "rope_scaling", scaling);
}

static void put_window(const struct making *m)
{
	size_t window = 0, context = 0;
	bool there = size_of(m, "attention.sliding_window", &window);

	size_of(m, "context_length", &context);
	if (there && m->row->window)
		put_config_key(m, m->row->window, window ? json_integer((json_int_t)window) : json_null());
	else if (window && window < context)
		die("%s: %s.attention.sliding_window: is %zu, expected attention to all positions", m->path,
			m->row->name, window);
}

/* Whether the metadata name experts. */
static bool has_experts(const struct gguf *g, const char *architecture)
{
	char *key = xformat("%s.expert_count", architecture);
	int64_t n = 0;

	gguf_integer(g, key, &n);
	free(key);
	return n > 0;
}

const struct gguf_row *gguf_row_of(const struct gguf *g, const char *path)
{
	char *name = gguf_string(g, "general.architecture"), *type = gguf_string(g, "general.type");
	char known[LIST] = "";
	int64_t parts = 1, version = 2;
	bool experts = name && has_experts(g, name);

	if (type && strcmp(type, "model"))
		die("%s: general.type: is '%s', expected a model", path, type);
	gguf_integer(g, "split.count", &parts);
	if (parts > 1)
		die("%s: split.count: is one of %jd files of a model, expected one file (llama-gguf-split "
			"--merge)", path, (intmax_t)parts);
	gguf_integer(g, "general.quantization_version", &version);
	if (version != 2)
		die("%s: general.quantization_version: is %jd, expected 2", path, (intmax_t)version);
	free(type);
	for (const struct gguf_row *r = gguf_rows; r->name; r++) {
		size_t n = strlen(known);

		if (name && !strcmp(name, r->name) && experts == r->experts) {
			free(name);
			return r;
		}
		snprintf(known + n, sizeof known - n, "%s%s%s", n ? ", " : "", r->name,
			r->experts ? " with experts" : "");
	}
	die("%s: general.architecture: is %s%s%s%s, known are %s", path, name ? "'" : "",
		name ? name : "missing", name ? "'" : "", experts ? " with experts" : "", known);
}

char *gguf_config(const struct gguf *g, const char *path, const struct gguf_row *row,
	struct gguf_sizes *sizes)
{
	struct making m = { g, path, row, json_object() };
	char *text;

	if (!m.config)
		die("%s: out of memory", path);
	put_config_key(&m, "architectures", json_pack("[s]", row->class));
	put_config_key(&m, "model_type", json_string(row->model_type));
	for (const struct gguf_key *k = row->keys; k->theirs; k++)
		put_key(&m, k);
	*sizes = put_heads(&m);
	size_of(&m, "expert_count", &sizes->experts);
	put_window(&m);
	if (row->theta)
		put_rope(&m, sizes->head_dim);
	put_vocab(&m);
	put_ids(&m);
	put_config_key(&m, "tie_word_embeddings", json_boolean(!gguf_tensor(g, "output.weight")));
	text = json_dumps(m.config, JSON_INDENT(1));
	if (!text)
		die("%s: out of memory", path);
	json_decref(m.config);
	return text;
}
