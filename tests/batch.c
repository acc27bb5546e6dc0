/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * batch -- tokens with positions: attention against its formula in double, windows against numbers computed
 * by hand, and a model whose logits do not depend on other sequences in the batch or on the order of tokens
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "case.h"
#include "forward/attention.h"
#include "forward/forward.h"
#include "forward/logits.h"
#include "forward/rotary.h"
#include "forward/windows.h"
#include "io/part.h"
#include "logits.h"
#include "num/linalg.h"

static struct random_stream stream;
static uint64_t drawn;

static void fill(size_t n, float *x)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(4 * random_uniform(&stream, drawn++) - 2);
}

static size_t below(size_t n)
{
	return (size_t)(random_uniform(&stream, drawn++) * (double)n);
}

/* A random order of 0 .. n - 1. */
static void shuffle(size_t n, int32_t order[n])
{
	for (size_t i = 0; i < n; i++) {
		size_t j = below(i + 1);

		order[i] = order[j];
		order[j] = (int32_t)i;
	}
}

/* ---- attention ---- */

/* Row q of the keys that a sequence attends to; those before the sequence come first. */
static const float *key_row(const struct attention_rows *r, size_t q,
	const float *(*of)(const struct attention_keys *))
{
	const size_t before = r->keys[0].n;
	const struct attention_keys *keys = &r->keys[q >= before];

	return of(keys) + (q < before ? q : q - before) * keys->stride;
}

static const float *k_of(const struct attention_keys *keys) { return keys->k; }
static const float *v_of(const struct attention_keys *keys) { return keys->v; }

static bool sees(const struct attention *a, const struct attention_rows *r, size_t p, size_t q)
{
	size_t before = r->keys[0].n, past = before + r->keys[1].n - r->n;
	int64_t at = r->index ? r->index[p] : (int64_t)(past + p);
	int64_t key = (int64_t)q;

	if (r->index)
		key = q < before ? r->keys[0].index[q] : r->keys[1].index[q - before];
	return key <= at && (!a->sliding_window || at - key < (int64_t)a->sliding_window);
}

/* The largest difference from the formula in attention.h, in double. */
static double plain_attention(const struct attention *a, const struct attention_rows *r)
{
	size_t d = a->head_dim, keys = r->keys[0].n + r->keys[1].n;
	double worst = 0, *weight = xalloc(keys, sizeof *weight);

	for (size_t h = 0; h < a->heads; h++)
		for (size_t p = 0; p < r->n; p++) {
			size_t kv = h / (a->heads / a->kv_heads) * d;
			double sum = 0;

			for (size_t q = 0; q < keys; q++) {
				double dot = 0;

				for (size_t i = 0; i < d; i++)
					dot += (double)r->q[p * r->q_stride + h * d + i] *
						(double)key_row(r, q, k_of)[kv + i];
				dot *= a->scale;
				dot = a->cap > 0 ? a->cap * tanh(dot / a->cap) : dot;
				weight[q] = sees(a, r, p, q) ? exp(dot) : 0;
				sum += weight[q];
			}
			for (size_t i = 0; i < d; i++) {
				double y = 0;

				for (size_t q = 0; q < keys; q++)
					y += weight[q] / sum * (double)key_row(r, q, v_of)[kv + i];
				y = fabs(y - (double)r->y[p * r->y_stride + h * d + i]);
				worst = y <= worst ? worst : isnan(y) ? INFINITY : y;
			}
		}
	free(weight);
	return worst;
}

enum order { IN_ORDER, ANY_ORDER, TWO_STRETCHES };
struct attention_case { size_t heads, kv_heads, head_dim, window, n, past; double cap; enum order index; };

/* Some of each 97 tokens first, the others after them, as in aifs-order. */
static void two_stretches(size_t n, int32_t index[n])
{
	size_t end = 0;

	for (int text = 0; text < 2; text++)
		for (size_t i = 0; i < n; i++)
			if ((i % 97 < 30) == text)
				index[end++] = (int32_t)i;
}

/* Two sequences of different lengths with a common prefix, as one run of keys or as two. */
static double attention_of(const struct attention_case *c, bool apart)
{
	const struct attention a = { c->heads, c->kv_heads, c->head_dim, 0.8 / sqrt((double)c->head_dim),
		c->cap, c->window };
	size_t n[2] = { c->n, c->n / 2 + 1 }, rows = n[0] + n[1], all = c->past + rows;
	size_t qs = c->heads * c->head_dim + 3, ks = 2 * c->kv_heads * c->head_dim + 1, ys = qs - 1;
	float *q = xalloc(rows * qs, sizeof *q), *k = xalloc(all * ks, sizeof *k);
	float *y = xalloc(rows * ys, sizeof *y);
	int32_t *index = xalloc(all, sizeof *index);
	const enum cpu kind = cpu, widest = cpu_widest;
	struct attention_rows r[2];
	double worst = 0;

	fill(rows * qs, q);
	fill(all * ks, k);
	/* the prefix and the first sequence share an order; any numbers work */
	(c->index == TWO_STRETCHES ? two_stretches : shuffle)(c->past + n[0], index);
	for (size_t i = c->past + n[0]; i < all; i++)
		index[i] = c->index == TWO_STRETCHES ? (int32_t)(i - n[0]) : (int32_t)below(all);
	for (size_t i = 0; i < all; i++)	/* from -1 on, the position of a BOS */
		index[i]--;
	for (size_t s = 0; s < 2; s++) {
		size_t own = c->past + s * n[0], v = c->kv_heads * c->head_dim;
		const int32_t *mine = c->index ? index + own : NULL, *before = c->index ? index : NULL;

		r[s] = (struct attention_rows){ n[s], ys, qs, y + s * n[0] * ys, q + s * n[0] * qs, mine, {
			{ c->past, ks, k, k + v, before },
			{ n[s], ks, k + own * ks, k + own * ks + v, mine } } };
		if (!s && !apart)
			r[s].keys[0] = (struct attention_keys){ 0 },
			r[s].keys[1] = (struct attention_keys){ c->past + n[0], ks, k, k + v, before };
	}
	for (enum cpu one = CPU_PLAIN; one <= widest; one++) {
		cpu = cpu_widest = one;
		attention(&a, 2, r);
		for (size_t s = 0; s < 2; s++)
			worst = fmax(worst, plain_attention(&a, &r[s]));
	}
	cpu = kind, cpu_widest = widest;
	for (size_t t = 0; t < rows; t++)	/* nothing is written beyond the rows */
		assert_true(y[t * ys + ys - 1] == 0 && y[t * ys + ys - 2] == 0);
	free(q), free(k), free(y), free(index);
	return worst;
}

static void attention_is_its_formula(void **unused)
{
	static const struct attention_case rows[] = {
		{ 4, 2, 8, 0, 1, 0, 0, IN_ORDER }, { 4, 2, 8, 0, 37, 0, 0, IN_ORDER },
		{ 3, 1, 7, 0, 129, 0, 0, IN_ORDER }, { 2, 2, 16, 0, 300, 0, 5, IN_ORDER },
		{ 2, 1, 16, 0, 257, 256, 0, IN_ORDER }, { 6, 3, 4, 5, 131, 0, 0, IN_ORDER },
		{ 8, 4, 16, 70, 300, 0, 5, IN_ORDER },	/* Gemma 2's */
		{ 2, 1, 8, 200, 513, 0, 0, IN_ORDER }, { 2, 2, 8, 1, 150, 3, 0, IN_ORDER },
		{ 4, 1, 8, 0, 1, 700, 0, IN_ORDER }, { 4, 4, 8, 64, 1, 700, 2, IN_ORDER },
		{ 2, 1, 64, 300, 140, 333, 0, IN_ORDER }, { 1, 1, 128, 0, 256, 1, 0, IN_ORDER },
		{ 2, 1, 8, 0, 1, 0, 0, ANY_ORDER }, { 2, 1, 8, 0, 90, 0, 0, ANY_ORDER },
		{ 2, 2, 8, 0, 300, 40, 3, ANY_ORDER }, { 2, 1, 16, 33, 290, 70, 0, ANY_ORDER },
		{ 1, 1, 8, 0, 70, 600, 0, ANY_ORDER },
		{ 2, 1, 8, 0, 600, 0, 0, TWO_STRETCHES }, { 7, 1, 16, 0, 420, 200, 0, TWO_STRETCHES },
		{ 2, 2, 8, 150, 500, 40, 3, TWO_STRETCHES },
		/* groups that fill panels unevenly, more queries than one thread processes, key counts around
		 * a tile */
		{ 9, 3, 64, 0, 270, 0, 0, IN_ORDER }, { 14, 2, 6, 90, 127, 129, 0, IN_ORDER },
		{ 5, 1, 33, 128, 128, 128, 0, IN_ORDER }, { 25, 1, 4, 0, 65, 63, 2, IN_ORDER },
	};
	double worst = 0;

	(void)unused;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int apart = 0; apart < 2; apart++) {
			CASE("rows[%zu], apart %d", i, apart);
			worst = fmax(worst, attention_of(&rows[i], apart));
		}
	print_message("# attention against double %.2g\n", worst);
	assert_true(worst < 5e-6);
}

/*
 * For keys with scores x and 0 and values 1 and 0 the result is e^x / (1 + e^x). log2 e and x log2 e are
 * rounded, which changes e^x by 2 |x| units of 2^-24. The rest are a few roundings. Below 2^-126 a weight is
 * zero.
 */
static void weights_are_exponentials(void **unused)
{
	const struct attention a = { 1, 1, 1, 1, 0, 0 };
	const enum cpu kind = cpu, widest = cpu_widest;

	(void)unused;
	for (enum cpu one = CPU_PLAIN; one <= widest; one++)
		for (int i = 0; i < 9000; i++) {
			CASE("cpu %d, i %d", (int)one, i);
			const float x = -0.01f * (float)i, q[2] = { 1, 1 }, k[2] = { x, 0 }, v[2] = { 1, 0 };
			const double e = exp((double)x), want = e / (1 + e);
			float y[2];
			const struct attention_rows r = { 2, 1, 1, y, q, NULL,
				{ { 0 }, { 2, 1, k, v, NULL } } };

			cpu = cpu_widest = one;
			attention(&a, 1, &r);
			assert_true(y[0] == 1);
			assert_true(x < -87.34f ? y[1] == 0 : x < -87.33f ||
				fabs((double)y[1] / want - 1) <= (2 * -(double)x + 8) * 0x1p-24);
		}
	cpu = kind, cpu_widest = widest;
}

/* An overflow must not become a finite number: it spoils the rows that attend to it, and no others. */
static void overflows_are_seen(void **unused)
{
	static const float wrong[] = { NAN, INFINITY };
	const struct attention a = { 1, 1, 1, 1, 0, 0 };
	const enum cpu kind = cpu, widest = cpu_widest;

	(void)unused;
	for (enum cpu one = CPU_PLAIN; one <= widest; one++)
		for (int i = 0; i < 4; i++) {
			CASE("cpu %d, i %d", (int)one, i);
			float q[3] = { 1, 1, 1 }, k[3] = { 1, 2, 3 }, v[3] = { 1, 2, 3 }, y[3];
			const struct attention_rows r = { 3, 1, 1, y, q, NULL,
				{ { 0 }, { 3, 1, k, v, NULL } } };

			(i < 2 ? k : q)[1] = wrong[i % 2];
			cpu = cpu_widest = one;
			attention(&a, 1, &r);
			assert_true(y[0] == 1 && isnan(y[1]) && (i < 2 ? isnan(y[2]) : isfinite(y[2])));
		}
	cpu = kind, cpu_widest = widest;
}

/* Bit for bit the same, for any other queries in the batch, any number of threads, and all kernels. */
static void attention_is_the_same_alone(void **unused)
{
	enum { HEADS = 6, KV_HEADS = 2, DIM = 16, N = 400, WIDTH = HEADS * DIM, KV = KV_HEADS * DIM };
	static float q[N][WIDTH], k[2][N][KV], all[N][WIDTH], y[N][WIDTH];
	const enum cpu kind = cpu, widest = cpu_widest;

	(void)unused;
	fill(N * WIDTH, q[0]);
	fill(2 * N * KV, k[0][0]);
	for (size_t window = 0; window < 200; window += 150) {
		const struct attention a = { HEADS, KV_HEADS, DIM, 0.5, 0, window };
		struct attention_rows r = { N, WIDTH, WIDTH, all[0], q[0], NULL,
			{ { 0 }, { N, KV, k[0][0], k[1][0], NULL } } };

		threads = 1;
		attention(&a, 1, &r);
		threads = 3;
		r.y = y[0];
		attention(&a, 1, &r);
		assert_memory_equal(all, y, sizeof y);
		for (size_t i = 0, n; i < N; i += n) {	/* in pieces, after the keys before them */
			n = min(i % 7 ? 1 : 30, N - i);
			r = (struct attention_rows){ n, WIDTH, WIDTH, y[i], q[i], NULL,
				{ { i, KV, k[0][0], k[1][0], NULL }, { n, KV, k[0][i], k[1][i], NULL } } };
			memset(y[i], 0, n * sizeof *y);
			attention(&a, 1, &r);
		}
		assert_memory_equal(all, y, sizeof y);
		r = (struct attention_rows){ N, WIDTH, WIDTH, y[0], q[0], NULL,
			{ { 0 }, { N, KV, k[0][0], k[1][0], NULL } } };
		for (cpu = CPU_PLAIN; cpu <= widest; cpu++) {
			CASE("cpu %d", (int)cpu);
			attention(&a, 1, &r);
			assert_memory_equal(all, y, sizeof y);
		}
		cpu = kind, cpu_widest = widest;
	}
	threads_init(0);
}

/* Pairs of the first channels are rotated by their angles, the other channels are unchanged. */
static void rotary_positions(void **unused)
{
	enum { HEADS = 3, DIM = 10, HALF = 3, POSITION = 5 };
	const double frequency[HALF] = { 1, 0.25, 0.01 };
	float x[HEADS][DIM], y[HEADS][DIM];

	(void)unused;
	for (int interleaved = 0; interleaved < 2; interleaved++) {
		CASE("interleaved %d", interleaved);
		struct rope r = rope_make(POSITION + 1, HALF, frequency, 1, interleaved);

		fill(HEADS * DIM, x[0]);
		memcpy(y, x, sizeof x);
		rope_rotate(&r, &(int32_t){ POSITION }, HEADS, DIM, y);
		for (size_t h = 0; h < HEADS; h++) {
			for (size_t i = 0; i < HALF; i++) {
				size_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + HALF;
				double c = cos(POSITION * frequency[i]), s = sin(POSITION * frequency[i]);
				double xa = (double)x[h][a], xb = (double)x[h][b];

				assert_true(fabs((double)y[h][a] - (xa * c - xb * s)) < 1e-6);
				assert_true(fabs((double)y[h][b] - (xb * c + xa * s)) < 1e-6);
			}
			assert_memory_equal(y[h] + 2 * HALF, x[h] + 2 * HALF,
				(DIM - 2 * HALF) * sizeof(float));
		}
		rope_free(&r);
	}
}

/* ---- windows ---- */

static void is_rows(const char *what, const int32_t *y, size_t n, const int32_t *expected)
{
	for (size_t i = 0; i < n; i++)
		if (y[i] != expected[i])
			fail_msg("%s of row %zu is %d, %d expected", what, i, y[i], expected[i]);
}

static void windows_by_convention(void **unused)
{
	int32_t id[20];
	uint16_t bytes[20];
	struct tokens t = { .n = 20, .id = id, .bytes = bytes, .bos = 99, .add_bos = true, .vocab = 100 };
	struct windows w;
	char *place;

	(void)unused;
	for (int i = 0; i < 20; i++)
		id[i] = i, bytes[i] = (uint16_t)(i + 1);

	/* gptq: 99 0 1 2 3 | 4 ... 8 | 9 ... 13 | 14 ... 18, 19 dropped */
	w = windows_cut("x", &t, 0, 5, 0);
	assert_true(w.n == 4 && w.rows == 20 && w.longest == 5 && w.positions == 5 && w.targets == 16);
	is_rows("id", w.id, 10, (int32_t[]){ 99, 0, 1, 2, 3, 4, 5, 6, 7, 8 });
	is_rows("target", w.target, 10, (int32_t[]){ 0, 1, 2, 3, -1, 5, 6, 7, 8, -1 });
	assert_int_equal(w.id[19], 18);
	assert_int_equal(w.bytes, 1 + 2 + 3 + 4 + 6 + 7 + 8 + 9 + 11 + 12 + 13 + 14 + 16 + 17 + 18 + 19);
	assert_true(!w.position && !w.index && !w.modality);
	place = windows_place(&w, 7);
	assert_string_equal(place, "position 3 of window 2");
	free(place);
	windows_shard(&w, (struct shard){ .i = 2, .n = 3 });
	assert_true(w.n == 1 && w.rows == 5 && w.id[0] == 4 && w.targets == 4 && w.sequence[0].first == 0);
	windows_free(&w);

	t.add_bos = false;			/* 0 ... 4 | 5 ... 9 | ... */
	w = windows_cut("x", &t, 0, 5, 0);
	assert_true(w.n == 4 && w.id[0] == 0 && w.id[19] == 19);
	windows_free(&w);

	w = windows_cut("x", &t, 1, 5, 0);		/* bos: 99 0 1 2 3 | 99 4 5 6 7 | ... */
	assert_true(w.n == 5 && w.targets == 20 && w.id[5] == 99 && w.id[6] == 4);
	assert_int_equal(w.bytes, 20 * 21 / 2);
	windows_free(&w);

	t.bytes = NULL;
	w = windows_cut("x", &t, 1, 21, 0);
	assert_true(w.n == 1 && w.bytes == 0);
	windows_free(&w);
}

/* Each sequence separately, up to its last token; the limit ends inside one. */
static void windows_of_sequences(void **unused)
{
	static const int64_t sequence[] = { 0, 1, 8, 10, 13 };
	/* visual tokens 2, 3, 4 first */
	static const int32_t index[] = { 0, 2, 3, 4, 0, 1, 5, 6, 1, 0, 2, 0, 1 };
	static const uint8_t modality[] = { 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0 };
	int32_t id[13];
	uint16_t bytes[13];
	struct tokens t = { .n = 13, .id = id, .bytes = bytes, .bos = 99, .add_bos = true, .sequences = 4,
		.sequence = sequence };
	struct windows w;
	struct sequence own[3];
	struct batch b;

	(void)unused;
	for (int i = 0; i < 13; i++)
		id[i] = i, bytes[i] = (uint16_t)(1 << i);
	w = windows_cut("x", &t, 0, 4, 0);		/* 99 0 | 99 1 2 3 | 4 5 6 7 | 99 8 9 | 99 10 11 12 */
	assert_true(w.n == 5 && w.rows == 17 && w.longest == 4);
	is_rows("id", w.id, 17, (int32_t[]){ 99, 0, 99, 1, 2, 3, 4, 5, 6, 7, 99, 8, 9, 99, 10, 11, 12 });
	is_rows("target", w.target, 17,
		(int32_t[]){ 0, -1, 1, 2, 3, -1, 5, 6, 7, -1, 8, 9, -1, 10, 11, 12, -1 });
	assert_int_equal(w.bytes, 0x1fff & ~(1 << 4));
	b = windows_batch(&w, 1, 3, own);
	assert_true(b.rows == 11 && b.sequences == 3);
	assert_true(own[1].first == 4 && own[2].first == 8 && own[2].length == 3);
	assert_true(windows_within(&w, 0, 6) == 2 && windows_within(&w, 0, 1) == 1);
	assert_true(windows_within(&w, 2, 100) == 3);
	windows_shard(&w, (struct shard){ .i = 1, .n = 2 });
	is_rows("id", w.id, 10, (int32_t[]){ 99, 0, 4, 5, 6, 7, 99, 10, 11, 12 });
	assert_true(w.n == 3 && w.rows == 10 && w.targets == 7 && w.sequence[2].first == 6);
	windows_free(&w);

	t.index = index, t.modality = modality;
	w = windows_cut("x", &t, 1, 8, 0);
	assert_true(w.n == 4 && w.rows == 17 && w.positions == 8 && w.modalities == 2);
	is_rows("index", w.index + 2, 8, (int32_t[]){ -1, 2, 3, 4, 0, 1, 5, 6 });
	is_rows("position", w.position + 2, 8, (int32_t[]){ 0, 3, 4, 5, 1, 2, 6, 7 });
	is_rows("target", w.target + 2, 8, (int32_t[]){ 4, 2, 3, 6, 5, 1, 7, -1 });
	assert_int_equal(w.bytes, 0x1fff);
	assert_true(w.modality[2] == 0 && w.modality[3] == 1 && w.modality[6] == 0);
	windows_free(&w);
}

/* ---- a model ---- */

struct reference {
	struct part *part;
	struct config config;
	struct execution execution;
	struct tensor tokens;
};

static struct reference open_reference(const char *name)
{
	const char *folder = getenv("PTQ_REF");
	char *path = xformat("%s/%s.h5", folder ? folder : "tests/ref", name);
	struct reference r = { .part = part_open(path, "model") };

	r.config = config_read(r.part);
	r.tokens = part_tensor(r.part, "/test/tokens", TENSOR_I32, 2, NULL);
	free(path);
	return r;
}

static void close_reference(struct reference *r)
{
	config_free(&r->config);
	part_close(r->part);
}

static float *all_logits(const struct reference *r, const struct windows *w)
{
	return logits_of(r->part, &r->config, &r->execution, w, SIZE_MAX, NULL);
}

/* For rows of float32 sums in another order, relative to the largest logit. */
static double apart(size_t n, const float *a, const float *b)
{
	double worst = 0, top = 0;

	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs((double)a[i] - (double)b[i])), top = fmax(top, fabs((double)b[i]));
	return worst / top;
}

static const char *const models[] = { "llama-gqa", "qwen2-window", "mistral-window", "gpt2" };
enum { MODELS = sizeof models / sizeof *models, LONG = 36 };

/* Sequences of 1 .. 36 tokens in one batch: the logits of each equal those of the sequence alone. */
static void lengths_may_differ(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < MODELS; m++) {
		CASE("%s", models[m]);
		struct reference r = open_reference(models[m]);
		size_t n = r.tokens.dim[0] * r.tokens.dim[1], vocab = r.config.vocab;
		const int64_t offsets[] = { 0, 2, 21, 24, (int64_t)(n < 24 + LONG ? n : 24 + LONG) };
		struct tokens t = { .n = (size_t)offsets[4], .id = r.tokens.data, .bos = -1, .sequences = 4,
			.sequence = offsets };
		struct windows all = windows_cut("x", &t, 0, 64, 0);
		float *y = all_logits(&r, &all);
		double worst = 0;

		assert_int_equal(all.n, 4);
		for (size_t s = 0; s < all.n; s++) {
			struct tokens one = { .n = all.sequence[s].length, .id = t.id + offsets[s],
				.bos = -1 };
			struct windows alone = windows_cut("x", &one, 0, one.n, 0);
			float *z = all_logits(&r, &alone);

			worst = fmax(worst, apart(one.n * vocab, y + (size_t)offsets[s] * vocab, z));
			free(z);
			windows_free(&alone);
		}
		print_message("# %-16s with others %.2g\n", models[m], worst);
		assert_true(worst < 1e-5);
		free(y);
		windows_free(&all);
		close_reference(&r);
	}
}

/* Tokens in any order, with their positions and indices: the logits of each are unchanged (MQuant section
 * 4.2). */
static void order_does_not_matter(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < MODELS; m++) {
		CASE("%s", models[m]);
		struct reference r = open_reference(models[m]);
		size_t n = r.tokens.dim[1], vocab = r.config.vocab;
		int32_t index[64], id[64];
		struct tokens t = { .n = n, .id = r.tokens.data, .bos = -1 };
		struct tokens shuffled = { .n = n, .id = id, .index = index, .bos = -1 };
		struct windows plain = windows_cut("x", &t, 0, n, 0), other;
		float *y = all_logits(&r, &plain), *z;
		double worst = 0;

		assert_true(n <= 64);
		shuffle(n, index);
		for (size_t i = 0; i < n; i++)
			id[i] = t.id[index[i]];
		other = windows_cut("x", &shuffled, 0, n, 0);
		z = all_logits(&r, &other);
		for (size_t i = 0; i < n; i++) {
			worst = fmax(worst, apart(vocab, z + i * vocab, y + (size_t)index[i] * vocab));
			assert_int_equal(other.target[i], plain.target[index[i]]);
		}
		print_message("# %-16s in another order %.2g\n", models[m], worst);
		assert_true(worst < 1e-5);
		free(y), free(z);
		windows_free(&plain), windows_free(&other);
		close_reference(&r);
	}
}

/* Two continuations of one prefix in one batch: each has the logits as if it alone followed the prefix, block
 * by block. */
static void prefixes_are_shared(void **unused)
{
	enum { PREFIX = 9, FIRST = 5, SECOND = 12, ROWS = PREFIX + FIRST + SECOND };

	(void)unused;
	for (size_t m = 0; m < MODELS; m++) {
		CASE("%s", models[m]);
		struct reference r = open_reference(models[m]);
		size_t hidden = r.config.stack->hidden, row = hidden * sizeof(float);
		struct work work = work_make(r.config.stack, ROWS, ROWS, ROWS);
		float *x = xalloc(ROWS, row), *alone[2] = { xalloc(ROWS, row), xalloc(ROWS, row) };
		const struct sequence shared[] = { { .length = PREFIX },
			{ .first = PREFIX, .length = FIRST, .past = PREFIX },
			{ .first = PREFIX + FIRST, .length = SECOND, .past = PREFIX } };
		const struct batch batch = { .rows = ROWS, .sequences = 3, .sequence = shared };

		fill(ROWS * hidden, x);
		memcpy(alone[0], x, (PREFIX + FIRST) * row);
		memcpy(alone[1], x, PREFIX * row);
		memcpy(alone[1] + PREFIX * hidden, x + (PREFIX + FIRST) * hidden, SECOND * row);
		for (size_t i = 0; i < r.config.blocks; i++) {
			struct block *b = block_read(r.part, &r.config, &r.execution, r.config.stack, i);

			block_forward(b, &work, &batch, (float (*)[hidden])x, NULL, NULL);
			for (size_t s = 0; s < 2; s++) {
				size_t n = PREFIX + shared[s + 1].length;
				const struct sequence whole = { .length = n };
				const struct batch one = { .rows = n, .sequences = 1, .sequence = &whole };

				block_forward(b, &work, &one, (float (*)[hidden])alone[s], NULL, NULL);
			}
			block_free(b);
		}
		assert_true(apart((PREFIX + FIRST) * hidden, x, alone[0]) < 1e-5);
		assert_true(apart(SECOND * hidden, x + (PREFIX + FIRST) * hidden,
			alone[1] + PREFIX * hidden) < 1e-5);
		free(x), free(alone[0]), free(alone[1]);
		work_free(&work);
		close_reference(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_is_its_formula), cmocka_unit_test(weights_are_exponentials),
		cmocka_unit_test(overflows_are_seen), cmocka_unit_test(attention_is_the_same_alone),
		cmocka_unit_test(rotary_positions),
		cmocka_unit_test(windows_by_convention), cmocka_unit_test(windows_of_sequences),
		cmocka_unit_test(lengths_may_differ), cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(prefixes_are_shared),
	};

	threads_init(0);
	linalg_init();
	stream = random_open(1, "batch");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
