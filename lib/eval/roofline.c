/* SPDX-License-Identifier: GPL-3.0-or-later */
/* roofline.c -- see roofline.h */
#include "eval/roofline.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/names.h"
#include "base/number.h"
#include "io/contents.h"
#include "io/part.h"
#include "model/config.h"

enum { LENGTH_MAX = 1 << 20, CONFIG_MAX = 1 << 24, LIST_MAX = 1000 };
static const double EMBEDDING_BYTES = 2, SCALE_BITS = 16;
static const double LEAST = 1e-6, MOST = 1e9;	/* numbers of an accelerator */

struct shape {
	double blocks, linear, active;	/* L, P, P' */
	double attention, kv;		/* w, k */
	double head, embedding;		/* E, D */
};

struct accelerator {
	const char *name;
	double memory, bandwidth;	/* bytes, bytes/s */
	double bf16, fp8;		/* dense operations per second; a product and a sum are two */
};

struct arithmetic {
	double weight_bits;		/* b */
	double kv_bits;			/* a */
	bool fp8;			/* R is the rate of FP8, else of BF16 */
};

struct throughput {
	double stored;			/* bytes */
	double batch;			/* 0: weights and one sequence do not fit; the next members are 0 */
	double prefill, decode;		/* seconds */
	double memory_bound;		/* share of decode steps that are limited by memory */
	double rate;			/* tokens per second */
};

struct shape_row {
	const char *name;
	size_t blocks, hidden, heads, kv_heads, head_dim, inner, vocab;
	bool tied;
};
/* From the config.json of each model. */
static const struct shape_row shapes[] = {
	{ "llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000, false },
	{ "llama-2-70b", 80, 8192, 64, 8, 128, 28672, 32000, false },
	{ "llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, false },
	{ "llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, false },
	{ "qwen2-7b", 28, 3584, 28, 4, 128, 18944, 152064, false },
	{ "qwen2-72b", 80, 8192, 64, 8, 128, 29568, 152064, false },
	{ NULL, 0, 0, 0, 0, 0, 0, 0, false }
};

/*
 * Gaudi 2 and 3: Intel, "Intel Gaudi 3 AI Accelerator", white paper of 2024; matrix engine, HBM in decimal
 * units. H100, H200: NVIDIA's data sheets of the SXM modules; half of the rates that are given "with
 * sparsity".
 */
static const struct accelerator accelerators[] = {
	{ "gaudi2", 96e9, 2.45e12, 432e12, 865e12 },
	{ "gaudi3", 128e9, 3.7e12, 1835e12, 1835e12 },
	{ "h100", 80e9, 3.35e12, 989e12, 1979e12 },
	{ "h200", 141e9, 4.8e12, 989e12, 1979e12 },
	{ NULL, 0, 0, 0, 0 }
};

/* n ≥ 1 ids of prompt, m ≥ 1 generated ids. */
static struct throughput throughput_of(const struct shape *s, const struct arithmetic *a,
	const struct accelerator *h, size_t n, size_t m)
{
	const double read = s->linear * a->weight_bits / 8 + EMBEDDING_BYTES * s->head;
	const double kv = 2 * s->blocks * s->kv * a->kv_bits / 8, rate = a->fp8 ? h->fp8 : h->bf16;
	const double in = (double)n, prompt = 2 * in * (s->active + s->blocks * s->attention * (in + 1));
	struct throughput y = { .stored = read + EMBEDDING_BYTES * s->embedding };
	double batch = floor((h->memory - y.stored) / (kv * (double)(n + m))), head, bound = 0;

	if (!(batch >= 1))
		return y;
	head = 2 * batch * s->head / h->bf16;
	y.batch = batch;
	y.prefill = fmax(batch * prompt / rate + head, (read + batch * in * kv) / h->bandwidth);
	for (size_t c = n + 1; c < n + m; c++) {
		double at = (double)c, memory = (read + batch * at * kv) / h->bandwidth;
		double compute = batch * (2 * s->active + 4 * s->blocks * s->attention * at) / rate + head;

		y.decode += fmax(compute, memory);
		bound += memory > compute;
	}
	y.memory_bound = m > 1 ? bound / (double)(m - 1) : NAN;
	y.rate = batch * (double)m / (y.prefill + y.decode);
	return y;
}

/*
 * Parses W<bits>A<bits>, such as "W4A8": weights of 1 to 16 bits, activations of 8 (FP8) or 16 (BF16).
 * Weights of less than 8 bits have a 16-bit scale and a zero point of their own width per group of `group`
 * weights. kv_bits 0: as activations. Returns whether the name is valid.
 */
static bool arithmetic_of(const char *name, size_t group, size_t kv_bits, struct arithmetic *a)
{
	size_t weight = 0, activation = 0;
	const char *end = *name == 'W' || *name == 'w' ? number_size(name + 1, &weight) : NULL;

	end = end && (*end == 'A' || *end == 'a') ? number_size(end + 1, &activation) : NULL;
	if (!end || *end || weight < 1 || weight > 16 || (activation != 8 && activation != 16))
		return false;
	*a = (struct arithmetic){ .weight_bits = (double)weight, .fp8 = activation == 8,
		.kv_bits = (double)(kv_bits ? kv_bits : activation) };
	if (weight < 8)
		a->weight_bits += (SCALE_BITS + (double)weight) / (double)group;
	return true;
}

/* "NAME" of a row, or "NAME=GB:TB/S:BF16:FP8", each from 1e-6 to 1e9. False: neither. */
static bool accelerator_of(const char *text, struct accelerator *y)
{
	const char *at = strchr(text, '=');
	double v[4];

	for (const struct accelerator *a = accelerators; a->name; a++)
		if (!strcmp(a->name, text)) {
			*y = *a;
			return true;
		}
	if (!at || at == text)
		return false;
	*y = (struct accelerator){ .name = xformat("%.*s", (int)(at - text), text) };
	for (int i = 0; i < 4; i++) {
		at = number_real(at + 1, &v[i]);
		if (!at || !(v[i] >= LEAST && v[i] <= MOST) || *at != (i < 3 ? ':' : '\0'))
			return false;
	}
	y->memory = v[0] * 1e9, y->bandwidth = v[1] * 1e12, y->bf16 = v[2] * 1e12, y->fp8 = v[3] * 1e12;
	return true;
}

static struct shape of_row(const struct shape_row *r)
{
	const double hidden = (double)r->hidden, width = (double)(r->heads * r->head_dim);
	const double kv = (double)(r->kv_heads * r->head_dim), words = (double)r->vocab * hidden;

	const double linear = (double)r->blocks * hidden * (2 * width + 2 * kv + 3 * (double)r->inner);

	return (struct shape){ .blocks = (double)r->blocks, .linear = linear, .active = linear,
		.attention = width, .kv = kv, .head = words,
		.embedding = r->tied ? 0 : words };
}

static void shape_layer(struct shape *y, const struct stack *s, size_t block, const struct linear_row *l)
{
	const double weights = (double)stack_out(s, l->role) * (double)stack_in(s, l->projection);
	const size_t copies = stack_copies(s, l);

	if (!stack_has(s, block, l))
		return;
	y->linear += weights * (double)copies;
	y->active += weights * (double)(copies > s->chosen && copies > 1 ? s->chosen : copies);
}

/* In a vision-language model, only the language model counts, since every token passes it. */
static struct shape of_config(const struct config *c)
{
	const struct stack *last = config_last(c);
	const double words = (double)c->vocab * (double)last->hidden;
	struct shape y = { .blocks = (double)last->blocks, .head = words, .embedding = c->tied ? 0 : words,
		.attention = (double)(last->heads * last->head_dim),
		.kv = (double)(last->kv_heads * last->head_dim) };

	for (size_t block = 0; block < last->blocks; block++)
		for (const struct linear_row *l = last->arch->linear; l->name; l++)
			shape_layer(&y, last, block, l);
	return y;
}

static struct shape of_path(const char *path)
{
	struct stat st;
	struct config c;
	struct shape y;

	if (stat(path, &st))
		misuse("--models: '%s' is neither a folder, nor a file, nor one of %s", path,
			names_of_rows(shapes, sizeof *shapes));
	if (S_ISDIR(st.st_mode)) {
		char *name = xformat("%s/config.json", path);
		size_t n;
		char *text = contents_read(name, CONFIG_MAX, &n);

		c = config_parse(path, text);
		free(text), free(name);
	} else {
		struct part *part = part_open(path, "model");

		c = config_read(part);
		part_close(part);
	}
	y = of_config(&c);
	config_free(&c);
	return y;
}

/* A row of `shapes`, or the shape of a Hugging Face folder or a model file, from its config. */
static struct shape shape_of(const char *name)
{
	for (const struct shape_row *r = shapes; r->name; r++)
		if (!strcmp(r->name, name))
			return of_row(r);
	return of_path(name);
}

/* A list separated by commas. The texts and their array are one allocation. */
struct list { size_t n; char **item; };

static struct list list_of(const char *option, const char *text)
{
	struct list y = { 1, NULL };
	char *copy, *next;

	for (const char *s = text; (s = strchr(s, ',')); s++)
		y.n++;
	if (y.n > LIST_MAX)
		misuse("--%s: has %zu values, expected at most %d", option, y.n, LIST_MAX);
	y.item = xalloc(1, y.n * sizeof *y.item + strlen(text) + 1);
	copy = strcpy((char *)(y.item + y.n), text);
	for (size_t i = 0; i < y.n; i++, copy = next) {
		next = copy + strcspn(copy, ",");
		if (next == copy)
			misuse("--%s: '%s' is not a list of values separated by commas", option, text);
		*next++ = 0;
		y.item[i] = copy;
	}
	return y;
}

static size_t *lengths_of(const char *option, struct list l)
{
	size_t *y = xalloc(l.n, sizeof *y);

	for (size_t i = 0; i < l.n; i++) {
		const char *end = number_suffixed(l.item[i], &y[i]);

		if (!end || *end || y[i] < 1 || y[i] > LENGTH_MAX)
			misuse("--%s: '%s' is not a length from 1 to %d", option, l.item[i], LENGTH_MAX);
	}
	return y;
}

/* The values of a row; names are as given by the user. */
struct row { const char *model, *hardware; struct shape shape; const struct accelerator *on; };

static void add_rows(struct table *t, const struct row *r, struct list formats, const struct arithmetic *a,
	size_t n, size_t m)
{
	double first = 0;

	for (size_t i = 0; i < formats.n; i++) {
		const struct throughput p = throughput_of(&r->shape, &a[i], r->on, n, m);

		first = i ? first : p.rate;
		table_row(t, (const char *[]){ r->model, r->hardware, formats.item[i] },
			(double[]){ (double)n, (double)m, p.batch, p.stored / 1e9, p.prefill, p.decode,
				p.memory_bound, p.rate, first > 0 ? p.rate / first : NAN });
	}
}

static struct arithmetic *arithmetics_of(const struct roofline *r, struct list formats)
{
	struct arithmetic *a = xalloc(formats.n, sizeof *a);

	for (size_t i = 0; i < formats.n; i++)
		if (!arithmetic_of(formats.item[i], r->group, r->kv_bits, &a[i]))
			misuse("--formats: '%s' is not W<1 to 16>A<8 or 16>, such as W4A8",
				formats.item[i]);
	return a;
}

struct table roofline_table(const struct roofline *r)
{
	static const struct table_column column[] = { { "model", TABLE_TEXT }, { "hardware", TABLE_TEXT },
		{ "format", TABLE_TEXT }, { "prompt", TABLE_INTEGER }, { "generate", TABLE_INTEGER },
		{ "batch", TABLE_INTEGER }, { "weight_gb", TABLE_REAL }, { "prefill_s", TABLE_REAL },
		{ "decode_s", TABLE_REAL }, { "memory_bound", TABLE_REAL },
		{ "tokens_per_second", TABLE_REAL }, { "speedup", TABLE_REAL } };
	struct table t = { .columns = sizeof column / sizeof *column, .column = column };
	struct list models = list_of("models", r->models), on = list_of("hardware", r->accelerators);
	struct list formats = list_of("formats", r->formats), in = list_of("prompt", r->prompts);
	struct list out = list_of("generate", r->generates);
	size_t *prompt = lengths_of("prompt", in), *generate = lengths_of("generate", out);
	struct arithmetic *a = arithmetics_of(r, formats);
	struct accelerator *accelerator = xalloc(on.n, sizeof *accelerator);

	for (size_t k = 0; k < on.n; k++)
		if (!accelerator_of(on.item[k], &accelerator[k]))
			misuse("--hardware: '%s' is not known, expected one of %s, or NAME=GB:TB/S:BF16:FP8, "
				"the rates in 10^12 operations per second", on.item[k],
				names_of_rows(accelerators, sizeof *accelerators));
	for (size_t i = 0; i < models.n; i++) {
		struct row row = { .model = models.item[i], .shape = shape_of(models.item[i]) };

		for (size_t k = 0; k < on.n; k++) {
			row.hardware = accelerator[k].name;
			row.on = &accelerator[k];
			for (size_t n = 0; n < in.n; n++)
				for (size_t m = 0; m < out.n; m++)
					add_rows(&t, &row, formats, a, prompt[n], generate[m]);
		}
	}
	free(models.item), free(on.item), free(formats.item), free(in.item), free(out.item);
	free(prompt), free(generate), free(a), free(accelerator);
	return t;
}
