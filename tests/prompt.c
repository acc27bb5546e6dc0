/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * prompt -- contexts that are computed once: windows computed by hand, how they stay together, and on every
 * architecture of the reference models likelihoods equal to those of each context and continuation alone
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
#include "forward/forward.h"
#include "forward/logits.h"
#include "forward/prompt.h"
#include "forward/windows.h"
#include "io/part.h"
#include "num/linalg.h"

static struct random_stream stream;
static uint64_t drawn;

static size_t below(size_t n) { return (size_t)(random_uniform(&stream, drawn++) * (double)n); }

static struct prompt_tokens tokens_of(size_t n, const int32_t id[n])
{
	struct prompt_tokens s = { .n = n, .id = xalloc(n, sizeof *s.id) };

	memcpy(s.id, id, n * sizeof *s.id);
	return s;
}

static void is_rows(const char *what, const int32_t *y, size_t n, const int32_t *expected)
{
	for (size_t i = 0; i < n; i++)
		if (y[i] != expected[i])
			fail_msg("%s of row %zu is %d, %d expected", what, i, y[i], expected[i]);
}

static const struct prompt_images none = { 0 };

static struct prompt *two_prompts(void)
{
	struct prompt *p = xalloc(2, sizeof *p);

	p[0] = (struct prompt){ tokens_of(3, (int32_t[]){ 1, 2, 3 }), NULL, 2,
		xalloc(2, sizeof *p->continuation) };
	p[0].continuation[0] = tokens_of(3, (int32_t[]){ 4, 5, 6 });
	p[0].continuation[1] = tokens_of(1, (int32_t[]){ 7 });
	p[1] = (struct prompt){ tokens_of(1, (int32_t[]){ 8 }), NULL, 1,
		xalloc(1, sizeof *p->continuation) };
	p[1].continuation[0] = tokens_of(2, (int32_t[]){ 9, 10 });
	return p;
}

/* 1 2 3 | 3 4 5 | 3 6 || 7 | 7 8 (a context of one token: 7 9 8, 7 6) */
static void windows_by_hand(void **unused)
{
	struct prompt *p = two_prompts();
	struct windows w;
	struct sequence own[3];
	struct batch b;

	(void)unused;
	w = prompt_windows("x", 2, p, &none, AXES, 0);
	assert_true(w.n == 4 && w.rows == 8 && w.longest == 5 && w.positions == 5 && w.targets == 6);
	is_rows("id", w.id, 8, (int32_t[]){ 1, 2, 3, 4, 5, 3, 8, 9 });
	is_rows("target", w.target, 8, (int32_t[]){ -1, -1, 4, 5, 6, 7, 9, 10 });
	assert_true(!w.position && !w.index && !w.modality && w.modalities == 1);
	assert_true(w.sequence[0].past == 0 && w.sequence[1].past == 2 && w.sequence[2].past == 2);
	assert_true(w.sequence[1].prefix == 0 && w.sequence[2].prefix == 0 && w.sequence[3].past == 0);
	assert_true(windows_within(&w, 0, 1) == 3 && windows_within(&w, 0, 7) == 3);
	assert_true(windows_within(&w, 0, 8) == 4 && windows_within(&w, 3, 1) == 1);
	windows_free(&w);

	/* At most 4 positions: 2 3 before 4 5 6 (a window of 4 rows), but 1 2 3 before 7. */
	assert_true(prompts_cut(2, p, 5) == 0 && prompts_cut(2, p, 4) == 1);
	w = prompt_windows("x", 2, p, &none, AXES, 4);
	assert_true(w.n == 5 && w.rows == 9 && w.longest == 4 && w.targets == 6);
	is_rows("id", w.id, 9, (int32_t[]){ 2, 3, 4, 5, 1, 2, 3, 8, 9 });
	is_rows("target", w.target, 9, (int32_t[]){ -1, 4, 5, 6, -1, -1, 7, 9, 10 });
	assert_true(w.sequence[1].past == 1 && w.sequence[1].prefix == 0);
	assert_true(w.sequence[3].past == 2 && w.sequence[3].prefix == 4);
	windows_free(&w);

	/* 1, two tokens of an image, 3: before and after these come first, the last token stays */
	free(p[0].context.id);
	p[0].context = tokens_of(4, (int32_t[]){ 1, 2, 2, 3 });
	p[0].context.feature = xalloc(4, sizeof *p->context.feature);
	memcpy(p[0].context.feature, (int64_t[]){ -1, 0, 1, -1 }, 4 * sizeof *p->context.feature);
	assert_true(prompts_cut(2, p, 3) == 0);		/* contexts with images are not cut */
	for (int first = 0; first < 2; first++) {
		CASE("first %d", first);
		const struct prompt_images one = { 1, 2, &(struct token_image){ .first = 1, .n = 2 } };

		if (first)
			prompt_visual_first(&p[0], AXES);
		w = prompt_windows("x", 2, p, &one, AXES, 0);
		is_rows("id", w.id, 9, first ? (int32_t[]){ 2, 2, 1, 3, 4, 5, 3, 8, 9 } :
			(int32_t[]){ 1, 2, 2, 3, 4, 5, 3, 8, 9 });
		is_rows("feature", w.feature, 9, first ? (int32_t[]){ 0, 1, -1, -1, -1, -1, -1, -1, -1 } :
			(int32_t[]){ -1, 0, 1, -1, -1, -1, -1, -1, -1 });
		assert_true(w.modalities == 2 && !w.index == !first && w.images == 1);
		if (first)
			is_rows("index", w.index, 9, (int32_t[]){ 1, 2, 0, 3, 4, 5, 3, 0, 1 });
		if (first)
			is_rows("position", w.position, 9, (int32_t[]){ 1, 2, 0, 3, 4, 5, 3, 0, 1 });
		windows_free(&w);
	}
	prompts_free(2, p);
	p = two_prompts();
	{	/* the second prompt is before the first: rows of a batch count from 0 */
		const struct prompt transposed[] = { p[1], p[0] };

		w = prompt_windows("x", 2, transposed, &none, AXES, 0);
		b = windows_batch(&w, 1, 3, own);
		assert_true(b.rows == 6 && own[0].first == 0 && own[1].first == 2 && own[2].first == 5);
		assert_true(w.sequence[2].prefix == 2 && own[1].prefix == 0 && own[2].prefix == 0);
		windows_free(&w);
	}
	prompts_free(2, p);
}

/* ---- models ---- */

enum { PROMPTS = 60, CONTEXT = 30, MORE = 8 };

/* Long contexts are at the end, so that chunks of a block end between prompts. */
static struct prompt *draw_prompts(size_t vocab)
{
	struct prompt *p = xalloc(PROMPTS, sizeof *p);
	int32_t id[CONTEXT + MORE];

	for (size_t i = 0; i < CONTEXT + MORE; i++)
		id[i] = (int32_t)below(vocab);
	for (size_t i = 0; i < PROMPTS; i++) {
		const size_t n = 1 + below(5);

		for (size_t k = 0; k < CONTEXT + MORE; k++)
			id[below(CONTEXT + MORE)] = (int32_t)below(vocab);
		p[i] = (struct prompt){ tokens_of(1 + below(i < 4 ? 3 : CONTEXT), id), NULL, n,
			xalloc(n, sizeof *p->continuation) };
		for (size_t k = 0; k < n; k++)
			p[i].continuation[k] = tokens_of(1 + below(MORE), id + k);
	}
	return p;
}

static const struct execution as_it_is;

static double *score(const struct part *part, const struct config *c, const struct windows *w,
	uint8_t *likeliest)
{
	struct forward *f = forward_open(c, &as_it_is, w, SIZE_MAX);
	struct head head = head_read(part, c, &as_it_is, false);
	double *nll = xalloc(w->targets, sizeof *nll);

	assert_true(forward_part(f, part, NULL));
	logits_score(f, &head, nll, likeliest);
	head_free(&head);
	forward_close(f);
	return nll;
}

/* Each context with its continuation is a separate text. */
static struct windows alone(const struct prompt *p, size_t sequences, int64_t *sequence)
{
	int32_t *id = xalloc(sequences * (CONTEXT + MORE), sizeof *id);
	size_t n = 0, s = 0;
	struct windows w;

	for (size_t i = 0; i < PROMPTS; i++)
		for (size_t k = 0; k < p[i].continuations; k++) {
			const struct prompt_tokens *a = &p[i].context, *b = &p[i].continuation[k];

			memcpy(id + n, a->id, a->n * sizeof *id);
			memcpy(id + n + a->n, b->id, b->n * sizeof *id);
			n += a->n + b->n;
			sequence[++s] = (int64_t)n;
		}
	w = windows_cut("x", &(struct tokens){ .n = n, .id = id, .bos = -1, .sequences = sequences,
		.sequence = sequence }, WINDOWS_GPTQ, CONTEXT + MORE, 0);
	assert_int_equal(w.n, sequences);
	free(id);
	return w;
}

/* The largest difference of a likelihood, relative to it or to one nat; float32 sums have another order. */
static double likelihoods_of(const struct part *part, const struct config *c)
{
	struct prompt *p = draw_prompts(c->vocab);
	struct windows shared = prompt_windows("x", PROMPTS, p, &none, AXES, 0), each;
	size_t sequences = 0, k = 0, at = 0, s = 0, top = 0;
	uint8_t *likeliest = xalloc(shared.targets, 1), *theirs;
	int64_t *sequence;
	double *x, *y, worst = 0;

	for (size_t i = 0; i < PROMPTS; i++)
		sequences += p[i].continuations;
	sequence = xalloc(sequences + 1, sizeof *sequence);
	each = alone(p, sequences, sequence);
	theirs = xalloc(each.targets, 1);
	x = score(part, c, &shared, likeliest), y = score(part, c, &each, theirs);
	assert_true(shared.rows > 2 * 512 && shared.rows < each.rows);
	for (size_t i = 0; i < PROMPTS; i++)
		for (size_t j = 0; j < p[i].continuations; j++, s++) {
			const size_t n = p[i].continuation[j].n;

			at += each.sequence[s].length - 1 - n;		/* targets of the context */
			for (size_t t = 0; t < n; t++, k++, at++) {
				worst = fmax(worst, fabs(x[k] - y[at]) / fmax(1, y[at]));
				assert_int_equal(likeliest[k], theirs[at]);
				top += likeliest[k];
			}
		}
	assert_int_equal(k, shared.targets);
	assert_true(top > 0 && top < k);
	windows_free(&shared), windows_free(&each);
	prompts_free(PROMPTS, p);
	free(x), free(y), free(likeliest), free(theirs), free(sequence);
	return worst;
}

static void likelihoods_are_those_alone(void **unused)
{
	static const char *const models[] = { "llama-gqa", "qwen2-bias", "qwen2-window", "mistral-window",
		"gpt2", "opt", "neox-parallel", "phi3-window", "gemma2", "gemma3", "qwen3-moe", "mixtral" };
	const char *folder = getenv("PTQ_REF");

	(void)unused;
	for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
		CASE("%s", models[k]);
		char *path = xformat("%s/%s.h5", folder ? folder : "tests/ref", models[k]);
		struct part *part = part_open(path, "model");
		struct config config = config_read(part);
		double worst[2];

		for (int t = 0; t < 2; t++) {
			threads_init(t ? 3 : 1);
			drawn = k << 32;
			worst[t] = likelihoods_of(part, &config);
		}
		print_message("# %-16s %.2g\n", models[k], worst[0]);
		assert_true(worst[0] < 1e-5 && worst[1] == worst[0]);
		config_free(&config);
		part_close(part);
		free(path);
	}
	threads_init(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(windows_by_hand),
		cmocka_unit_test(likelihoods_are_those_alone) };

	threads_init(0);
	linalg_init();
	stream = random_open(1, "prompt");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
