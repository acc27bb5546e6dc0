/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invariant -- changes of weights that do not change the function of a model: logits before and after, in
 * double, of every architecture (invariant_reference.h) with random weights, and of rows that no model of the
 * table has
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "invariant_reference.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer_ref.h"
#include "model/residual.h"
#include "model/tokens.h"
#include "num/linalg.h"
#include "transform/invariant.h"
#include "vision/vision.h"

/* Sums of some hundred products in double through a few blocks, each rounded to 2^-53 of its terms. */
static const double most = 1e-10;

static const char *const models[] = {
	"llama-gqa", "llama-rope", "llama-linear", "llama-tied", "qwen2-bias", "qwen2-window",
	"mistral-window", "gpt2", "qwen3-window", "neox-parallel", "neox-serial",
	"mixtral", "qwen2-moe", "qwen3-moe",
	"phi3-window", "phi3-long",
	"gemma", "gemma2", "gemma3", "opt", "opt-post",
};
enum { MODELS = sizeof models / sizeof *models };

static struct random_stream stream;
static uint64_t drawn;

static double uniform(void)
{
	return 2 * random_uniform(&stream, drawn++) - 1;
}

static double *random_vector(size_t n, double middle, double width)
{
	double *y = xalloc(n, sizeof *y);

	for (size_t i = 0; i < n; i++)
		y[i] = middle + width * uniform();
	return y;
}

/* ---- a model of random weights ---- */

static char *ref(const char *name)
{
	const char *folder = getenv("PTQ_REF");

	return folder ? xformat("%s/%s.h5", folder, name) : xformat("tests/ref/%s.h5", name);
}

static struct wide_norm random_norm(size_t n, enum norm_kind kind)
{
	return (struct wide_norm){ .kind = kind, .n = n, .gain = random_vector(n, 1, 0.5),
		.shift = kind == NORM_LAYER ? random_vector(n, 0, 0.7) : NULL };
}

static bool has_bias(const struct model *m, const struct residual_layer *l)
{
	struct layer_ref layer;
	const struct linear_row *row = layer_ref_find(&m->config, l->path, &layer) ?
		layer_ref_row(&layer) : NULL;

	return row && layer.stack->bias[row->role];
}

/* Random weights of the shapes from m->config. */
static void fill(struct model *m)
{
	const struct config *c = &m->config;
	const struct stack *s = config_last(c);

	if (c->vision.class) {
		residual_images(&m->at, c);
		m->patch = random_vector(ROWS * vision_numbers(&c->vision), 0.2, 1);
	}
	residual_embedding(&m->at, c);
	if (m->arch.position) {
		residual_position(&m->at, c);
		m->at.layer[m->at.layers - 1].out = TOKENS + m->arch.position_offset;
	}
	for (const struct stack *every = c->stack; every <= s; every++)
		for (size_t i = 0; i < every->blocks; i++)
			residual_block(&m->at, c, every, i);
	residual_end(&m->at, c);
	m->layer = xalloc(m->at.layers, sizeof *m->layer);
	m->norm = xalloc(m->at.norms, sizeof *m->norm);
	m->head_norm = xalloc(2 * s->blocks, sizeof *m->head_norm);
	for (size_t i = 0; i < m->at.layers; i++) {
		const struct residual_layer *l = &m->at.layer[i];
		const double width = l->table ? 1 : sqrt(3 / (double)l->in);

		m->layer[i].w = random_vector(l->out * l->in, 0.3 * width, width);
		m->layer[i].bias = has_bias(m, l) ? random_vector(l->out, 0.2, 0.5) : NULL;
	}
	for (size_t i = 0; i < m->at.norms; i++)
		m->norm[i] = random_norm(m->at.norm[i].stack->hidden, m->at.norm[i].stack->arch->norm_kind);
	for (size_t i = 0; i < 2 * s->blocks && m->arch.head_norm[0]; i++)
		m->head_norm[i] = random_norm(s->head_dim, m->arch.norm_kind);
	for (size_t i = 0; i < TOKENS; i++)
		m->id[i] = (int32_t)(random_uniform(&stream, drawn++) * (double)m->config.vocab);
}

/* The configuration of a reference model, with norms of the given kind. */
static void configure(struct model *m, const char *name, enum norm_kind kind)
{
	char *path = ref(name);
	struct part *part = part_open(path, "model");

	*m = (struct model){ .config = config_read(part) };
	m->arch = *m->config.arch;
	m->arch.norm_kind = kind;
	m->config.arch = m->config.stack[m->config.stacks - 1].arch = &m->arch;
	part_close(part);
	free(path);
}

static void make_as(struct model *m, const char *name, enum norm_kind kind)
{
	configure(m, name, kind);
	fill(m);
}

static void free_norm(struct wide_norm *n)
{
	free(n->gain), free(n->shift);
}

static void free_model(struct model *m)
{
	for (size_t i = 0; i < m->at.layers; i++)
		free(m->layer[i].w), free(m->layer[i].bias);
	for (size_t i = 0; i < m->at.norms; i++)
		free_norm(&m->norm[i]);
	for (size_t i = 0; i < 2 * config_last(&m->config)->blocks; i++)
		free_norm(&m->head_norm[i]);
	free(m->layer), free(m->norm), free(m->head_norm), free(m->patch);
	residual_free(&m->at);
	config_free(&m->config);
}

/* ---- changes ---- */

static const char *hindered(const struct model *m, const struct invariant *t)
{
	const char *why = NULL;

	for (size_t i = 0; i < m->at.norms && !why; i++)
		why = invariant_refusal(t, &m->at.norm[i], &m->norm[i]);
	for (size_t i = 0; i < m->at.layers && !why; i++)
		why = invariant_layer_refusal(t, &m->at.layer[i]);
	return why;
}

/* but: a layer that is not changed; SIZE_MAX: none. */
static void change(struct model *m, const struct invariant *t, size_t but)
{
	for (size_t i = 0; i < m->at.layers; i++) {
		const struct residual_layer *l = &m->at.layer[i];
		const struct wide_norm *norm = l->norm < 0 ? NULL : &m->norm[l->norm];
		struct layer_of *y = &m->layer[i];
		const size_t tile = invariant_by_rows(l) ? 5 : l->out;

		if (i == but)
			continue;
		if (!y->bias && invariant_biased(t, l, norm))
			y->bias = xalloc(l->out, sizeof *y->bias);
		y->online = invariant_online(t, l);
		for (size_t o = 0; o < l->out; o += tile)
			invariant_layer(t, l, norm, l->out - o < tile ? l->out - o : tile,
				(double (*)[l->in])(y->w + o * l->in), y->bias ? y->bias + o : NULL);
	}
	for (size_t i = 0; i < m->at.norms; i++)
		invariant_norm(t, &m->at.norm[i], &m->norm[i]);
}

static double difference(const struct model *m, const double *a, const double *b)
{
	double worst = 0, top = 0;

	for (size_t i = 0; i < TOKENS * m->config.vocab; i++) {
		worst = fmax(worst, isfinite(b[i]) ? fabs(a[i] - b[i]) : INFINITY);
		top = fmax(top, fabs(a[i]));
	}
	return worst / top;
}

static bool all_of(const struct model *m, enum norm_kind kind)
{
	for (size_t i = 0; i < m->at.norms; i++)
		if (m->norm[i].kind != kind)
			return false;
	return true;
}

/* Whether norms have gain 1 and no shift, except those after branches. */
static bool folded(const struct model *m)
{
	for (size_t i = 0; i < m->at.norms; i++)
		for (size_t j = 0; m->at.norm[i].use == NORM_PRE && j < m->norm[i].n; j++)
			if (m->norm[i].gain[j] != 1 || m->norm[i].shift)
				return false;
	return true;
}

/* For norms after branches. */
static void make_constant(struct model *m)
{
	for (size_t i = 0; i < m->at.norms; i++)
		for (size_t j = 0; m->at.norm[i].use == NORM_BRANCH && j < m->norm[i].n; j++)
			m->norm[i].gain[j] = m->norm[i].gain[0];
}

/* Whether the model has norms after branches. */
static bool normed(const struct model *m)
{
	return m->arch.norm[AFTER_ATTENTION] || m->arch.norm[AFTER_MLP];
}

static const struct invariant ln2rms = { .fold = true, .centre = true };

static void layer_norms_of_every_architecture(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct model m;
		double *before, *after, d;

		make_as(&m, models[i], NORM_LAYER);
		if (m.config.stack->norms_last) {
			assert_non_null(strstr(hindered(&m, &ln2rms), "norm of the residual stream itself"));
			free_model(&m);
			continue;
		}
		if (normed(&m))
			assert_non_null(strstr(hindered(&m, &ln2rms), "output has a mean"));
		make_constant(&m);
		assert_null(hindered(&m, &ln2rms));
		before = run(&m);
		assert_true(m.stream_mean > 1e-3);
		change(&m, &ln2rms, SIZE_MAX);
		after = run(&m);
		d = difference(&m, before, after);
		print_message("# %-16s as a model of LayerNorms: %.2g\n", models[i], d);
		assert_true(d < most && all_of(&m, NORM_RMS) && folded(&m) && m.stream_mean < 1e-13);
		free(before), free(after);
		free_model(&m);
	}
}

/* Every change is needed: without any one of the layers the logits differ. */
static void every_layer_counts(void **unused)
{
	static const char *const names[] = { "gpt2", "neox-parallel", "qwen2-moe" };

	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t but = 0, layers = 1; but < layers; but++) {
			CASE("%s, but %zu", names[i], but);
			struct model m;
			double *before, *after;

			drawn = 0;
			make_as(&m, names[i], NORM_LAYER);
			layers = m.at.layers;
			before = run(&m);
			change(&m, &ln2rms, but);
			after = run(&m);
			/* except for experts that no token reaches */
			if (!strstr(m.at.layer[but].path, "experts"))
				assert_true(difference(&m, before, after) > 1e-5);
			free(before), free(after);
			free_model(&m);
		}
	drawn = 0;
}

static void folded_alone(void **unused)
{
	static const struct invariant fold = { .fold = true };

	(void)unused;
	for (size_t i = 0; i < 2 * MODELS; i++) {
		CASE("%s, layer norm %zu", models[i / 2], i % 2);
		struct model m;
		double *before, *after;

		make_as(&m, models[i / 2], i % 2 ? NORM_LAYER : NORM_RMS);
		if (!m.config.stack->norms_last) {
			before = run(&m);
			change(&m, &fold, SIZE_MAX);
			after = run(&m);
			assert_true(difference(&m, before, after) < most && folded(&m));
			free(before), free(after);
		}
		free_model(&m);
	}
}

/* Outputs of norms before branches are divided by factors, and the layers that read them are multiplied
 * (smooth-scale). */
static void smoothed(void **unused)
{
	static const struct invariant none = { .fold = false };

	(void)unused;
	for (size_t i = 0; i < 2 * MODELS; i++) {
		CASE("%s, layer norm %zu", models[i / 2], i % 2);
		double *before, *after, *factor[64] = { NULL };
		size_t factors = 0;
		struct model m;

		make_as(&m, models[i / 2], i % 2 ? NORM_LAYER : NORM_RMS);
		assert_true(m.at.norms <= 64);
		for (size_t k = 0; k < m.at.norms; k++) {
			if (m.at.norm[k].use != NORM_PRE)
				continue;
			factor[factors] = m.norm[k].factor = random_vector(m.norm[k].n, 0, 1);
			for (size_t j = 0; j < m.norm[k].n; j++)
				factor[factors][j] = exp(factor[factors][j]);
			factors++;
		}
		before = run(&m);
		change(&m, &none, SIZE_MAX);
		after = run(&m);
		assert_true(difference(&m, before, after) < most);
		assert_true(m.config.stack->norms_last || factors > 1);
		free(before), free(after);
		for (size_t k = 0; k < factors; k++)
			free(factor[k]);
		free_model(&m);
	}
}

/* The models, whether down has a source (o has), and how many heads share a head of values. */
static const struct { const char *name; bool down; size_t shared; } sources[] = {
	{ "llama-gqa", true, 2 }, { "gpt2", false, 1 }, { "neox-parallel", false, 1 }, { "opt", true, 1 },
	{ "opt-post", false, 1 }, { "qwen2-moe", true, 2 }, { "gemma2", true, 2 }, { "phi3-window", true, 3 },
};

/* Outputs of a layer are divided by factors, and the layer that reads them is multiplied (awq-scale,
 * smooth-scale --random). */
static void sources_scaled(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		CASE("sources[%zu] %s", i, sources[i].name);
		double *before, *after;
		size_t outputs = 0, downs = 0;
		struct model m;

		make_as(&m, sources[i].name, NORM_RMS);
		before = run(&m);
		for (size_t k = 0; k < m.at.layers; k++) {
			const struct residual_layer *l = &m.at.layer[k], *s;
			struct layer_of *of;
			double *factor, *columns;
			size_t rows;

			if (l->source == RESIDUAL_NONE)
				continue;
			s = &m.at.layer[l->source];
			of = &m.layer[l->source];
			rows = s->out - s->first;
			assert_int_equal(l->in, rows * l->shared);
			assert_int_equal(l->shared, l->columns == CHANNELS_VALUE ? sources[i].shared : 1);
			factor = random_vector(rows, 0, 1);
			columns = random_vector(l->in, 0, 1);
			for (size_t j = 0; j < rows; j++)
				factor[j] = exp(factor[j]);
			for (size_t j = 0; j < l->in; j++)
				columns[j] = factor[residual_channel(l, j)];
			invariant_scale(columns, NULL, l->out, l->in, (double (*)[l->in])m.layer[k].w, NULL);
			invariant_scale(NULL, factor, rows, s->in, (double (*)[s->in])of->w + s->first,
				of->bias ? of->bias + s->first : NULL);
			outputs += l->columns == CHANNELS_VALUE;
			downs += l->columns == CHANNELS_INNER;
			free(factor), free(columns);
		}
		after = run(&m);
		assert_true(difference(&m, before, after) < most);
		assert_true(outputs > 0 && sources[i].down == (downs > 0));
		free(before), free(after);
		free_model(&m);
	}
}

static void rms_norms_are_left(void **unused)
{
	struct model m;

	(void)unused;
	make_as(&m, "llama-gqa", NORM_RMS);
	assert_non_null(strstr(hindered(&m, &ln2rms), "RMS norm already"));
	free_model(&m);
}

/* x + LayerNorm(f(x)) (MQuant figure 3): no other norms. */
static void norms_after_branches(void **unused)
{
	(void)unused;
	for (int experts = 0; experts < 2; experts++) {
		CASE("experts %d", experts);
		struct model m;
		double *before, *after, d;

		configure(&m, experts ? "qwen2-moe" : "gpt2", NORM_LAYER);
		m.arch.norm[BEFORE_ATTENTION] = m.arch.norm[BEFORE_MLP] = m.arch.final_norm = NULL;
		m.arch.norm[AFTER_ATTENTION] = "after_attention";
		m.arch.norm[AFTER_MLP] = "after_mlp";
		fill(&m);
		assert_null(hindered(&m, &ln2rms));
		before = run(&m);
		change(&m, &ln2rms, SIZE_MAX);
		after = run(&m);
		d = difference(&m, before, after);
		print_message("# x + LayerNorm(f(x))%s: %.2g\n", experts ? ", experts" : "", d);
		assert_true(d < most && all_of(&m, NORM_RMS));
		free(before), free(after);
		free_model(&m);
	}
}

/* An orthogonal matrix from random numbers (Gram and Schmidt, twice for the last digits). */
static double *random_orthogonal(size_t n)
{
	double *q = random_vector(n * n, 0, 1);

	for (size_t i = 0; i < n; i++) {
		double *row = q + i * n, square = 0;

		for (size_t k = 0; k < 2 * i; k++) {
			const double *other = q + k % i * n;
			double dot = 0;

			for (size_t j = 0; j < n; j++)
				dot += row[j] * other[j];
			for (size_t j = 0; j < n; j++)
				row[j] -= dot * other[j];
		}
		for (size_t j = 0; j < n; j++)
			square += row[j] * row[j];
		for (size_t j = 0; j < n; j++)
			row[j] /= sqrt(square);
	}
	return q;
}

static const struct { const char *name; struct rotation_options o; bool dense; } ways[] = {
	{ "hadamard", { .seed = 3 }, false }, { "blocks", { .block = 4 }, false },
	{ "offline", { .seed = 4, .offline = true }, false }, { "dense", { .seed = 5 }, true },
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct rotations rotations_by(const struct config *c, size_t way)
{
	struct rotations r = rotations_make(c, &ways[way].o, (const bool [STACKS]){ false }, NULL);

	if (ways[way].dense) {
		r.residual->dense = random_orthogonal(c->stack->hidden);
		r.value->dense = random_orthogonal(c->stack->head_dim);
	}
	return r;
}

/* Whether any layer was rotated for an online Hadamard. */
static bool any_online(const struct model *m)
{
	for (size_t i = 0; i < m->at.layers; i++)
		if (m->layer[i].online)
			return true;
	return false;
}

static void rotations_of_every_architecture(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS * WAYS; i++) {
		CASE("%s, %s", models[i / WAYS], ways[i % WAYS].name);
		struct model m;
		struct rotations r;
		struct invariant rotate = { .fold = true };
		const size_t way = i % WAYS;
		double *before, *after, d;

		make_as(&m, models[i / WAYS], NORM_RMS);
		r = rotations_by(&m.config, way);
		rotate.rotations = &r;
		if (normed(&m))
			assert_non_null(strstr(hindered(&m, &rotate), "a gain for each channel"));
		make_constant(&m);
		if (m.config.stack->norms_last) {
			assert_non_null(strstr(hindered(&m, &rotate), "norm of the residual stream itself"));
			rotations_free(&r);
			free_model(&m);
			continue;
		}
		assert_null(hindered(&m, &rotate));
		before = run(&m);
		change(&m, &rotate, SIZE_MAX);
		after = run(&m);
		d = difference(&m, before, after);
		print_message("# %-16s %-9s %.2g\n", models[i / WAYS], ways[way].name, d);
		assert_true(d < most && folded(&m) && any_online(&m) == !ways[way].o.offline);
		free(before), free(after);
		rotations_free(&r);
		free_model(&m);
	}
}

/* LayerNorms become RMS norms first. */
static void rotated_behind_ln2rms(void **unused)
{
	static const char *const names[] = { "gpt2", "opt", "neox-parallel", "neox-serial", "qwen2-moe" };

	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		CASE("%s", names[i]);
		struct model m;
		struct rotations r;
		struct invariant rotate = { .fold = true };
		double *before, *after;

		make_as(&m, names[i], NORM_LAYER);
		r = rotations_by(&m.config, 0);
		rotate.rotations = &r;
		assert_non_null(strstr(hindered(&m, &rotate), "ln2rms"));
		before = run(&m);
		change(&m, &ln2rms, SIZE_MAX);
		assert_null(hindered(&m, &rotate));
		change(&m, &rotate, SIZE_MAX);
		after = run(&m);
		assert_true(difference(&m, before, after) < most);
		free(before), free(after);
		rotations_free(&r);
		free_model(&m);
	}
}

/* x + RMSNorm(f(x)) c + β: the stream can be rotated if the gain is one number; the shift is rotated too. */
static void rotated_past_norms_after_branches(void **unused)
{
	struct model m;
	struct rotations r;
	struct invariant rotate = { .fold = true, .rotations = &r };
	double *before, *after;

	(void)unused;
	configure(&m, "gpt2", NORM_LAYER);
	m.arch.norm[BEFORE_ATTENTION] = m.arch.norm[BEFORE_MLP] = m.arch.final_norm = NULL;
	m.arch.norm[AFTER_ATTENTION] = "after_attention";
	m.arch.norm[AFTER_MLP] = "after_mlp";
	fill(&m);
	r = rotations_by(&m.config, 0);
	before = run(&m);
	change(&m, &ln2rms, SIZE_MAX);
	assert_non_null(strstr(hindered(&m, &rotate), "a gain for each"));
	free(before);
	make_constant(&m);
	assert_null(hindered(&m, &rotate));
	before = run(&m);
	change(&m, &rotate, SIZE_MAX);
	after = run(&m);
	assert_true(difference(&m, before, after) < most);
	free(before), free(after);
	rotations_free(&r);
	free_model(&m);
}

/* Every rotation is needed. */
static void every_layer_rotates(void **unused)
{
	static const char *const names[] = { "gpt2", "qwen2-moe" };

	(void)unused;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t but = 0, layers = 1; but < layers; but++) {
			CASE("%s, but %zu", names[i], but);
			struct model m;
			struct rotations r;
			struct invariant rotate = { .fold = true, .rotations = &r };
			double *before, *after;

			drawn = 0;
			make_as(&m, names[i], NORM_RMS);
			r = rotations_by(&m.config, 0);
			layers = m.at.layers;
			before = run(&m);
			change(&m, &rotate, but);
			after = run(&m);
			if (!strstr(m.at.layer[but].path, "experts"))
				assert_true(difference(&m, before, after) > 1e-5);
			free(before), free(after);
			rotations_free(&r);
			free_model(&m);
		}
	drawn = 0;
}

/* ---- vision-language models ---- */

static const struct { const char *name; bool post; } visions[] = {
	{ "vision/vipllava", false }, { "vision/qwen2-vl", false }, { "vision/llava-clip", true },
	{ "vision/idefics3", false },
};
enum { VISIONS = sizeof visions / sizeof *visions };

/* The encoder has LayerNorms, the language model norms of the given kind. post: x + LayerNorm(f(x)), without
 * a norm at the start. Rows and columns of images are not rotated: the test of the language model covers
 * positions. */
static void make_vision(struct model *m, const char *name, bool post, enum norm_kind kind)
{
	configure(m, name, kind);
	m->encoder = *config_encoder(&m->config)->arch;
	if (post) {
		for (int i = 0; i < 2; i++) {
			m->encoder.norm[AFTER_ATTENTION + i] = m->encoder.norm[BEFORE_ATTENTION + i];
			m->encoder.norm[BEFORE_ATTENTION + i] = NULL;
		}
		m->encoder.embedding_norm = NULL;
	}
	m->config.stack[0].arch = &m->encoder;
	m->config.stack[0].rotary = 0;
	fill(m);
}

static struct invariant ln2rms_of(enum norm_kind kind)
{
	return (struct invariant){ .fold = true, .centre = true,
		.unchanged = { [STACKS - 1] = kind == NORM_RMS } };
}

/* Changes the model, and returns the difference of the logits. */
static double changed_by(struct model *m, const struct invariant *t)
{
	double *before = run(m), *after, d;

	assert_null(hindered(m, t));
	change(m, t, SIZE_MAX);
	after = run(m);
	d = difference(m, before, after);
	free(before), free(after);
	return d;
}

/* ln2rms, then a rotation of both streams. Norms that write into the stream of the encoder have one gain. */
static void encoders(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < 2 * VISIONS; i++) {
		CASE("%s, layer norm %zu", visions[i / 2].name, i % 2);
		const enum norm_kind kind = i % 2 ? NORM_LAYER : NORM_RMS;
		const struct invariant convert = ln2rms_of(kind);
		struct model m;
		struct rotations r;
		struct invariant rotate = { .fold = true, .rotations = &r };
		const char *name = visions[i / 2].name, *why;
		double converted, rotated;

		make_vision(&m, name, visions[i / 2].post, kind);
		r = rotations_make(&m.config, &ways[0].o, rotate.unchanged, NULL);
		assert_non_null(strstr(hindered(&m, &rotate), "ln2rms"));
		why = hindered(&m, &convert);
		assert_true(!why == !m.encoder.embedding_norm);	/* which has many gains */
		make_constant(&m);
		converted = changed_by(&m, &convert);
		assert_true(all_of(&m, NORM_RMS));
		rotated = changed_by(&m, &rotate);
		print_message("# %s%s: %.2g, %.2g\n", name, i % 2 ? ", LayerNorms" : "", converted, rotated);
		assert_true(converted < most && rotated < most && any_online(&m));
		rotations_free(&r);
		free_model(&m);
	}
}

/* Visual tokens first: the logits of each token are unchanged (AIFS). */
static void visual_tokens_first(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < VISIONS + MODELS; i++) {
		const char *name = i < VISIONS ? visions[i].name : models[i - VISIONS];
		uint8_t modality[TOKENS] = { 0, 1, 1, 0, 1, 0, 0, 1, 0 };
		size_t order[TOKENS];
		struct model m;
		double *before, *after, worst = 0, top = 0;

		CASE("%s", name);
		if (i < VISIONS)
			make_vision(&m, name, visions[i].post, NORM_RMS);
		else
			make_as(&m, name, NORM_RMS);
		for (size_t t = 0; i < VISIONS && t < TOKENS; t++)
			modality[t] = t && t < TOKENS - 1;
		tokens_visual_first(TOKENS, order, modality, NULL);
		before = run(&m);
		m.order = order;
		after = run(&m);
		for (size_t t = 0; t < TOKENS; t++)
			for (size_t k = 0; k < m.config.vocab; k++) {
				const double x = before[order[t] * m.config.vocab + k];

				worst = fmax(worst, fabs(after[t * m.config.vocab + k] - x));
				top = fmax(top, fabs(x));
			}
		assert_true(order[0] != 0 && worst / top < most);
		free(before), free(after);
		free_model(&m);
	}
}

/* A projector that reads the stream without a norm depends on its mean; the language model can be rotated
 * alone. */
static void encoders_left(void **unused)
{
	const struct invariant convert = ln2rms_of(NORM_RMS);
	struct model m;
	struct rotations r;
	struct invariant rotate = { .fold = true, .rotations = &r, .unchanged = { true } };

	(void)unused;
	make_vision(&m, "vision/llava-clip", false, NORM_RMS);
	make_constant(&m);
	assert_non_null(strstr(hindered(&m, &convert), "reads the stream without a norm"));
	r = rotations_make(&m.config, &ways[0].o, rotate.unchanged, NULL);
	assert_true(changed_by(&m, &rotate) < most);
	for (size_t i = 0; i < m.at.norms; i++)
		assert_true((m.at.norm[i].stack == m.config.stack) == (m.norm[i].kind == NORM_LAYER));
	rotations_free(&r);
	free_model(&m);
}

/* Whether ln2rms changes the layer: in a post-norm encoder only the layers before norms. */
static bool counts(const struct residual_layer *l)
{
	const bool post = !l->reads.normed;

	return !post || (l->rows == CHANNELS_RESIDUAL && (l->norm != RESIDUAL_NONE || l->adds.normed));
}

/* Every change of an encoder or its projector is needed. */
static void every_layer_of_images_counts(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < 2 * VISIONS; i++)
		for (size_t but = 0, layers = 1; but < layers; but++) {
			CASE("%s, rotates %zu, but %zu", visions[i / 2].name, i % 2, but);
			const bool rotates = i % 2;
			struct model m;
			struct rotations r = { 0 };
			const struct invariant t = { .fold = true, .centre = !rotates,
				.rotations = rotates ? &r : NULL };
			double *before, *after;

			drawn = 0;
			make_vision(&m, visions[i / 2].name, visions[i / 2].post, NORM_LAYER);
			make_constant(&m);
			if (rotates) {
				r = rotations_make(&m.config, &ways[0].o, t.unchanged, NULL);
				change(&m, &ln2rms, SIZE_MAX);
			}
			layers = m.at.layers;
			before = run(&m);
			change(&m, &t, but);
			after = run(&m);
			/* a class token is one of many rows, and the features do not have it */
			if (rotates || counts(&m.at.layer[but]))
				assert_true(difference(&m, before, after) > 10 * most);
			else
				assert_true(difference(&m, before, after) < most);
			free(before), free(after);
			rotations_free(&r);
			free_model(&m);
		}
	drawn = 0;
}

static int prepare(void **unused)
{
	(void)unused;
	threads_init(0);
	linalg_init();
	quiet = true;		/* no warning of blocks that are smaller than a width */
	stream = random_open(1, "invariant");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layer_norms_of_every_architecture), cmocka_unit_test(every_layer_counts),
		cmocka_unit_test(folded_alone), cmocka_unit_test(smoothed),
		cmocka_unit_test(sources_scaled),
		cmocka_unit_test(rms_norms_are_left),
		cmocka_unit_test(norms_after_branches),
		cmocka_unit_test(rotations_of_every_architecture), cmocka_unit_test(rotated_behind_ln2rms),
		cmocka_unit_test(rotated_past_norms_after_branches), cmocka_unit_test(every_layer_rotates),
		cmocka_unit_test(encoders), cmocka_unit_test(encoders_left),
		cmocka_unit_test(visual_tokens_first),
		cmocka_unit_test(every_layer_of_images_counts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, NULL);
}
