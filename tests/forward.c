/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * forward -- the model layer against reference logits of transformers (tests/ref/make.py), attention against
 * its formula in double, windows and perplexity against numbers computed by hand
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "calib/calibrate.h"
#include "calib/histogram.h"
#include "case.h"
#include "eval/perplexity.h"
#include "forward/embed.h"
#include "forward/forward.h"
#include "forward/logits.h"
#include "forward/resident.h"
#include "forward/sample.h"
#include "io/part.h"
#include "num/half.h"
#include "num/linalg.h"
#include "num/vector.h"
#include "quant/pack.h"
#include "reference.h"

static struct random_stream stream;
static uint64_t drawn;

static void fill(size_t n, float *x)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(4 * random_uniform(&stream, drawn++) - 2);
}

static void logits_of_references(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		float *y = all_logits(&r, SIZE_MAX), *z = all_logits(&r, 0);
		double d = difference(r.rows * r.config.vocab, y, r.logits);

		print_message("# %-16s largest relative difference %.2g\n", models[i], d);
		assert_true(d < 1e-4);
		assert_memory_equal(y, z, r.rows * r.config.vocab * sizeof *y);	/* hidden states in a file */
		free(y);
		free(z);
		close_reference(&r);
	}
}

static void logits_are_capped(void **unused)
{
	struct reference r = open_reference("llama-gqa");
	size_t n = r.rows * r.config.vocab;
	float *plain = all_logits(&r, SIZE_MAX), *capped;

	(void)unused;
	r.config.logit_cap = 0.7;
	capped = all_logits(&r, SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		assert_true(fabs((double)capped[i] - 0.7 * tanh((double)plain[i] / 0.7)) < 1e-6);
	free(plain), free(capped);
	close_reference(&r);
}

/* Gemma's: √20 is 4.4721360 in float, 4.46875 in bf16. */
static void embeddings_are_scaled(void **unused)
{
	static const int32_t id[] = { 60, 0, 7 };
	struct reference r = open_reference("gemma");
	const size_t hidden = r.config.stack->hidden;
	struct layer l = layer_read(r.part, r.config.arch->embedding, r.config.vocab, hidden);
	const float *weight = l.linear.weight;
	float x[3][20];

	(void)unused;
	assert_int_equal(hidden, 20);
	for (int bf16 = 0; bf16 < 2; bf16++) {
		CASE("bf16 %d", bf16);
		r.execution.compute_type = bf16 ? COMPUTE_BF16 : COMPUTE_F32;
		embed_tokens(&r.config, &r.execution, &l, 3, x, id);
		for (size_t i = 0; i < 3 * hidden; i++)
			assert_true(x[i / hidden][i % hidden] == (bf16 ? 4.46875f : 4.4721360f) *
				weight[(size_t)id[i / hidden] * hidden + i % hidden]);
	}
	layer_free(&l);
	close_reference(&r);
}

static void scores_are_those_of_the_logits(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		struct forward *f = forward_open(&r.config, &r.execution, &r.windows, SIZE_MAX);
		struct head head = head_read(r.part, &r.config, &r.execution, true);
		double *nll = xalloc(r.windows.targets, sizeof *nll), worst = 0;
		size_t vocab = r.config.vocab, k = 0;

		for (size_t p = 0; p < 4; p++)		/* targets may begin after 1 */
			r.windows.target[p] = -1;
		forward_part(f, r.part, NULL);
		logits_score(f, &head, nll, NULL);
		for (size_t row = 0; row < r.windows.rows; row++) {
			const float *y = r.logits + row * vocab;
			double sum = 0;

			for (size_t v = 0; v < vocab; v++)
				sum += exp((double)y[v]);
			if (r.windows.target[row] >= 0)
				worst = fmax(worst,
					fabs(nll[k++] - (log(sum) - (double)y[r.windows.target[row]])));
		}
		assert_int_equal(k, r.windows.targets - 4);
		assert_true(worst < 1e-4);
		head_free(&head);
		forward_close(f);
		free(nll);
		close_reference(&r);
	}
}

/* Token by token, and in uneven chunks, with a cache: the same logits as all at once. */
static void steps_are_the_whole(void **unused)
{
	static const size_t pieces[] = { 1, 1, 5, 1, 12, 3, 1, 1, 12 };

	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		CASE("%s", models[i]);
		struct reference r = open_reference(models[i]);
		size_t n = r.windows.n, ctx = r.windows.longest, vocab = r.config.vocab, past = 0;
		struct resident model = resident_open(r.part, &r.config, &r.execution);
		struct work work = work_make(r.config.stack, n * 12, n * 12, ctx);
		struct cache cache = cache_make(r.config.stack, n, ctx);
		float *y = xalloc(n * vocab, sizeof *y), *all = all_logits(&r, SIZE_MAX);
		double worst = 0;

		for (size_t k = 0; k < sizeof pieces / sizeof *pieces; past += pieces[k++]) {
			int32_t id[2 * 12];
			struct sequence sequence[2];
			const struct batch batch = { .rows = n * pieces[k], .sequences = n,
				.sequence = sequence };

			for (size_t s = 0; s < n; s++) {
				memcpy(id + s * pieces[k], r.windows.id + s * ctx + past,
					pieces[k] * sizeof *id);
				sequence[s] = (struct sequence){ .first = s * pieces[k], .length = pieces[k],
					.past = past };
			}
			resident_step(&model, &work, &cache, &batch, (float (*)[vocab])y, id, NULL);
			for (size_t s = 0; s < n; s++)
				worst = fmax(worst, difference(vocab, y + s * vocab,
					all + (s * ctx + past + pieces[k] - 1) * vocab));
		}
		assert_int_equal(past, ctx);
		print_message("# %-16s steps against whole %.2g\n", models[i], worst);
		assert_true(worst < 1e-5);
		free(y);
		free(all);
		cache_free(&cache);
		work_free(&work);
		resident_close(&model);
		close_reference(&r);
	}
}

/* Logits of the first ids of the first window, step by step, as sequence `place` of n, in slot n - 1 - place.
 * Other sequences have other ids. */
static float *logits_apart(const struct reference *r, const struct resident *model, size_t steps, size_t n,
	size_t place)
{
	const size_t vocab = r->config.vocab;
	struct work work = work_make(r->config.stack, n, n, steps);
	struct cache cache = cache_make(r->config.stack, n, steps);
	float *y = xalloc(steps * vocab, sizeof *y), *logits = xalloc(resident_rows(n) * vocab, sizeof *y);
	struct sequence *sequence = xalloc(n, sizeof *sequence);
	size_t *slot = xalloc(n, sizeof *slot);
	int32_t *id = xalloc(n, sizeof *id);
	const struct batch batch = { .rows = n, .sequences = n, .sequence = sequence, .apart = true };

	cache.slot = slot;
	for (size_t k = 0; k < steps; k++) {
		for (size_t s = 0; s < n; s++) {
			sequence[s] = (struct sequence){ .first = s, .length = 1, .past = k };
			slot[s] = n - 1 - s;
			id[s] = s == place ? r->windows.id[k] : (int32_t)((7 * s + 3 * k) % vocab);
		}
		resident_step(model, &work, &cache, &batch, (float (*)[vocab])logits, id, NULL);
		memcpy(y + k * vocab, logits + place * vocab, vocab * sizeof *y);
	}
	cache_free(&cache);
	work_free(&work);
	free(logits), free(sequence), free(slot), free(id);
	return y;
}

/* The bits of a row do not depend on the rows of a batch that are apart, in any number. */
static void rows_are_apart(void **unused)
{
	static const size_t number[] = { 2, 15, 16, 17, 40 };
	enum { STEPS = 8 };

	(void)unused;
	for (size_t i = 0; i < MODELS; i++) {
		struct reference r = open_reference(models[i]);

		for (enum compute_type type = COMPUTE_F32; type <= COMPUTE_INT16; type++) {
			CASE("%s %s", models[i], compute_types[type]);
			r.execution.compute_type = type;
			r.execution.rows = PRODUCT_FEW;
			struct resident model = resident_open(r.part, &r.config, &r.execution);
			const size_t bytes = STEPS * r.config.vocab * sizeof(float);
			float *alone = logits_apart(&r, &model, STEPS, 1, 0);

			for (size_t k = 0; k < sizeof number / sizeof *number; k++) {
				float *y = logits_apart(&r, &model, STEPS, number[k], number[k] / 2);

				assert_memory_equal(alone, y, bytes);
				free(y);
			}
			free(alone);
			resident_close(&model);
		}
		close_reference(&r);
	}
}

static void threads_do_not_matter(void **unused)
{
	struct reference r = open_reference("llama-gqa");
	float *one, *three;

	(void)unused;
	threads = 1;
	one = all_logits(&r, SIZE_MAX);
	threads = 3;
	three = all_logits(&r, SIZE_MAX);
	threads_init(0);
	assert_memory_equal(one, three, r.rows * r.config.vocab * sizeof *one);
	free(one);
	free(three);
	close_reference(&r);
}

static struct sums *sums_at(const struct calibration *k, const char *path)
{
	struct layer_ref layer;

	assert_true(layer_ref_find(k->config, path, &layer));
	return calibrate_find(k, &layer);
}

/* The sum over inputs from the observer of a projection is Σ x xᵀ, for all chunks and shards of windows. */
static void calibration_sums(void **unused)
{
	struct reference r = open_reference("llama-gqa");
	struct calibration k = calibrate_begin(r.part, &r.config, &r.execution,
		&(struct selection){ 0 }, true);
	struct observer observer = calibrate_observer(&k);
	struct forward *f = forward_open(&r.config, &r.execution, &r.windows, SIZE_MAX);
	const struct sums *q, *up, *down;

	(void)unused;
	assert_int_equal(k.list.n, 14);
	forward_part(f, r.part, &observer);
	q = sums_at(&k, "/model/layers/1/self_attn/q_proj");
	up = sums_at(&k, "/model/layers/1/mlp/up_proj");
	down = sums_at(&k, "/model/layers/0/mlp/down_proj");
	assert_ptr_equal(q, sums_at(&k, "/model/layers/1/self_attn/v_proj"));
	assert_ptr_equal(up, sums_at(&k, "/model/layers/1/mlp/gate_proj"));
	assert_null(sums_at(&k, "/lm_head"));
	assert_int_equal(q->moments->count, r.rows);
	assert_int_equal(down->in, r.config.stack->intermediate);

	/* An RMS norm without its gain has mean square 1 (except for eps): Σ_j H_jj / gain_j² = count ·
	 * hidden. */
	float *gain = layer_vector(r.part, "/model/layers/1/input_layernorm/weight", r.config.stack->hidden);
	double trace = 0;

	for (size_t j = 0; j < q->in; j++)
		trace += q->moments->sum[j * q->in + j] / ((double)gain[j] * (double)gain[j]);
	assert_true(fabs(trace / (double)(r.rows * q->in) - 1) < 1e-4);
	free(gain);
	forward_close(f);
	calibrate_end(&k);
	close_reference(&r);
}

/* In a bf16 model, inputs of a projection are rounded for its Hessian and for the magnitudes. */
static void hessians_of_rounded_inputs(void **unused)
{
	enum { WINDOWS = 3, TOKENS = 37, N = 32 };
	static float x[WINDOWS][TOKENS][N], wide[N];
	static uint16_t narrow[N];
	static double want[N][N], absolute[N], fourth[N];
	static int64_t histogram[HISTOGRAM_BINS];
	struct reference r = open_reference("llama-gqa");
	struct calibration k;
	struct observer observer;
	const struct moments *h;
	float absmax[N] = { 0 };

	(void)unused;
	r.execution.compute_type = COMPUTE_BF16;
	k = calibrate_begin(r.part, &r.config, &r.execution, &(struct selection){ 0 }, true);
	observer = calibrate_observer(&k);
	fill(WINDOWS * TOKENS * N, x[0][0]);
	/* windows of two lengths: each length is a separate product */
	observe(&observer, 1, PROJECTION_GATE_UP, &(struct batch){ .rows = WINDOWS * TOKENS,
		.sequences = WINDOWS + 1, .sequence = (struct sequence[]){ { .length = TOKENS },
		{ .first = TOKENS, .length = TOKENS }, { .first = 2 * TOKENS, .length = 5 },
		{ .first = 2 * TOKENS + 5, .length = TOKENS - 5 } } }, 0, WINDOWS * TOKENS, N,
		x[0][0]);
	h = sums_at(&k, "/model/layers/1/mlp/up_proj")->moments;
	assert_int_equal(h->count, WINDOWS * TOKENS);
	for (size_t t = 0; t < WINDOWS * TOKENS; t++) {
		half_narrow(N, narrow, x[t / TOKENS][t % TOKENS], HALF_BF16);
		half_widen(N, wide, narrow, HALF_BF16);
		histogram_add(N, histogram, wide);
		for (size_t i = 0; i < N; i++) {
			absolute[i] += fabs((double)wide[i]);
			absmax[i] = fmaxf(absmax[i], fabsf(wide[i]));
			fourth[i] += pow((double)wide[i], 2) * pow((double)wide[i], 2);
			for (size_t j = i; j < N; j++)
				want[i][j] += (double)wide[i] * (double)wide[j];
		}
	}
	for (size_t i = 0; i < N; i++)	/* a float sum of a window's products, each at most 4 */
		for (size_t j = i; j < N; j++)
			assert_true(fabs(h->sum[i * N + j] - want[i][j]) <=
				WINDOWS * 2 * (TOKENS + 2) * 0x1p-24 * TOKENS * 4);
	assert_memory_equal(h->absmax, absmax, sizeof absmax);
	assert_memory_equal(h->absolute, absolute, sizeof absolute);
	assert_memory_equal(h->fourth, fourth, sizeof fourth);
	assert_memory_equal(h->histogram, histogram, sizeof histogram);
	calibrate_end(&k);
	close_reference(&r);
}

static void gram_is_its_formula(void **unused)
{
	enum { BLOCKS = 3, ROWS = 5, N = 389 };		/* more than a tile */
	static float x[BLOCKS][ROWS][N], y[N][N];
	static double h[N][N];
	double worst = 0;

	(void)unused;
	fill(sizeof x / sizeof(float), x[0][0]);
	linalg_gram(BLOCKS, ROWS, N, h, (const float (*)[ROWS][N])x);
	linalg_mirror(N, y, (const double (*)[N])h);
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++) {
			double sum = 0;

			for (size_t b = 0; b < BLOCKS; b++)
				for (size_t t = 0; t < ROWS; t++)
					sum += (double)x[b][t][i] * (double)x[b][t][j];
			worst = fmax(worst, fabs(sum - (double)y[i][j]));
			assert_true(y[i][j] == y[j][i]);
		}
	assert_true(worst < 1e-5);
}

static void products_and_exponentials(void **unused)
{
	enum { M = 259, N = 391, K = 17, STRIDE = 400 };
	static float x[M][K], w[N][K], y[M][STRIDE], bias[N], e[1000];
	double worst = 0;

	(void)unused;
	fill(M * K, x[0]);
	fill(N * K, w[0]);
	fill(N, bias);
	for (int add = 0; add < 2; add++) {
		linalg_product(M, N, K, STRIDE, y, (const float (*)[K])x, (const float (*)[K])w, bias, add);
		for (size_t i = 0; i < M; i++)
			for (size_t j = 0; j < N; j++) {
				double sum = (double)bias[j];

				for (size_t k = 0; k < K; k++)
					sum += (double)x[i][k] * (double)w[j][k];
				worst = fmax(worst, fabs((add + 1) * sum - (double)y[i][j]));
			}
	}
	assert_true(worst < 5e-5);
	assert_true(y[0][N] == 0 && y[M - 1][STRIDE - 1] == 0);
	worst = 0;
	for (int i = 0; i < 1000; i++) {
		e[i] = (float)(-i * 0.08);
		worst = fmax(worst, fabs(vector_sum_exp(1, e + i, 0) / exp((double)e[i]) - 1));
	}
	assert_true(worst < 3e-7);
	for (size_t i = 0; i < 1000; i++)
		e[i] = i == 998 ? 7 : -(float)i;
	assert_true(vector_max(1000, e) == 7 && vector_max(0, e) == -INFINITY);
	e[0] = 100, e[1] = -100, e[2] = 0;
	vector_silu(3, y[0], e);
	assert_true(y[0][0] == 100 && fabsf(y[0][1]) < 1e-30f && y[0][2] == 0);
}

static void perplexity_of_known_numbers(void **unused)
{
	const double nll[4] = { 1, 2, 3, 6 };
	struct perplexity p = perplexity_of(4, nll, 6);

	(void)unused;
	assert_int_equal(p.tokens, 4);
	assert_true(fabs(p.nll - 3) < 1e-15 && fabs(p.ppl - exp(3)) < 1e-12);
	assert_true(fabs(p.nll_se - sqrt((50.0 / 4 - 9) / 3)) < 1e-15);
	assert_true(fabs(p.bits_per_byte - 12 / (log(2) * 6)) < 1e-15);
	assert_true(isnan(perplexity_of(4, nll, 0).bits_per_byte));
}

static void samples(void **unused)
{
	const float logit[4] = { 0, (float)log(2), -INFINITY, 0 };

	(void)unused;
	assert_int_equal(sample_one(4, logit, 0, 0.9), 1);
	assert_int_equal(sample_one(4, logit, 1, 0), 0);
	assert_int_equal(sample_one(4, logit, 1, 0.2499), 0);
	assert_int_equal(sample_one(4, logit, 1, 0.2501), 1);
	assert_int_equal(sample_one(4, logit, 1, 0.7499), 1);
	assert_int_equal(sample_one(4, logit, 1, 0.7501), 3);
	assert_int_equal(sample_one(4, logit, 1, 0.9999999999999999), 3);
}

static struct linear written_and_read(const struct linear *l, struct layer *layer, struct part **part)
{
	char path[] = "/tmp/ptq-forward-XXXXXX";
	struct output *out;

	close(mkstemp(path));
	out = output_open(path, "model");
	output_start(out, 0, 1);
	layer_write(out, NULL, "/a/b", l);
	output_end(out);
	output_close(out);
	*part = part_open(path, "model");
	*layer = layer_read(*part, "/a/b", l->out, l->in);
	unlink(path);
	return layer->linear;
}

/* Reading returns what was written: every member, and so the effective weight and the rounded input. */
static void layers_through_files(void **unused)
{
	enum { OUT = 6, IN = 13, GROUPS = 3 };
	uint8_t codes[OUT * IN], zero[OUT * GROUPS];
	float scale[OUT * GROUPS], scale8[OUT], act[2] = { 0.01f, 0.02f }, bias[OUT], x[4][IN], a[OUT][IN],
		b[OUT][IN], p[4][IN], q[4][IN];
	int32_t index[IN];
	uint16_t half[OUT * IN];
	struct linear l = { .out = OUT, .in = IN, .codes = codes, .scale = scale, .zero = zero, .bias = bias,
		.groups = GROUPS };

	(void)unused;
	for (int i = 0; i < OUT * IN; i++)
		codes[i] = (uint8_t)(random_bits(&stream, drawn++) % 16), half[i] = (uint16_t)(0x3c00 + i);
	for (int i = 0; i < OUT * GROUPS; i++)
		scale[i] = 0.1f + (float)i, zero[i] = (uint8_t)(i % 16);
	for (int i = 0; i < OUT; i++)
		scale8[i] = 0.5f + (float)i;
	for (int i = 0; i < IN; i++)
		index[i] = i * 7 % GROUPS;
	fill(OUT, bias);
	fill(4 * IN, x[0]);
	for (int how = 0; how < 16; how++) {
		CASE("how %d", how);
		struct linear y;
		struct layer layer;
		struct part *part;

		assert_true(format_parse(&l.storage, how & 1 ? "int5" : "uint4"));
		l.zero = how & 1 ? NULL : zero;
		l.group = how % 3 == 0 ? 5 : how % 3 == 1 ? 0 : -1;
		l.groups = linear_groups(IN, l.group);
		l.group_index = how % 3 == 0 && how & 2 ? index : NULL;
		l.compute = (struct format){ 0 };
		if (how & 4)
			assert_true(format_parse(&l.compute, "e4m3ieee"));
		l.saturate = how & 8 ? 224 : 240;
		l.scale8 = scale8;
		l.scales8 = how & 8 ? OUT : 1;
		l.input.mode = (enum input_mode)(how % 4);
		assert_true(format_parse(&l.input.format, "e4m3fn"));
		l.input.scale = act;
		l.input.modalities = l.input.mode == INPUT_STATIC_MODALITY ? 2 : 1;
		y = written_and_read(&l, &layer, &part);
		linear_weight(&l, 0, OUT, a);
		linear_weight(&y, 0, OUT, b);
		linear_input(&l, 4, p, (const float (*)[IN])x, NULL);
		linear_input(&y, 4, q, (const float (*)[IN])x, NULL);
		assert_memory_equal(a, b, sizeof a);
		assert_memory_equal(p, q, sizeof p);
		assert_memory_equal(y.bias, bias, sizeof bias);
		assert_string_equal(y.storage.name, l.storage.name);
		assert_true(y.input.mode == l.input.mode && y.group == l.group);
		layer_free(&layer);
		part_close(part);
	}
	for (int how = HALF_F16; how <= HALF_BF16; how++) {
		CASE("how %d", how);
		struct linear plain = { .out = OUT, .in = IN, .weight = half,
			.weight_type = (enum half_type)how }, y;
		struct layer layer;
		struct part *part;

		y = written_and_read(&plain, &layer, &part);
		assert_true(y.weight_type == plain.weight_type && !y.bias && !y.codes &&
			y.input.mode == INPUT_AS_IS);
		assert_memory_equal(y.weight, half, sizeof half);
		layer_free(&layer);
		part_close(part);
	}
}

/* Replacing a layer by another changes the output; replacing it back restores it. */
static void blocks_take_other_layers(void **unused)
{
	enum { N = 11 };
	struct reference r = open_reference("llama-gqa");
	struct block *b = block_read(r.part, &r.config, &r.execution, r.config.stack, 0);
	struct work work = work_make(r.config.stack, N, N, N);
	size_t hidden = r.config.stack->hidden, bytes = N * hidden * sizeof(float);
	struct linear old = b->projection[PROJECTION_GATE_UP].layer[1].linear, other = old;
	float *zeros = xalloc(old.out * old.in, sizeof *zeros), *x = xalloc(3, bytes);
	struct layer_ref up;
	const struct batch batch = { .rows = N, .sequences = 1,
		.sequence = &(struct sequence){ .length = N } };

	(void)unused;
	assert_true(layer_ref_find(&r.config, "/model/layers/0/mlp/up_proj", &up));
	fill(N * hidden, x);
	memcpy(x + N * hidden, x, bytes);
	memcpy(x + 2 * N * hidden, x, bytes);
	block_forward(b, &work, &batch, (float (*)[hidden])x, NULL, NULL);
	other.weight = zeros;
	block_replace(b, &up, &other);
	block_forward(b, &work, &batch, (float (*)[hidden])(x + N * hidden), NULL, NULL);
	block_replace(b, &up, &old);
	block_forward(b, &work, &batch, (float (*)[hidden])(x + 2 * N * hidden), NULL, NULL);
	assert_memory_not_equal(x, x + N * hidden, bytes);
	assert_memory_equal(x, x + 2 * N * hidden, bytes);
	free(zeros);
	free(x);
	work_free(&work);
	block_free(b);
	close_reference(&r);
}

/* y = x Ŵᵀ + b in double. */
static void plain_product(const struct linear *l, size_t m, float y[m][l->out], const float x[m][l->in])
{
	float *w = xalloc(l->in, sizeof *w);

	for (size_t o = 0; o < l->out; o++) {
		linear_weight(l, o, 1, (float (*)[l->in])w);
		for (size_t t = 0; t < m; t++) {
			double sum = l->bias ? (double)l->bias[o] : 0;

			for (size_t i = 0; i < l->in; i++)
				sum += (double)w[i] * (double)x[t][i];
			y[t][o] = (float)sum;
		}
	}
	free(w);
}

/* A layer that is multiplied in packed form gives its memory, and its bias, to another layer, packed or
 * not. */
static void packed_layers_are_replaced(void **unused)
{
	enum { OUT = 24, IN = 64, M = 3 };
	static float x[M][IN], y[M][OUT], wanted[M][OUT], scale[OUT], bias[OUT], dense[OUT * IN];
	static uint32_t packed[2][OUT][8];
	static uint8_t code[IN], zero[OUT];
	struct linear l[3] = {
		{ .out = OUT, .in = IN, .bias = bias, .scale = scale, .zero = zero, .groups = 1 },
	};
	static const int next[] = { 1, 0, 2, 1, 2 };
	struct projection s = { .type = COMPUTE_F32, .rows = M, .in = IN, .out = OUT, .layers = 1 };
	const struct batch batch = { .rows = M };
	struct workspace workspace = { 0 };

	(void)unused;
	fill(M * IN, x[0]), fill(OUT, bias), fill(OUT * IN, dense);
	assert_true(format_parse(&l[0].storage, "uint4"));
	for (size_t k = 0; k < 2; k++)
		for (size_t o = 0; o < OUT; o++) {
			scale[o] = 0.1f;
			zero[o] = 7;
			for (size_t i = 0; i < IN; i++)
				code[i] = (uint8_t)(random_bits(&stream, drawn++) & 15);
			pack_row(4, IN, packed[k][o], code);
		}
	l[1] = l[0];
	l[0].packed = packed[0][0], l[1].packed = packed[1][0];
	l[1].bias = NULL;
	l[2] = (struct linear){ .out = OUT, .in = IN, .weight = dense };
	s.product[0] = product_choose(&l[0], s.type, M);
	for (size_t k = 0; k < sizeof next / sizeof *next; k++) {
		CASE("next[%zu]", k);
		projection_set(&s, 0, &l[next[k]]);
		assert_true(s.product[0].row->floats == (next[k] == 2));
		projection_apply(&s, &batch, 0, M, OUT, y, (const float (*)[IN])x, &workspace, NULL, false);
		plain_product(&l[next[k]], M, wanted, (const float (*)[IN])x);
		/* sums in float */
		assert_true(difference(M * OUT, (const float *)y, (const float *)wanted) < IN * 0x1p-24);
	}
	free(workspace.memory);
	projection_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logits_of_references),
		cmocka_unit_test(logits_are_capped),
		cmocka_unit_test(embeddings_are_scaled),
		cmocka_unit_test(scores_are_those_of_the_logits),
		cmocka_unit_test(steps_are_the_whole),
		cmocka_unit_test(rows_are_apart),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(calibration_sums),
		cmocka_unit_test(hessians_of_rounded_inputs),
		cmocka_unit_test(gram_is_its_formula),
		cmocka_unit_test(products_and_exponentials),
		cmocka_unit_test(perplexity_of_known_numbers),
		cmocka_unit_test(samples),
		cmocka_unit_test(layers_through_files),
		cmocka_unit_test(blocks_take_other_layers),
		cmocka_unit_test(packed_layers_are_replaced),
	};

	threads_init(0);
	linalg_init();
	stream = random_open(1, "forward");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
