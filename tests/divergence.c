/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * divergence -- two models target by target against plain sums in double over their whole logits, and the
 * metrics of an example computed by hand
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "case.h"
#include "eval/divergence.h"
#include "forward/logits.h"
#include "num/half.h"
#include "num/linalg.h"

/* Three tiles of weights, the last of two tiles of logits; two chunks of rows. */
enum { VOCAB = 17084, HIDDEN = 8, WINDOWS = 2, CTX = 270, ROWS = WINDOWS * CTX };

static struct random_stream stream;
static uint64_t drawn;

static float draw(void)
{
	return (float)(2 * random_uniform(&stream, drawn++) - 1);
}

/* A model after its last block: only the output layer remains. */
struct made {
	struct config config;
	struct execution execution;
	struct forward *f;
	struct head h;
	float *weight, *bias;		/* [vocab][hidden], [vocab] */
};

static struct windows make_windows(size_t n, size_t ctx, size_t vocab)
{
	int32_t *id = xalloc(n * ctx, sizeof *id);
	struct windows w;

	for (size_t i = 0; i < n * ctx; i++)
		id[i] = (int32_t)(random_bits(&stream, drawn++) % vocab);
	w = windows_cut("x", &(struct tokens){ .n = n * ctx, .id = id, .bos = -1 }, 0, ctx, 0);
	free(id);
	for (size_t i = 0; i < n; i++)		/* targets may begin after 1 and end before the last */
		for (size_t p = 0; p + 1 < ctx; p++)
			if (p < 3 * i || p + 1 >= ctx - 2 * i)
				w.target[i * ctx + p] = -1, w.targets--;
	return w;
}

static struct made *make(const struct windows *w, size_t vocab, size_t hidden)
{
	struct made *m = xalloc(1, sizeof *m);

	m->config = (struct config){ .vocab = vocab, .stacks = 1, .stack = { { .hidden = hidden } } };
	m->f = forward_open(&m->config, &m->execution, w, SIZE_MAX);
	m->f->normed = true;
	m->weight = xalloc(vocab * hidden, sizeof *m->weight);
	m->bias = xalloc(vocab, sizeof *m->bias);
	m->h = (struct head){ .config = &m->config, .execution = &m->execution, .norm.n = hidden,
		.layer.linear = { .out = vocab, .in = hidden, .weight = m->weight } };
	return m;
}

static void unmake(struct made *m)
{
	forward_close(m->f);
	free(m->weight), free(m->bias), free(m);
}

/* Logits that grow along the vocabulary: each tile has a new largest one. */
static struct made *make_first(const struct windows *w)
{
	struct made *m = make(w, VOCAB, HIDDEN);

	for (size_t i = 0; i < ROWS * HIDDEN; i++)
		m->f->hidden.x[i] = 2 * draw();
	for (size_t i = 0; i < VOCAB * HIDDEN; i++)
		m->weight[i] = draw() * (1 + (float)(i / HIDDEN) / 8000);
	return m;
}

/* The first model with every number changed by at most `noise`. */
static struct made *make_near(const struct made *from, const struct windows *w, float noise)
{
	struct made *m = make(w, VOCAB, HIDDEN);

	for (size_t i = 0; i < ROWS * HIDDEN; i++)
		m->f->hidden.x[i] = from->f->hidden.x[i] + noise * draw();
	for (size_t i = 0; i < VOCAB * HIDDEN; i++)
		m->weight[i] = from->weight[i] + noise * draw();
	return m;
}

struct whole { float *y[2]; size_t vocab; };

static void keep(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[])
{
	struct whole *w = arg;

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < m; i++)
			memcpy(w->y[k] + (row + i) * w->vocab + first, y[k] + i * n, n * sizeof *y[k]);
}

/* long double, since the last places of a double of some thousands are too coarse. */
static long double log_sum(size_t n, const float y[n])
{
	double sum = 0, max = -INFINITY;

	for (size_t v = 0; v < n; v++)
		max = fmax(max, (double)y[v]);
	for (size_t v = 0; v < n; v++)
		sum += exp((double)y[v] - max);
	return (long double)log(sum) + (long double)max;
}

static size_t top(size_t n, const float y[n])
{
	size_t best = 0;

	for (size_t v = 1; v < n; v++)
		if (y[v] > y[best])
			best = v;
	return best;
}

/* divergence_of() against the whole logits of both models. Returns the number of targets that agree, and the
 * largest kl. */
static size_t held_against_whole(struct made *m, struct made *a, const struct windows *w, double bound,
	double *largest)
{
	size_t vocab = m->config.vocab, rows = w->rows, k = 0, agree = 0;
	struct whole whole = { { xalloc(rows * vocab, sizeof(float)), xalloc(rows * vocab, sizeof(float)) },
		vocab };
	double *nll = xalloc(w->targets, sizeof *nll), *alone = xalloc(w->targets, sizeof *alone);
	struct divergence d = divergence_of(m->f, &m->h, a->f, &a->h, nll);

	*largest = 0;
	logits_tiles(2, (struct forward *[]){ m->f, a->f }, (const struct head *[]){ &m->h, &a->h }, keep,
		&whole);
	for (size_t i = 0; i < rows; i++) {
		CASE("row %zu", i);
		const float *q = whole.y[0] + i * vocab, *p = whole.y[1] + i * vocab;
		int32_t target = w->target[i];
		long double lq = log_sum(vocab, q), lp = log_sum(vocab, p);
		double kl = 0;

		if (target < 0)
			continue;
		for (size_t v = 0; v < vocab; v++)
			kl += exp((double)((long double)p[v] - lp)) *
				(double)(((long double)p[v] - lp) - ((long double)q[v] - lq));
		assert_true(d.kl[k] >= 0 && fabs(d.kl[k] - kl) <= bound);
		assert_true(fabs(d.nll[k] - (double)(lq - (long double)q[target])) < 3e-7);
		assert_true(fabs(d.reference[k] - (double)(lp - (long double)p[target])) < 3e-7);
		assert_int_equal(d.agrees[k], top(vocab, q) == top(vocab, p));
		*largest = fmax(*largest, d.kl[k]);
		agree += d.agrees[k++];
	}
	assert_int_equal(k, d.n);
	logits_score(m->f, &m->h, alone, NULL);
	assert_memory_equal(nll, alone, d.n * sizeof *nll);
	logits_score(a->f, &a->h, alone, NULL);
	assert_memory_equal(d.reference, alone, d.n * sizeof *alone);
	divergence_free(&d);
	free(whole.y[0]), free(whole.y[1]), free(nll), free(alone);
	return agree;
}

static void models_are_compared_over_the_whole_vocabulary(void **unused)
{
	struct windows w = make_windows(WINDOWS, CTX, VOCAB);
	struct made *m = make_first(&w), *near = make_near(m, &w, 0.05f), *nearest = make_near(m, &w, 1e-6f);
	uint16_t *half = xalloc(VOCAB * HIDDEN, sizeof *half);
	double largest;
	size_t agree;

	(void)unused;
	agree = held_against_whole(m, near, &w, 1e-12, &largest);
	print_message("# near: %zu of %zu agree, kl up to %g\n", agree, w.targets, largest);
	assert_true(agree > w.targets / 10 && agree < w.targets && largest > 1e-2);
	held_against_whole(m, nearest, &w, 1e-12, &largest);
	print_message("# nearest: kl up to %g\n", largest);
	/* about the square of 1e-6 times the logits */
	assert_true(largest > 0 && largest < 1e-9);
	/* another format of weights, and a head with a bias: very different logits */
	for (size_t i = 0; i < VOCAB; i++)
		near->bias[i] = -300 + draw();
	half_narrow(VOCAB * HIDDEN, half, near->weight, HALF_BF16);
	near->h.layer.linear.weight = half;
	near->h.layer.linear.weight_type = HALF_BF16;
	near->h.layer.linear.bias = near->bias;
	held_against_whole(near, m, &w, 1e-11, &largest);
	held_against_whole(m, near, &w, 1e-11, &largest);
	unmake(m), unmake(near), unmake(nearest);
	windows_free(&w);
	free(half);
}

/*
 * A head of hidden size 12 and one of 8; and weights so large that most of the vocabulary has probability 0
 * in double.
 */
static void models_differ_in_size(void **unused)
{
	enum { SMALL = 700, WIDE = 12 };
	struct windows w = make_windows(3, 50, SMALL);
	struct made *m = make(&w, SMALL, HIDDEN), *a = make(&w, SMALL, WIDE);
	double largest;

	(void)unused;
	for (int scale = 1; scale <= 1000; scale *= 1000) {
		for (size_t i = 0; i < 150 * HIDDEN; i++)
			m->f->hidden.x[i] = draw();
		for (size_t i = 0; i < SMALL * HIDDEN; i++)
			m->weight[i] = (float)scale * draw();
		for (size_t i = 0; i < 150 * WIDE; i++)
			a->f->hidden.x[i] = draw();
		for (size_t i = 0; i < SMALL * WIDE; i++)
			a->weight[i] = (float)scale * draw();
		held_against_whole(m, a, &w, 1e-12 * scale, &largest);
		print_message("# of different sizes: kl up to %g\n", largest);
	}
	unmake(m), unmake(a);
	windows_free(&w);
}

static void a_model_is_no_divergence_from_itself(void **unused)
{
	struct windows w = make_windows(WINDOWS, CTX, VOCAB);
	struct made *m = make_first(&w), *same = make_near(m, &w, 0);
	double *nll = xalloc(w.targets, sizeof *nll);
	struct divergence d = divergence_of(m->f, &m->h, same->f, &same->h, nll);

	(void)unused;
	for (size_t i = 0; i < d.n; i++)
		assert_true(d.kl[i] == 0 && d.agrees[i] == 1 && d.nll[i] == d.reference[i]);
	divergence_free(&d);
	unmake(m), unmake(same);
	windows_free(&w);
	free(nll);
}

/* DIVERGENCES models at once, some with the same head: the numbers are those of each alone. */
static void several_are_compared_at_once(void **unused)
{
	struct windows w = make_windows(WINDOWS, CTX, VOCAB);
	struct made *m = make_first(&w), *near[DIVERGENCES];
	struct forward *f[DIVERGENCES];
	const struct head *h[DIVERGENCES];
	double *nll[DIVERGENCES], *alone = xalloc(w.targets, sizeof *alone);
	struct divergence d[DIVERGENCES];

	(void)unused;
	for (size_t k = 0; k < DIVERGENCES; k++) {
		near[k] = make_near(m, &w, 0.01f * (float)(k + 1));
		f[k] = near[k]->f;
		h[k] = k % 3 ? &m->h : &near[k]->h;
		nll[k] = xalloc(w.targets, sizeof *nll[k]);
	}
	divergences_of(DIVERGENCES, f, h, m->f, &m->h, nll, d);
	for (size_t k = 0; k < DIVERGENCES; k++) {
		CASE("model %zu", k);
		struct divergence one = divergence_of(f[k], h[k], m->f, &m->h, alone);

		assert_true(one.kl[0] > 0 && d[k].nll == nll[k]);
		assert_memory_equal(d[k].kl, one.kl, w.targets * sizeof *one.kl);
		assert_memory_equal(d[k].agrees, one.agrees, w.targets);
		assert_memory_equal(d[k].reference, one.reference, w.targets * sizeof *one.reference);
		assert_memory_equal(nll[k], alone, w.targets * sizeof *alone);
		divergence_free(&one), divergence_free(&d[k]);
		unmake(near[k]);
		free(nll[k]);
	}
	unmake(m);
	windows_free(&w);
	free(alone);
}

static void threads_do_not_matter(void **unused)
{
	struct windows w = make_windows(WINDOWS, CTX, VOCAB);
	struct made *m = make_first(&w), *near = make_near(m, &w, 0.05f);
	struct divergence d[2];
	double *nll[2];

	(void)unused;
	for (int k = 0; k < 2; k++) {
		CASE("%d threads", 1 + 2 * k);
		threads = 1 + 2 * k;
		nll[k] = xalloc(w.targets, sizeof *nll[k]);
		d[k] = divergence_of(m->f, &m->h, near->f, &near->h, nll[k]);
	}
	threads_init(0);
	assert_memory_equal(d[0].kl, d[1].kl, w.targets * sizeof *d->kl);
	assert_memory_equal(d[0].agrees, d[1].agrees, w.targets);
	for (int k = 0; k < 2; k++)
		divergence_free(&d[k]), free(nll[k]);
	unmake(m), unmake(near);
	windows_free(&w);
}

/* P = (0.9, 0.1) of the other model, Q = (0.5, 0.5): KL is not symmetric. */
static void the_other_model_weighs(void **unused)
{
	struct windows w = windows_cut("x", &(struct tokens){ .n = 2, .id = (int32_t[]){ 0, 1 }, .bos = -1 },
		0, 2, 0);
	struct made *m = make(&w, 2, 1), *a = make(&w, 2, 1);
	double nll;
	struct divergence d;

	(void)unused;
	m->f->hidden.x[0] = a->f->hidden.x[0] = 1;
	a->weight[0] = logf(9);
	d = divergence_of(m->f, &m->h, a->f, &a->h, &nll);
	assert_true(fabs(d.kl[0] - (0.9 * log(0.9 / 0.5) + 0.1 * log(0.1 / 0.5))) < 1e-7);
	assert_true(fabs(nll - log(2)) < 1e-7 && fabs(d.reference[0] - log(10)) < 1e-6);
	assert_true(d.agrees[0]);		/* of two equal logits the first counts as the top one */
	divergence_free(&d);
	d = divergence_of(a->f, &a->h, m->f, &m->h, &nll);
	assert_true(fabs(d.kl[0] - (0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1))) < 1e-7);
	divergence_free(&d);
	windows_free(&w);
	unmake(m), unmake(a);
}

static double value(const struct metric *a, const char *name)
{
	for (size_t i = 0; i < DIVERGENCE_METRICS; i++)
		if (!strcmp(a[i].name, name))
			return a[i].value;
	fail_msg("no %s", name);
	return NAN;
}

static void numbers_worked_out_by_hand(void **unused)
{
	/* Δp 0.1 -0.2 0 -0.3 0.04 */
	const double q[5] = { 0.5, 0.2, 0.9, 0.1, 0.4 }, p[5] = { 0.4, 0.4, 0.9, 0.4, 0.36 };
	double nll[5], against[5], kl[5] = { 4, 0, 1, 3, 2 }, mean = 0, square = 0;
	uint8_t agrees[5] = { 1, 1, 0, 1, 1 };
	const struct divergence d = { 5, nll, against, kl, agrees, NULL };
	/* kl 4 0 1 | 3 2, mean 2: deviations per window -1 and 1 */
	int32_t target[7] = { 0, 1, 2, -1, 3, 4, -1 };
	struct sequence sequence[2] = { { .first = 0, .length = 4 }, { .first = 4, .length = 3 } };
	const struct windows windows = { .n = 2, .rows = 7, .targets = 5, .sequence = sequence,
		.target = target };
	const struct { const char *name; double is; } want[] = {
		{ "kl", 2 }, { "kl_se", sqrt(2.0 / 4) }, { "kl_se_windows", 0.4 },
		{ "kl_median", 2 }, { "kl_99", 3.96 }, { "kl_99_9", 3.996 }, { "kl_max", 4 },
		{ "top_agreement", 0.8 }, { "top_agreement_se", sqrt(0.8 * 0.2 / 4) },
		{ "delta_p", -0.072 }, { "delta_p_rms", sqrt((0.01 + 0.04 + 0.09 + 0.0016) / 5) },
		{ "delta_p_1", -0.3 + 0.04 * 0.1 }, { "delta_p_5", -0.28 }, { "delta_p_25", -0.2 },
		{ "delta_p_median", 0 }, { "delta_p_75", 0.04 }, { "delta_p_95", 0.088 },
		{ "delta_p_99", 0.04 + 0.96 * 0.06 },
	};
	struct metric metric[DIVERGENCE_METRICS];

	(void)unused;
	for (size_t i = 0; i < 5; i++) {
		nll[i] = -log(q[i]), against[i] = -log(p[i]);
		mean += (nll[i] - against[i]) / 5;
		square += (nll[i] - against[i]) * (nll[i] - against[i]) / 5;
	}
	assert_int_equal(divergence_metrics(&d, &windows, metric), DIVERGENCE_METRICS);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		if (!(fabs(value(metric, want[i].name) - want[i].is) < 1e-15))
			fail_msg("%s is %.17g, not %.17g", want[i].name, value(metric, want[i].name),
				want[i].is);
	assert_true(fabs(value(metric, "reference_nll_delta") - mean) < 1e-15);
	assert_true(fabs(value(metric, "reference_nll_delta_se") - sqrt((square - mean * mean) / 4)) < 1e-15);
	assert_true(kl[0] == 4 && kl[4] == 2);		/* targets stay in their order */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_are_compared_over_the_whole_vocabulary),
		cmocka_unit_test(models_differ_in_size),
		cmocka_unit_test(a_model_is_no_divergence_from_itself),
		cmocka_unit_test(several_are_compared_at_once),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(the_other_model_weighs),
		cmocka_unit_test(numbers_worked_out_by_hand),
	};

	threads_init(0);
	linalg_init();
	stream = random_open(1, "divergence");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
