/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_metadata.c -- see gguf_metadata.h */
#include "import/gguf_metadata.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/ggml.h"
#include "import/gguf.h"
#include "import/gguf_config_private.h"

enum { CHECKED = 64 };

/* Classes with the architecture of another class in GGUF. */
static const struct { const char *class, *as; } also[] = {
	{ "MistralForCausalLM", "LlamaForCausalLM" }, { "MinistralForCausalLM", "LlamaForCausalLM" },
};

const struct gguf_row *gguf_row_for(const struct config *c, const char *from)
{
	const char *class = config_class(c);

	for (size_t i = 0; i < sizeof also / sizeof *also; i++)
		if (!strcmp(class, also[i].class))
			class = also[i].as;
	for (const struct gguf_row *r = gguf_rows; r->name; r++)
		if (!strcmp(r->class, class))
			return r;
	die("%s: /config: GGUF has no architecture for a %s; --to hf writes it", from, config_class(c));
}

/* --- keys --- */

/* "ARCHITECTURE.key"; free() it. */
static char *full(const struct gguf_row *row, const char *key)
{
	return xformat("%s.%s", row->name, key);
}

/* Without a key of the class, no key of GGUF is written. Rotated channels are the exception: all of them. */
static void put_key(struct gguf_output *o, const char *name, const struct gguf_key *k, const struct config *c)
{
	const double v = k->value && (k->hf || k->kind == GGUF_ROTATED) ? k->value(c) : -1;

	if (k->kind == GGUF_SCALING && config_last(c)->rope[ROPE_FULL].kind == ROPE_LINEAR)
		gguf_put_text(o, name, "linear");
	if (v < 0 || k->kind == GGUF_TENSOR)
		return;
	if (k->kind == GGUF_REAL || k->kind == GGUF_THETA)
		gguf_put_real(o, name, v);
	else if (k->kind == GGUF_FLAG)
		gguf_put_flag(o, name, v != 0);
	else
		gguf_put_size(o, name, (size_t)v);
}

static void put_factor(struct gguf_output *o, const struct gguf_row *row, const struct rope_setting *r)
{
	const struct gguf_key *k = row->keys;
	char *name;

	while (k->gguf && k->kind != GGUF_FACTOR)
		k++;
	name = k->gguf && r->kind == ROPE_LINEAR ? full(row, k->gguf) : NULL;
	if (name)
		gguf_put_real(o, name, r->factor);
	free(name);
	name = r->kind == ROPE_LONG && r->scale != 1 ? full(row, "rope.scaling.attn_factor") : NULL;
	if (name)	/* llama.cpp has no default for it */
		gguf_put_real(o, name, r->scale);
	free(name);
}

void gguf_put_config(struct gguf_output *o, const struct gguf_row *row, const struct config *c)
{
	gguf_put_text(o, GGUF_ARCHITECTURE, row->name);
	gguf_put_text(o, GGUF_TYPE, "model");
	gguf_put_size(o, GGUF_QUANTIZATION, 2);
	for (const struct gguf_key *k = row->keys; k->gguf; k++) {
		char *name = full(row, k->gguf);

		put_key(o, name, k, c);
		free(name);
	}
	for (const struct gguf_key *k = gguf_last_keys; k->gguf; k++)
		put_key(o, k->gguf, k, c);
	put_factor(o, row, &config_last(c)->rope[ROPE_FULL]);
}

/* --- rotary frequencies --- */

static void put_numbers(struct gguf_output *o, const char *name, size_t n, const double v[n])
{
	float *x = xalloc(n, sizeof *x);
	const size_t at = gguf_add(o, name, GGML_F32, 1, &n, n * sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = (float)v[i];
	gguf_write(o, at, x, n * sizeof *x);
	free(x);
}

/* Llama 3's divisor of frequency i; gguf_rope.c reads it. */
static double llama3_divisor(const struct rope_setting *r, size_t i, size_t width)
{
	const double f = pow(r->theta, -2.0 * (double)i / (double)width);
	const double s = (r->original * f / (2 * M_PI) - r->low) / (r->high - r->low);
	const double part = fmin(1, fmax(0, s));

	return 1 / ((1 - part) / r->factor + part);
}

void gguf_put_rope(struct gguf_output *o, const struct gguf_row *row, const struct config *c)
{
	const struct stack *s = config_last(c);
	const struct rope_setting *r = &s->rope[ROPE_FULL];
	const size_t n = s->rotary / 2;
	double *v = xalloc(n, sizeof *v);

	for (size_t i = 0; i < n && r->kind == ROPE_LLAMA3; i++)
		v[i] = llama3_divisor(r, i, s->rotary);
	for (const struct gguf_tensor_key *k = gguf_rotary_tensors; k->gguf; k++)
		if (!k->hf && r->kind == ROPE_LLAMA3)
			put_numbers(o, k->gguf, n, v);
		else if (k->hf && r->kind == ROPE_LONG && row->longrope)
			put_numbers(o, k->gguf, n, r->part[!strcmp(k->hf, "long_factor")]);
	free(v);
}

/* --- comparison of the metadata, read back, with the configuration --- */

struct difference { const char *what; double ours, theirs; };

/* Compares float32 numbers, since the file stores float32, and transformers and llama.cpp compute in it. */
static struct difference compare(size_t n, const struct difference d[n])
{
	for (size_t i = 0; i < n; i++)
		if (!((float)d[i].ours == (float)d[i].theirs))
			return d[i];
	return (struct difference){ NULL, 0, 0 };
}

static struct difference rope_difference(const struct stack *a, const struct stack *b, size_t block)
{
	const struct rope_setting *x = &a->rope[stack_rope(a, block)], *y = &b->rope[stack_rope(b, block)];
	const struct difference d[] = {
		{ "the rotary base", x->theta, y->theta }, { "the kind of rotary scaling", x->kind, y->kind },
		{ "the factor of rotary scaling", x->factor, y->factor },
		{ "low_freq_factor", x->low, y->low }, { "high_freq_factor", x->high, y->high },
		{ "the original context of rotary scaling", x->original, y->original },
		{ "the factor of rotated vectors", x->scale, y->scale },
	};
	struct difference found = compare(sizeof d / sizeof *d, d);

	for (size_t i = 0; !found.what && x->kind == ROPE_LONG && i < a->rotary; i++) {
		const size_t n = a->rotary / 2;

		found = compare(1, &(struct difference){ "a factor of rotary scaling",
			x->part[i / n][i % n], y->part[i / n][i % n] });
	}
	return found;
}

static struct difference block_difference(const struct config *p, const struct config *q, size_t block)
{
	const struct stack *a = config_last(p), *b = config_last(q);
	const size_t x = stack_window(a, block), y = stack_window(b, block);
	const struct difference d[] = {
		{ "the window of a block", x < p->positions ? (double)x : 0,
			y < q->positions ? (double)y : 0 },
		{ "whether a block has experts", stack_sparse(a, block), stack_sparse(b, block) },
	};
	struct difference found = compare(sizeof d / sizeof *d, d);

	return found.what || !a->rotary ? found : rope_difference(a, b, block);
}

static struct difference bias_difference(const struct stack *a, const struct stack *b)
{
	struct difference found = { NULL, 0, 0 };

	for (const struct linear_row *r = a->arch->linear; !found.what && r->name; r++)
		found = compare(1, &(struct difference){ r->name, a->bias[r->role], b->bias[r->role] });
	return found;
}

static struct difference config_difference(const struct config *p, const struct config *q)
{
	const struct stack *a = config_last(p), *b = config_last(q);
	const struct difference d[] = {
		{ "the number of blocks", (double)a->blocks, (double)b->blocks },
		{ "the hidden size", (double)a->hidden, (double)b->hidden },
		{ "the number of heads", (double)a->heads, (double)b->heads },
		{ "the number of heads of keys", (double)a->kv_heads, (double)b->kv_heads },
		{ "the width of a head", (double)a->head_dim, (double)b->head_dim },
		{ "the intermediate size", (double)a->intermediate, (double)b->intermediate },
		{ "the epsilon of norms", a->eps, b->eps },
		{ "the activation", a->activation, b->activation },
		{ "whether a block is parallel", a->parallel, b->parallel },
		{ "whether norms are last", a->norms_last, b->norms_last },
		{ "the rotated part of a head", (double)a->rotary, (double)b->rotary },
		{ "the scale of attention", a->attention_scale, b->attention_scale },
		{ "the soft-cap of attention", a->attention_cap, b->attention_cap },
		{ "the number of experts", (double)a->experts, (double)b->experts },
		{ "the number of experts of a token", (double)a->chosen, (double)b->chosen },
		{ "the size of an expert", (double)a->expert, (double)b->expert },
		{ "the size of the shared expert", (double)a->shared, (double)b->shared },
		{ "whether weights of experts add up to 1", a->normalized, b->normalized },
		{ "the number of tokens", (double)p->vocab, (double)q->vocab },
		{ "the number of positions", (double)p->positions, (double)q->positions },
		{ "the scale of embeddings", p->embedding_scale, q->embedding_scale },
		{ "the soft-cap of logits", p->logit_cap, q->logit_cap },
	};
	struct difference found = compare(sizeof d / sizeof *d, d);

	if (!found.what)
		found = bias_difference(a, b);
	for (size_t i = 0; !found.what && i < a->blocks; i++)
		found = block_difference(p, q, i);
	return found;
}

/* Names of those tensors that the configuration is read from and that will be written. */
static size_t future_tensors(const struct gguf_row *row, const struct config *c, const char *name[CHECKED])
{
	size_t n = 0;

	for (const struct gguf_key *k = row->keys; k->gguf; k++)
		if (k->kind == GGUF_TENSOR && k->value(c) > 0)
			name[n++] = k->gguf;
	return n;
}

void gguf_check_config(struct gguf_output *o, const struct gguf_row *row, const struct config *c,
	const char *from)
{
	const char *name[CHECKED];
	const size_t n = future_tensors(row, c, name);
	const char *path = gguf_preview(o, n, name);
	struct gguf *g = gguf_open_own(path);
	struct gguf_sizes sizes;
	char *text = gguf_config(g, from, row, &sizes);
	struct config back = config_parse(from, text);
	struct difference d = config_difference(c, &back);

	if (d.what)
		die("%s: /config: GGUF's %s cannot express %s: it is %.9g, and would be read as %.9g", from,
			row->name, d.what, d.ours, d.theirs);
	if (c->eos_count > 1)
		warn("%s: /config: eos_token_id: GGUF stores only one of the %zu ids that end a text, %ld",
			from, c->eos_count, c->eos[0]);
	config_free(&back);
	free(text);
	gguf_close(g);
}
