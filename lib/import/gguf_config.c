/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_config.c -- see gguf_config_private.h */
#include "import/gguf_config_private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/number.h"
#include "import/gguf_making_private.h"

enum { LIST = 512, WIDE = 1 << 20 };

void gguf_put(const struct gguf_config_builder *m, const char *hf, json_t *v)
{
	if (json_object_set_new(m->config, hf, v))
		die("%s: out of memory", m->path);
}

static void put_size(const struct gguf_config_builder *m, const char *hf, size_t n)
{
	gguf_put(m, hf, json_integer((json_int_t)n));
}

double gguf_shortest(double v)
{
	char text[NUMBER_CHARS];

	return (double)(float)v == v ? strtod(number_text_float((float)v, text), NULL) : v;
}

const struct gguf_key *gguf_key_of(const struct gguf_config_builder *m, enum gguf_kind kind)
{
	for (const struct gguf_key *k = m->row->keys; k->gguf; k++)
		if (k->kind == kind)
			return k;
	return NULL;
}

char *gguf_full_key(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	return xformat("%s.%s", m->row->name, k->gguf);
}

static bool read_size(const struct gguf_config_builder *m, const struct gguf_key *k, size_t *v)
{
	char *name = gguf_full_key(m, k);
	int64_t n;
	bool there = gguf_integer(m->g, name, &n);

	if (there && n < 0)
		die("%s: %s: is %jd, expected 0 or more", m->path, name, (intmax_t)n);
	if (there)
		*v = (size_t)n;
	free(name);
	return there;
}

static bool read_real(const struct gguf_config_builder *m, const struct gguf_key *k, double *v)
{
	char *name = gguf_full_key(m, k);
	bool there = gguf_real(m->g, name, v);

	free(name);
	return there;
}

bool gguf_size_of(const struct gguf_config_builder *m, enum gguf_kind kind, size_t *v)
{
	for (const struct gguf_key *k = m->row->keys; k->gguf; k++)
		if (k->kind == kind && read_size(m, k, v))
			return true;
	return false;
}

bool gguf_real_of(const struct gguf_config_builder *m, enum gguf_kind kind, double *v)
{
	for (const struct gguf_key *k = m->row->keys; k->gguf; k++)
		if (k->kind == kind && read_real(m, k, v))
			return true;
	return false;
}

static _Noreturn void missing(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	die("%s: %s.%s: is missing, every such file needs it", m->path, m->row->name,
		k->gguf);
}

/* --- one function per kind: writes the key, if present, into config.json --- */

typedef void put_key(const struct gguf_config_builder *m, const struct gguf_key *k);

static void put_plain_size(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	size_t n;

	if (read_size(m, k, &n))
		put_size(m, k->hf, n);
	else if (k->required)
		missing(m, k);
}

static void put_real(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	double v;

	if (read_real(m, k, &v))
		gguf_put(m, k->hf, json_real(gguf_shortest(v)));
	else if (k->required)
		missing(m, k);
}

static void put_flag(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	char *name = gguf_full_key(m, k);
	bool flag;

	if (gguf_flag(m->g, name, &flag))
		gguf_put(m, k->hf, json_boolean(flag));
	else if (k->required)
		missing(m, k);
	free(name);
}

static void put_tensor(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	gguf_put(m, k->hf, json_boolean(gguf_tensor(m->g, k->gguf)));
}

static void put_no_tensor(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	gguf_put(m, k->hf, json_boolean(!gguf_tensor(m->g, k->gguf)));
}

static void put_true(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	gguf_put(m, k->hf, json_true());
}

static void put_heads(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	put_size(m, k->hf, m->sizes.heads);
}

static void put_kv_heads(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	if (!k->hf && m->sizes.kv_heads != m->sizes.heads)
		die("%s: %s.%s: is %zu, a %s needs the number of heads, %zu", m->path, m->row->name,
			k->gguf, m->sizes.kv_heads, m->row->class, m->sizes.heads);
	if (k->hf)
		put_size(m, k->hf, m->sizes.kv_heads);
}

/* Hidden size / heads; 0 if the sizes are invalid, which config.c reports. */
static size_t head_width(const struct gguf_config_builder *m)
{
	const struct gguf_sizes *s = &m->sizes;
	size_t hidden = 0;

	gguf_size_of(m, GGUF_HIDDEN, &hidden);
	return s->heads && s->kv_heads && hidden <= WIDE && hidden % s->heads == 0 ? hidden / s->heads : 0;
}

static void put_key_length(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	const size_t n = m->sizes.head_dim;

	if (!k->hf && n != head_width(m))
		die("%s: %s.%s: is %zu, a %s needs %zu, hidden size / heads", m->path, m->row->name,
			k->gguf, n, m->row->class, head_width(m));
	if (k->hf && n)
		put_size(m, k->hf, n);
}

static void check_value_length(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	size_t n = m->sizes.head_dim;

	if (read_size(m, k, &n) && n != m->sizes.head_dim)
		die("%s: %s.%s: is %zu, expected the length of keys, %zu", m->path, m->row->name,
			k->gguf, n, m->sizes.head_dim);
}

static void put_scale(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	size_t blocks = 0;

	gguf_size_of(m, GGUF_BLOCKS, &blocks);
	put_size(m, k->hf, blocks == m->row->scale_blocks ? head_width(m) : m->sizes.head_dim);
}

static void put_window(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	size_t window = 0, context = 0;
	bool there = read_size(m, k, &window);

	gguf_size_of(m, GGUF_CONTEXT, &context);
	if (there && k->hf)
		gguf_put(m, k->hf, window ? json_integer((json_int_t)window) : json_null());
	else if (window && window < context)
		die("%s: %s.%s: is %zu, expected attention to all positions", m->path, m->row->name,
			k->gguf, window);
}

static void put_vocab(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	const struct gguf_tensor *embedding = gguf_tensor(m->g, GGUF_EMBEDDING);
	struct gguf_text *tokens;
	size_t n = 0, named;

	tokens = gguf_strings(m->g, GGUF_TOKENS, &n);
	free(tokens);
	if (read_size(m, k, &named))
		n = named;
	else if (!tokens && embedding && embedding->rank == 2)
		n = embedding->dim[0];
	put_size(m, k->hf, n);
}

static void put_id(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	char *kind = gguf_string(m->g, GGUF_TOKENIZER);
	int64_t id = kind && !strcmp(kind, "llama") ? (k->kind == GGUF_BOS ? 1 : 2) : -1;

	gguf_integer(m->g, k->gguf, &id);
	gguf_put(m, k->hf, id < 0 ? json_null() : json_integer(id));
	free(kind);
}

/* NULL: another function reads the key. */
static put_key *const put[GGUF_KINDS] = {
	[GGUF_SIZE] = put_plain_size, [GGUF_REAL] = put_real, [GGUF_FLAG] = put_flag,
	[GGUF_TENSOR] = put_tensor, [GGUF_NO_TENSOR] = put_no_tensor, [GGUF_TRUE] = put_true,
	[GGUF_BLOCKS] = put_plain_size, [GGUF_CONTEXT] = put_plain_size, [GGUF_HIDDEN] = put_plain_size,
	[GGUF_EXPERTS] = put_plain_size, [GGUF_HEADS] = put_heads, [GGUF_KV_HEADS] = put_kv_heads,
	[GGUF_KEY_LENGTH] = put_key_length, [GGUF_VALUE_LENGTH] = check_value_length,
	[GGUF_SCALE] = put_scale, [GGUF_WINDOW] = put_window, [GGUF_THETA] = gguf_put_theta,
	[GGUF_ROTATED] = gguf_put_rotated, [GGUF_SCALING] = gguf_put_scaling, [GGUF_VOCAB] = put_vocab,
	[GGUF_BOS] = put_id, [GGUF_EOS] = put_id,
};

static void put_keys(const struct gguf_config_builder *m, const struct gguf_key *keys)
{
	for (const struct gguf_key *k = keys; k->gguf; k++)
		if (put[k->kind])
			put[k->kind](m, k);
}

/* Numbers of heads and experts and the width of a head: other keys and tensors depend on them. */
static void read_sizes(struct gguf_config_builder *m)
{
	struct gguf_sizes *s = &m->sizes;

	if (!gguf_size_of(m, GGUF_HEADS, &s->heads))
		missing(m, gguf_key_of(m, GGUF_HEADS));
	s->kv_heads = s->heads;
	gguf_size_of(m, GGUF_KV_HEADS, &s->kv_heads);
	s->head_dim = head_width(m);
	gguf_size_of(m, GGUF_KEY_LENGTH, &s->head_dim);
	gguf_size_of(m, GGUF_EXPERTS, &s->experts);
}

/* Whether the metadata specify experts. */
static bool has_experts(const struct gguf *g, const char *architecture)
{
	char *key = xformat("%s." GGUF_EXPERT_COUNT, architecture);
	int64_t n = 0;

	gguf_integer(g, key, &n);
	free(key);
	return n > 0;
}

const struct gguf_row *gguf_row_of(const struct gguf *g, const char *path)
{
	char *name = gguf_string(g, GGUF_ARCHITECTURE), *type = gguf_string(g, GGUF_TYPE);
	char known[LIST] = "";
	int64_t parts = 1, version = 2;
	bool experts = name && has_experts(g, name);

	if (type && strcmp(type, "model"))
		die("%s: " GGUF_TYPE ": is '%s', expected 'model'", path, type);
	gguf_integer(g, GGUF_SPLIT, &parts);
	if (parts > 1)
		die("%s: " GGUF_SPLIT ": is one of %jd files of a model, expected one file (llama-gguf-split "
			"--merge)", path, (intmax_t)parts);
	gguf_integer(g, GGUF_QUANTIZATION, &version);
	if (version != 2)
		die("%s: " GGUF_QUANTIZATION ": is %jd, expected 2", path, (intmax_t)version);
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
	die("%s: " GGUF_ARCHITECTURE ": is %s%s%s%s, expected one of %s", path, name ? "'" : "",
		name ? name : "missing", name ? "'" : "", experts ? " with experts" : "", known);
}

char *gguf_config(const struct gguf *g, const char *path, const struct gguf_row *row,
	struct gguf_sizes *sizes)
{
	struct gguf_config_builder m = { g, path, row, { 0 }, json_object() };
	char *text;

	if (!m.config)
		die("%s: out of memory", path);
	read_sizes(&m);
	gguf_put(&m, "architectures", json_pack("[s]", row->class));
	gguf_put(&m, "model_type", json_string(row->model_type));
	put_keys(&m, row->keys);
	put_keys(&m, gguf_last_keys);
	text = json_dumps(m.config, JSON_INDENT(1));
	if (!text)
		die("%s: out of memory", path);
	json_decref(m.config);
	*sizes = m.sizes;
	return text;
}
