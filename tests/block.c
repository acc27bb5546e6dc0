/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * block -- a block of any architecture against the same block in plain double loops, including rows that no
 * model of the table has
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "forward/block.h"
#include "io/part.h"
#include "num/linalg.h"

enum { HIDDEN = 24, HEADS = 4, KV = 2, DIM = 12, INNER = 20, TOKENS = 11 };
enum { EXPERTS = 5, CHOSEN = 3, EXPERT = 7, SHARED = 9 };
enum { Q = HEADS * DIM, K = KV * DIM };

static struct random_stream stream;
static uint64_t drawn;

static float uniform(void)
{
	return (float)(2 * random_uniform(&stream, drawn++) - 1);
}

/* All settings that a row may have for a block. */
static const struct variant {
	const char *name;
	struct architecture row;
	double scale, cap;
	size_t rotary, window;
	bool plain;		/* without a gate projection */
	bool mixture, shared, normalized;	/* mixture of experts */
} variants[] = {
	{ "serial", { .norm_kind = NORM_RMS }, 1, 0, DIM, 0, .plain = false },
	{ "layer norms", { .norm_kind = NORM_LAYER }, 1, 0, DIM, 3, .plain = true },
	{ "parallel", { .parallel = true }, 1, 0, DIM, 0, .plain = false },
	{ "parallel, one norm", { .parallel = true, .norm = { [BEFORE_MLP] = "" } },
		1, 0, DIM, 0, .plain = true },
	{ "norms after the branches", { .norm = { [AFTER_ATTENTION] = "a", [AFTER_MLP] = "b" } },
		1, 0, DIM, 0, .plain = false },
	{ "a norm after the MLP", { .norm = { [AFTER_MLP] = "b" }, .parallel = true },
		1, 0, DIM, 0, .plain = false },
	{ "norms of heads", { .head_norm = { "q", "k" } }, 1, 0, DIM, 2, .plain = false },
	{ "rotary positions on a part of the head", { .norm_kind = NORM_LAYER }, 1, 0, 4, 0, .plain = false },
	{ "no rotary positions", { .norm_kind = NORM_LAYER }, 1, 0, 0, 0, .plain = true },
	{ "interleaved pairs", { .rotary_interleaved = true }, 1, 0, DIM, 0, .plain = false },
	{ "a part, interleaved", { .rotary_interleaved = true }, 0.3, 0, 2, 0, .plain = false },
	{ "soft-cap", { .norm_kind = NORM_RMS }, 2, 1.5, DIM, 4, .plain = false },
	{ "gains that are one more", { .norm_offset = 1, .head_norm = { "q", "k" },
		.norm = { [AFTER_MLP] = "b" } }, 1, 0, DIM, 0, .plain = false },
	{ "rotary theta with windows", { .local_theta_key = "local" }, 1, 0, DIM, 3, .plain = false },
	{ "rotary theta without windows", { .local_theta_key = "local" }, 1, 0, DIM, 0, .plain = false },
	{ "as Gemma 2", { .norm_offset = 1, .norm = { [AFTER_ATTENTION] = "a", [AFTER_MLP] = "b" } },
		0.5, 1.5, DIM, 4, .plain = false },
	{ "norms after the sums", { .before_key = "before" }, 1, 0, DIM, 0, .plain = true },
	{ "all of it", { .norm_kind = NORM_LAYER, .parallel = true,
		.head_norm = { "q", "k" }, .rotary_interleaved = true,
		.norm = { [AFTER_ATTENTION] = "a", [AFTER_MLP] = "b" } }, 0.7, 2, 4, 5, .plain = false },
	{ "experts", { .norm_kind = NORM_RMS }, 1, 0, DIM, 0, .mixture = true },
	{ "experts, shares of one", { .norm_kind = NORM_RMS }, 1, 0, DIM, 0,
		.mixture = true, .normalized = true },
	{ "experts, one of all tokens", { .norm_kind = NORM_LAYER }, 1, 0, DIM, 0,
		.mixture = true, .shared = true },
	{ "experts without gates", { .norm_kind = NORM_RMS }, 1, 0, DIM, 0, .plain = true, .mixture = true },
	{ "experts and a norm after them", { .norm = { [AFTER_MLP] = "b" }, .parallel = true }, 1, 0, DIM, 0,
		.mixture = true, .shared = true, .normalized = true },
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static const struct linear_row layers[] = {
	{ "q_proj", ROLE_Q, PROJECTION_QKV, ROWS_AS_IS, NULL },
	{ "k_proj", ROLE_K, PROJECTION_QKV, ROWS_AS_IS, NULL },
	{ "v_proj", ROLE_V, PROJECTION_QKV, ROWS_AS_IS, NULL },
	{ "o_proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL },
	{ "gate_proj", ROLE_GATE, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
	{ "up_proj", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
	{ "down_proj", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL },
	{ "shared_gate", ROLE_SHARED_GATE, PROJECTION_ROUTER, ROWS_AS_IS, NULL },
	{ "shared_up", ROLE_SHARED_UP, PROJECTION_ROUTER, ROWS_AS_IS, NULL },
	{ "router", ROLE_ROUTER, PROJECTION_ROUTER, ROWS_AS_IS, NULL },
	{ "switch", ROLE_SHARED_SWITCH, PROJECTION_ROUTER, ROWS_AS_IS, NULL },
	{ "shared_down", ROLE_SHARED_DOWN, PROJECTION_SHARED_DOWN, ROWS_AS_IS, NULL },
	{ "#_gate", ROLE_EXPERT_GATE, PROJECTION_EXPERT_GATE_UP, ROWS_AS_IS, NULL },
	{ "#_up", ROLE_EXPERT_UP, PROJECTION_EXPERT_GATE_UP, ROWS_AS_IS, NULL },
	{ "#_down", ROLE_EXPERT_DOWN, PROJECTION_EXPERT_DOWN, ROWS_AS_IS, NULL },
};

/* Layers that a block of the variant has. */
static bool has(const struct variant *v, enum role role)
{
	const bool gate = role == ROLE_GATE || role == ROLE_EXPERT_GATE;

	if (role <= ROLE_OUTPUT)
		return true;
	if (role == ROLE_SHARED_GATE || role == ROLE_SHARED_UP || role == ROLE_SHARED_SWITCH ||
	    role == ROLE_SHARED_DOWN)
		return v->shared;
	return (role > ROLE_DOWN) == v->mixture && !(v->plain && gate);
}

static struct architecture row_of(const struct variant *v)
{
	struct architecture y = v->row;
	size_t n = 0;

	y.blocks = "/blocks";
	y.norm[BEFORE_ATTENTION] = "before";
	y.norm[BEFORE_MLP] = y.norm[BEFORE_MLP] ? NULL : "second";
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
		if (has(v, layers[i].role))
			y.linear[n++] = layers[i];
	return y;
}

static bool all_sparse[1];

static struct stack stack_of(const struct variant *v, const struct architecture *row)
{
	static bool slides[] = { false, true };

	return (struct stack){ .arch = row, .hidden = HIDDEN, .heads = HEADS, .kv_heads = KV, .head_dim = DIM,
		.intermediate = INNER, .blocks = 1, .eps = 1e-5, .activation = ACTIVATION_SILU,
		.slides = &slides[v->window > 0], .rotary = v->rotary,
		.rope = { { .theta = 100, .scale = 1 }, { .theta = 7, .scale = 1.3 } },
		.parallel = row->parallel, .norms_last = row->before_key,
		.attention_scale = v->scale, .attention_cap = v->cap,
		.sliding_window = v->window,
		.experts = v->mixture ? EXPERTS : 0, .chosen = CHOSEN, .expert = EXPERT,
		.shared = v->shared ? SHARED : 0, .normalized = v->normalized, .dense = all_sparse };
}

static void write_random(struct output *out, const char *name, const char *member, size_t rows,
	size_t columns)
{
	char *path = xformat("/blocks/0/%s/%s", name, member);
	const size_t n = rows ? rows * columns : columns;
	float *x = xalloc(n, sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = uniform();
	output_write(out, path, rows ? tensor_2d(TENSOR_F32, x, rows, columns)
		: tensor_1d(TENSOR_F32, x, columns));
	free(path), free(x);
}

/* # as the number of the expert. */
static char *expert_name(const char *name, size_t e)
{
	return *name == '#' ? xformat("%zu%s", e, name + 1) : xformat("%s", name);
}

static void write_norm(struct output *out, const struct stack *s, const char *name, size_t n)
{
	if (!name)
		return;
	write_random(out, name, "weight", 0, n);
	if (s->arch->norm_kind == NORM_LAYER)
		write_random(out, name, "bias", 0, n);
}

static struct part *write_block(const struct stack *s, size_t hadamard)
{
	char path[] = "/tmp/ptq-block-XXXXXX";
	struct part *part;
	struct output *out;

	close(mkstemp(path));
	out = output_open(path, "model");
	output_start(out, 0, 1);
	for (int i = 0; i < NORM_POSITIONS; i++)
		write_norm(out, s, s->arch->norm[i], HIDDEN);
	for (int i = 0; i < 2; i++)
		write_norm(out, s, s->arch->head_norm[i], DIM);
	for (const struct linear_row *l = s->arch->linear; l->name; l++)
		for (size_t e = 0; e < stack_copies(s, l); e++) {
			char *name = expert_name(l->name, e);

			write_random(out, name, "weight", stack_out(s, l->role), stack_in(s, l->projection));
			free(name);
		}
	if (hadamard)
		output_integer(out, "/blocks/0", "kv_hadamard", (int64_t)hadamard);
	output_end(out);
	output_close(out);
	part = part_open(path, "model");
	unlink(path);
	return part;
}

/* ---- the same in double ---- */

static const float *member(const struct part *part, const char *name, const char *what)
{
	char *path = xformat("/blocks/0/%s/%s", name, what);
	struct tensor t;
	bool there = part_find(part, path, TENSOR_F32, -1, NULL, &t);

	free(path);
	return there ? t.data : NULL;
}

static void plain_norm(const struct part *part, const struct stack *s, const char *name, size_t n,
	double *x)
{
	const float *gain = member(part, name, "weight"), *shift = member(part, name, "bias");
	double mean = 0, square = 0;

	for (size_t i = 0; i < n && s->arch->norm_kind == NORM_LAYER; i++)
		mean += x[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		square += (x[i] - mean) * (x[i] - mean) / (double)n;
	for (size_t i = 0; i < n; i++)
		x[i] = (x[i] - mean) / sqrt(square + s->eps) * (double)(gain[i] + s->arch->norm_offset) +
			(shift ? (double)shift[i] : 0);
}

static void plain_linear(const struct part *part, const char *name, size_t out, size_t in, double *y,
	const double *x)
{
	const float *w = member(part, name, "weight");

	for (size_t o = 0; o < out; o++) {
		y[o] = 0;
		for (size_t i = 0; i < in; i++)
			y[o] += (double)w[o * in + i] * x[i];
	}
}

static void plain_rotate(const struct stack *s, size_t heads, size_t position, double *x)
{
	const struct rope_setting *r = &s->rope[s->arch->local_theta_key && s->sliding_window];
	size_t half = s->rotary / 2;

	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < half; i++) {
			double frequency = pow(r->theta, -2.0 * (double)i / (double)s->rotary);
			double angle = (double)position * frequency;
			double *a = x + h * DIM + (s->arch->rotary_interleaved ? 2 * i : i);
			double *b = s->arch->rotary_interleaved ? a + 1 : a + half, was = *a;

			*a = r->scale * (was * cos(angle) - *b * sin(angle));
			*b = r->scale * (*b * cos(angle) + was * sin(angle));
		}
}

/* The rounding of keys and values. */
struct keep {
	struct cache_format cache;
	size_t hadamard;		/* order; 0: none */
	double margin;			/* the smallest distance of a rounded number to a tie */
};

static void margin(struct keep *keep, double distance)
{
	keep->margin = fmin(keep->margin, distance);
}

/* The nearest value of the grid, by comparison with all values. */
static double nearest(struct keep *keep, double x, double scale)
{
	const struct format *f = &keep->cache.format;
	double best = f->grid[0], second = INFINITY;

	for (int c = 1; c < 1 << f->bits; c++)
		best = fabs(x - f->grid[c]) < fabs(x - best) ? f->grid[c] : best;
	for (int c = 0; c < 1 << f->bits; c++)
		if (f->grid[c] != (float)best)
			second = fmin(second, fabs(x - f->grid[c]));
	margin(keep, (second - fabs(x - best)) / 2 * scale);
	return best;
}

/* A group of channels of a head. */
static void plain_round(struct keep *keep, size_t n, double *x)
{
	const struct format *f = &keep->cache.format;
	double low = 0, high = 0, zero = 0, scale;

	for (size_t i = 0; i < n; i++)
		low = fmin(low, x[i]), high = fmax(high, x[i]);
	scale = (f->asymmetric ? high - low : fmax(-low, high)) / f->max;
	if (f->asymmetric) {
		zero = floor(-low / scale + 0.5);
		margin(keep, fabs(-low / scale + 0.5 - rint(-low / scale + 0.5)) * scale);
	}
	for (size_t i = 0; i < n; i++)
		x[i] = (nearest(keep, x[i] / scale + zero, scale) - zero) * scale;
}

/* x H/√n with the H of the transform, which tests/hadamard.c compares with its definition. */
static void plain_mix(size_t n, double *x)
{
	struct hadamard h;
	void *memory;

	assert_true(hadamard_choose(&h, n, n));
	memory = xalloc(hadamard_bytes(&h), 1);
	hadamard_build(&h, memory);
	hadamard_product_double(&h, false, 1, n, (double (*)[n])x);
	free(memory);
}

static void plain_keep(struct keep *keep, double q[Q], double k[K], double v[K])
{
	const size_t group = keep->cache.group ? keep->cache.group : DIM, n = keep->hadamard;

	if (!keep->cache.format.kind)	/* scores are the same without it */
		return;
	for (size_t i = 0; n && i < Q; i += n)
		plain_mix(n, q + i);
	for (size_t i = 0; n && i < K; i += n)
		plain_mix(n, k + i);
	for (size_t i = 0; i < K; i += group) {
		plain_round(keep, group, k + i);
		plain_round(keep, group, v + i);
	}
}

/* Queries, keys and values of a token at a position. */
static void plain_qkv(const struct part *part, const struct stack *s, struct keep *keep, size_t position,
	const double x[HIDDEN], double q[Q], double k[K], double v[K])
{
	plain_linear(part, "q_proj", Q, HIDDEN, q, x);
	plain_linear(part, "k_proj", K, HIDDEN, k, x);
	plain_linear(part, "v_proj", K, HIDDEN, v, x);
	for (int i = 0; i < 2 && s->arch->head_norm[0]; i++)
		for (size_t at = 0; at < (i ? K : Q); at += DIM)
			plain_norm(part, s, s->arch->head_norm[i], DIM, (i ? k : q) + at);
	plain_rotate(s, HEADS, position, q);
	plain_rotate(s, KV, position, k);
	plain_keep(keep, q, k, v);
}

static void plain_attend(const struct stack *s, size_t p, double y[Q], const double q[Q],
	double k[TOKENS][K], double v[TOKENS][K])
{
	for (size_t h = 0; h < HEADS; h++) {
		size_t from = s->sliding_window && p + 1 > s->sliding_window ? p + 1 - s->sliding_window : 0;
		size_t kv = h / (HEADS / KV) * DIM;
		double weight[TOKENS], sum = 0;

		for (size_t t = from; t <= p; t++) {
			double z = 0;

			for (size_t i = 0; i < DIM; i++)
				z += q[h * DIM + i] * k[t][kv + i] * s->attention_scale;
			z = s->attention_cap > 0 ? s->attention_cap * tanh(z / s->attention_cap) : z;
			sum += weight[t] = exp(z);
		}
		for (size_t i = 0; i < DIM; i++) {
			y[h * DIM + i] = 0;
			for (size_t t = from; t <= p; t++)
				y[h * DIM + i] += weight[t] / sum * v[t][kv + i];
		}
	}
}

/* y += share · down(act(gate) · up), with layers of these names and n channels. */
static void plain_branch(const struct part *part, const char *gate_name, const char *up_name,
	const char *down_name, size_t n, double share, double y[HIDDEN], const double x[HIDDEN])
{
	const bool gated = member(part, gate_name, "weight");
	double up[INNER], gate[INNER], down[HIDDEN];

	plain_linear(part, up_name, n, HIDDEN, up, x);
	if (gated)
		plain_linear(part, gate_name, n, HIDDEN, gate, x);
	for (size_t i = 0; i < n; i++)
		up[i] = gated ? gate[i] / (1 + exp(-gate[i])) * up[i]
			: up[i] / (1 + exp(-up[i]));
	plain_linear(part, down_name, HIDDEN, n, down, up);
	for (size_t i = 0; i < HIDDEN; i++)
		y[i] += share * down[i];
}

/* The experts with fewer than CHOSEN larger logits, each with its share of the exponentials. */
static void plain_mixture(const struct part *part, const struct stack *s, double y[HIDDEN],
	const double x[HIDDEN])
{
	double logit[EXPERTS], sum = 0, among = 0, all;
	size_t rank[EXPERTS] = { 0 };

	plain_linear(part, "router", EXPERTS, HIDDEN, logit, x);
	for (size_t e = 0; e < EXPERTS; e++) {
		for (size_t o = 0; o < EXPERTS; o++)
			rank[e] += logit[o] > logit[e];
		sum += exp(logit[e]);
		among += rank[e] < CHOSEN ? exp(logit[e]) : 0;
	}
	for (size_t e = 0; e < EXPERTS; e++) {
		char *gate = expert_name("#_gate", e), *up = expert_name("#_up", e),
			*down = expert_name("#_down", e);

		if (rank[e] < CHOSEN)
			plain_branch(part, gate, up, down, EXPERT,
				exp(logit[e]) / (s->normalized ? among : sum), y, x);
		free(gate), free(up), free(down);
	}
	if (!s->shared)
		return;
	plain_linear(part, "switch", 1, HIDDEN, &all, x);
	plain_branch(part, "shared_gate", "shared_up", "shared_down", SHARED, 1 / (1 + exp(-all)), y, x);
}

static void plain_mlp(const struct part *part, const struct stack *s, double y[HIDDEN],
	const double x[HIDDEN])
{
	memset(y, 0, HIDDEN * sizeof *y);
	if (s->experts)
		plain_mixture(part, s, y, x);
	else
		plain_branch(part, "gate_proj", "up_proj", "down_proj", INNER, 1, y, x);
}

static void add(double x[HIDDEN], const double y[HIDDEN])
{
	for (size_t i = 0; i < HIDDEN; i++)
		x[i] += y[i];
}

static void plain_block(const struct part *part, const struct stack *s, struct keep *keep,
	double x[TOKENS][HIDDEN])
{
	const struct architecture *a = s->arch;
	double q[TOKENS][Q], k[TOKENS][K], v[TOKENS][K];

	for (size_t t = 0; t < TOKENS; t++) {
		double normed[HIDDEN];

		memcpy(normed, x[t], sizeof normed);
		if (!s->norms_last)
			plain_norm(part, s, a->norm[BEFORE_ATTENTION], HIDDEN, normed);
		plain_qkv(part, s, keep, t, normed, q[t], k[t], v[t]);
	}
	for (size_t t = 0; t < TOKENS; t++) {
		double attended[Q], attention[HIDDEN], input[HIDDEN], mlp[HIDDEN];

		plain_attend(s, t, attended, q[t], k, v);
		plain_linear(part, "o_proj", HIDDEN, Q, attention, attended);
		if (a->norm[AFTER_ATTENTION])
			plain_norm(part, s, a->norm[AFTER_ATTENTION], HIDDEN, attention);
		if (!s->parallel)
			add(x[t], attention);
		if (s->norms_last)
			plain_norm(part, s, a->norm[BEFORE_ATTENTION], HIDDEN, x[t]);
		memcpy(input, x[t], sizeof input);
		if (!s->norms_last)
			plain_norm(part, s, a->norm[a->norm[BEFORE_MLP] ? BEFORE_MLP : BEFORE_ATTENTION],
				HIDDEN, input);
		plain_mlp(part, s, mlp, input);
		if (a->norm[AFTER_MLP])
			plain_norm(part, s, a->norm[AFTER_MLP], HIDDEN, mlp);
		if (s->parallel)
			add(x[t], attention);
		add(x[t], mlp);
		if (s->norms_last)
			plain_norm(part, s, a->norm[BEFORE_MLP], HIDDEN, x[t]);
	}
}

/* The largest difference, relative to the largest expected number. */
static double difference(const float x[TOKENS][HIDDEN], const double expected[TOKENS][HIDDEN])
{
	double worst = 0, max = 0;

	for (size_t i = 0; i < TOKENS * HIDDEN; i++) {
		const double y = expected[i / HIDDEN][i % HIDDEN];

		worst = fmax(worst, fabs((double)x[i / HIDDEN][i % HIDDEN] - y));
		max = fmax(max, fabs(y));
	}
	return worst / max;
}

/* Each number is the result of some 200 float sums of products, each rounded to 2^-24 of its terms. 1e-5 of
 * the largest number is far beyond these errors. */
static void all_variants(enum cpu kind)
{
	const struct sequence whole = { .length = TOKENS };
	const struct batch batch = { .rows = TOKENS, .sequences = 1, .sequence = &whole };

	for (size_t n = 0; n < VARIANTS; n++) {
		CASE("variants[%zu] %s", n, variants[n].name);
		const struct architecture row = row_of(&variants[n]);
		const struct config c = { .stacks = 1, .blocks = 1,
			.stack = { stack_of(&variants[n], &row) } };
		const struct stack *s = c.stack;
		struct part *part = write_block(s, 0);
		struct block *b = block_read(part, &c, &(struct execution){ 0 }, s, 0);
		struct work work = work_make(s, TOKENS, 4, TOKENS);	/* the MLP in chunks of 4 tokens */
		float x[TOKENS][HIDDEN];
		double y[TOKENS][HIDDEN], worst;

		for (size_t i = 0; i < TOKENS * HIDDEN; i++)
			y[i / HIDDEN][i % HIDDEN] = x[i / HIDDEN][i % HIDDEN] = uniform();
		block_forward(b, &work, &batch, x, NULL, NULL);
		plain_block(part, s, &(struct keep){ .hadamard = 0 }, y);
		worst = difference(x, y);
		print_message("# %-26s %.2g, kernels %d\n", variants[n].name, worst, (int)kind);
		assert_true(worst < 1e-5);
		work_free(&work);
		block_free(b);
		part_close(part);
	}
}

/* The inputs of projections and the number of calls, separately for experts. */
enum { OF_EXPERTS = PROJECTIONS, SLOTS = OF_EXPERTS + 2 * EXPERTS };
struct seen {
	float *x[SLOTS];
	size_t bytes[SLOTS], times[SLOTS];
};

static void keep(struct seen *s, size_t slot, size_t n, const float x[n])
{
	free(s->x[slot]);
	s->bytes[slot] = n * sizeof *x;
	s->x[slot] = memcpy(xalloc(s->bytes[slot], 1), x, s->bytes[slot]);
	s->times[slot]++;
}

static void see(void *arg, size_t block, enum projection_name p, const struct batch *batch, size_t first,
	size_t rows, size_t in, const float *x)
{
	(void)block;
	assert_true(first == 0 && rows == batch->rows);
	keep(arg, p, rows * in, x);
}

static void see_expert(void *arg, size_t block, enum projection_name p, size_t expert, size_t rows, size_t in,
	const int32_t token[], const float *x)
{
	(void)block, (void)token;
	keep(arg, OF_EXPERTS + 2 * expert + (p == PROJECTION_EXPERT_DOWN), rows * in, x);
}

/* The projection of a slot. */
static unsigned projection_of(size_t slot)
{
	return (unsigned)(slot < OF_EXPERTS ? slot :
		slot % 2 ? PROJECTION_EXPERT_DOWN : PROJECTION_EXPERT_GATE_UP);
}

/* All of these inputs, each from a stage, and then the rest of the block: the same bits as in one pass. */
static void run_stages(const struct block *b, struct work *w, const struct batch *batch, unsigned inputs,
	const float from[TOKENS][HIDDEN], const float to[TOKENS][HIDDEN], const struct seen *once)
{
	struct seen seen = { 0 };
	const struct observer observer = { .on_input = see, .arg = &seen, .on_expert_input = see_expert };
	struct stage stage = { PROJECTION_QKV, PROJECTIONS };
	float x[TOKENS][HIDDEN];

	memcpy(x, from, sizeof x);
	for (unsigned p = 0; p < PROJECTIONS; p++) {
		if (!(inputs & 1U << p))
			continue;
		stage.to = (enum projection_name)p;
		block_stage(b, w, batch, x, stage, &observer);
		stage.from = block_resume(b->stack, stage);
	}
	stage.to = PROJECTIONS;
	block_stage(b, w, batch, x, stage, NULL);
	assert_memory_equal(x, to, sizeof x);
	for (size_t i = 0; i < SLOTS; i++) {
		const bool wanted = inputs >> projection_of(i) & 1 && once->times[i];

		assert_int_equal(seen.times[i], wanted);
		assert_true(!wanted || seen.bytes[i] == once->bytes[i]);
		if (wanted)
			assert_memory_equal(seen.x[i], once->x[i], seen.bytes[i]);
		free(seen.x[i]);
	}
}

/* Every subset of the projections of the block. */
static void run_sets(const struct block *b, struct work *w, const struct batch *batch,
	const float from[TOKENS][HIDDEN], const float to[TOKENS][HIDDEN], const struct seen *once)
{
	unsigned there = 0;

	for (size_t i = 0; i < SLOTS; i++)
		there |= once->times[i] ? 1U << projection_of(i) : 0;
	assert_int_equal(there & 1U << PROJECTION_ROUTER, b->stack->experts ? 1U << PROJECTION_ROUTER : 0);
	for (unsigned inputs = 0; inputs < 1U << PROJECTIONS; inputs++)
		if (!(inputs & ~there))
			run_stages(b, w, batch, inputs, from, to, once);
}

static void stages_are_the_block(void **unused)
{
	const struct sequence whole = { .length = TOKENS };
	const struct batch batch = { .rows = TOKENS, .sequences = 1, .sequence = &whole };

	(void)unused;
	for (size_t n = 0; n < VARIANTS; n++) {
		CASE("variants[%zu] %s", n, variants[n].name);
		const struct architecture row = row_of(&variants[n]);
		const struct config c = { .stacks = 1, .blocks = 1,
			.stack = { stack_of(&variants[n], &row) } };
		struct part *part = write_block(c.stack, 0);
		struct block *b = block_read(part, &c, &(struct execution){ 0 }, c.stack, 0);
		struct work work = work_make(c.stack, TOKENS, TOKENS, TOKENS);
		struct seen once = { 0 };
		float x[TOKENS][HIDDEN], y[TOKENS][HIDDEN];

		for (size_t i = 0; i < TOKENS * HIDDEN; i++)
			x[i / HIDDEN][i % HIDDEN] = uniform();
		memcpy(y, x, sizeof y);
		block_forward(b, &work, &batch, y, NULL, &(struct observer){ .on_input = see, .arg = &once,
			.on_expert_input = see_expert });
		run_sets(b, &work, &batch, x, y, &once);
		for (size_t i = 0; i < SLOTS; i++)
			free(once.x[i]);
		work_free(&work);
		block_free(b);
		part_close(part);
	}
}

static void blocks_are_their_rows(void **unused)
{
	const enum cpu kind = cpu, widest = cpu_widest;

	(void)unused;
	for (enum cpu one = CPU_PLAIN; one <= widest; one++) {
		CASE("one %d", (int)one);
		cpu = cpu_widest = one;
		all_variants(one);
	}
	cpu = kind, cpu_widest = widest;
}

/* Tokens in chunks of this size, with a cache. */
static void by_pieces(const struct block *b, struct work *w, size_t piece, float x[TOKENS][HIDDEN])
{
	struct cache cache = cache_make(b->stack, 1, TOKENS);

	for (size_t past = 0, n; past < TOKENS; past += n) {
		const struct sequence s = { .length = n = TOKENS - past < piece ? TOKENS - past : piece,
			.past = past };

		block_forward(b, w, &(struct batch){ .rows = n, .sequences = 1, .sequence = &s }, x + past,
			&cache, NULL);
	}
	cache_free(&cache);
}

/*
 * Numbers are drawn again if a key, a value or a zero point is so near to a point where rounding changes that
 * float sums may fall on the other side. Keys are sums of some 50 terms of at most 4, each rounded to 2^-24.
 */
static void draw_apart(const struct part *part, const struct stack *s, struct keep *keep,
	float x[TOKENS][HIDDEN], double y[TOKENS][HIDDEN])
{
	size_t tries = 0;

	do {
		assert_true(tries++ < 1000);
		keep->margin = INFINITY;
		for (size_t i = 0; i < TOKENS * HIDDEN; i++)
			y[i / HIDDEN][i % HIDDEN] = x[i / HIDDEN][i % HIDDEN] = uniform();
		plain_block(part, s, keep, y);
	} while (keep->margin < 1e-5);
}

/* One of six variants in each run, so that all occur. */
static void kept_in(size_t round, const char *format, size_t group, size_t hadamard)
{
	const struct sequence whole = { .length = TOKENS };
	const struct batch batch = { .rows = TOKENS, .sequences = 1, .sequence = &whole };
	double max = 0;

	for (size_t n = round % 6; n < VARIANTS; n += 6) {
		CASE("variants[%zu] %s", n, variants[n].name);
		const struct architecture row = row_of(&variants[n]);
		const struct config c = { .stacks = 1, .blocks = 1,
			.stack = { stack_of(&variants[n], &row) } };
		struct execution execution = { .cache.group = group };
		struct part *part = write_block(c.stack, hadamard);
		struct work work = work_make(c.stack, TOKENS, 4, TOKENS);
		struct block *b = block_read(part, &c, &execution, c.stack, 0);
		struct keep keep = { .hadamard = hadamard };
		float x[TOKENS][HIDDEN], at_once[TOKENS][HIDDEN], kept[TOKENS][HIDDEN];
		double y[TOKENS][HIDDEN];

		assert_true(!format || format_parse(&execution.cache.format, format));
		keep.cache = execution.cache;
		draw_apart(part, c.stack, &keep, x, y);
		memcpy(at_once, x, sizeof x);
		block_forward(b, &work, &batch, at_once, NULL, NULL);
		max = fmax(max, difference(at_once, y));
		for (size_t piece = 1; piece <= TOKENS; piece += 5) {
			memcpy(kept, x, sizeof x);
			by_pieces(b, &work, piece, kept);
			max = fmax(max, difference(kept, y));
		}
		assert_memory_equal(kept, at_once, sizeof kept);	/* the last chunk had all tokens */
		work_free(&work);
		block_free(b);
		part_close(part);
	}
	print_message("# %-8s in groups of %2zu, Hadamard of %2zu: %.2g\n", format ? format : "none", group,
		hadamard, max);
	assert_true(max < 1e-5);
}

static void keys_and_values_are_rounded(void **unused)
{
	static const struct { const char *format; size_t group, hadamard; } cases[] = {
		{ NULL, 0, 4 }, { NULL, 0, DIM }, { "int4", 0, 0 }, { "int4", 0, DIM }, { "int8", 4, 0 },
		{ "int8", 0, 2 }, { "uint4", 0, 0 }, { "uint4", 3, 0 }, { "uint2", 6, 4 },
		{ "uint8", 1, 0 }, { "e4m3fn", 0, 0 }, { "e4m3fn", 6, DIM }, { "e2m1", 4, 0 },
		{ "e5m2ieee", 0, 0 }, { "nf4", 0, 4 }, { "int2", 2, 0 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CASE("cases[%zu] %s", i, cases[i].format);
		kept_in(i, cases[i].format, cases[i].group, cases[i].hadamard);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_their_rows), cmocka_unit_test(stages_are_the_block),
		cmocka_unit_test(keys_and_values_are_rounded),
	};

	threads_init(0);
	linalg_init();
	stream = random_open(1, "block");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
