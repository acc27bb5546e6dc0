/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows.c -- conventions of windows against their definitions, token by token, on texts of every length */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/random.h"
#include "case.h"
#include "forward/windows.h"

enum { MAX = 40, BOS = 99 };

/* The expected result of a convention: rows of windows, one after the other, and the target of each. */
struct wanted {
	size_t windows, rows;
	int32_t id[MAX * MAX], target[MAX * MAX];
	size_t length[MAX];
	uint64_t bytes;
};

/* The text with its BOS, if it has one. */
struct stream { size_t n; int32_t id[MAX + 1]; };

static struct stream stream_of(const struct tokens *t, size_t n)
{
	struct stream s = { 0 };

	if (t->add_bos)
		s.id[s.n++] = t->bos;
	for (size_t i = 0; i < n; i++)
		s.id[s.n++] = t->id[i];
	return s;
}

static void put(struct wanted *y, const struct stream *s, size_t begin, size_t length,
	const bool scored[length])
{
	for (size_t j = 0; j < length; j++) {
		y->id[y->rows + j] = s->id[begin + j];
		y->target[y->rows + j] = j + 1 < length && scored[j + 1] ? s->id[begin + j + 1] : -1;
		if (j + 1 < length && scored[j + 1])
			y->bytes += (uint64_t)s->id[begin + j + 1] + 1;
	}
	y->rows += length;
	y->length[y->windows++] = length;
}

/* Chunks of the text with its BOS. The first id of each chunk is replaced by a BOS, and targets are in the
 * second half. */
static void want_llama_cpp(struct wanted *y, const struct tokens *t, size_t n, size_t ctx)
{
	const struct stream s = stream_of(t, n);

	for (size_t chunk = 0; chunk < s.n / ctx; chunk++) {
		bool scored[MAX];

		for (size_t j = 0; j < ctx; j++)
			scored[j] = j >= ctx / 2 + 1 && j <= ctx - 1;
		put(y, &s, chunk * ctx, ctx, scored);
		if (t->add_bos)
			y->id[y->rows - ctx] = t->bos;
	}
}

/* Every id is scored once: in the first window that has it and the id before it. */
static void want_sliding(struct wanted *y, const struct tokens *t, size_t n, size_t ctx, size_t stride)
{
	const struct stream s = stream_of(t, n);
	bool done[MAX + 1] = { false };

	for (size_t begin = 0, end = 0; end < s.n; begin += stride) {
		bool scored[MAX] = { false }, any = false;

		end = begin + ctx < s.n ? begin + ctx : s.n;
		for (size_t j = 1; j < end - begin; j++) {
			any |= scored[j] = !done[begin + j];
			done[begin + j] = true;
		}
		if (any)
			put(y, &s, begin, end - begin, scored);
	}
}

static void compare(const struct wanted *y, const struct tokens *t, enum windows_convention convention,
	size_t ctx, size_t stride)
{
	struct windows w = windows_cut("x", t, convention, ctx, stride);
	size_t targets[MAX], sum = 0;

	assert_int_equal(w.n, y->windows);
	assert_int_equal(w.rows, y->rows);
	assert_memory_equal(w.id, y->id, w.rows * sizeof *w.id);
	assert_memory_equal(w.target, y->target, w.rows * sizeof *w.target);
	assert_int_equal(w.bytes, y->bytes);
	windows_targets(&w, targets);
	for (size_t i = 0; i < w.n; i++) {
		assert_int_equal(w.sequence[i].length, y->length[i]);
		assert_true(targets[i] > 0);
		sum += targets[i];
	}
	assert_int_equal(sum, w.targets);
	windows_free(&w);
}

static void of_every_length(void **unused)
{
	int32_t id[MAX];
	uint16_t bytes[MAX];
	size_t compared = 0;

	(void)unused;
	for (size_t i = 0; i < MAX; i++)
		id[i] = (int32_t)i, bytes[i] = (uint16_t)(i + 1);
	for (size_t n = 2; n < MAX - 2; n++)
		for (size_t ctx = 2; ctx < 12; ctx++)
			for (int bos = 0; bos < 2; bos++) {
				CASE("ctx %zu, bos %d", ctx, bos);
				struct tokens t = { .n = n, .id = id, .bytes = bytes, .bos = BOS,
					.add_bos = bos, .newline = n % 3 == 0 };
				struct wanted y = { 0 };

				if (ctx > 2)
					want_llama_cpp(&y, &t, n - (n % 3 == 0), ctx);
				if (y.windows) {
					compare(&y, &t, WINDOWS_LLAMA_CPP, ctx, 0);
					compared++;
				}
				for (size_t stride = 1; stride <= ctx; stride++) {
					y = (struct wanted){ 0 };
					want_sliding(&y, &t, n, ctx, stride);
					compare(&y, &t, WINDOWS_SLIDING, ctx, stride);
					compared++;
				}
			}
	assert_true(compared > 5000);
}

/* The default stride is half a window; with a stride of 1 every target has the max context. */
static void strides(void **unused)
{
	static const int32_t id[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct tokens t = { .n = 9, .id = id, .bos = -1 };
	struct windows w = windows_cut("x", &t, WINDOWS_SLIDING, 4, 0);

	(void)unused;
	assert_int_equal(w.n, 4);	/* 0 1 2 3 | 2 3 4 5 | 4 5 6 7 | 6 7 8 */
	assert_memory_equal(w.target, ((int32_t[]){ 1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 8, -1 }),
		60);
	windows_shard(&w, (struct shard){ .i = 2, .n = 2 });
	assert_int_equal(w.targets, 3);
	assert_memory_equal(w.id, ((int32_t[]){ 2, 3, 4, 5, 6, 7, 8 }), 28);
	windows_free(&w);
	w = windows_cut("x", &t, WINDOWS_SLIDING, 4, 1);
	assert_int_equal(w.n, 6);
	assert_int_equal(w.targets, 8);
	windows_free(&w);
}

/* Separate texts have separate sliding windows; a reordered text must fit its window. */
static void slide_of_sequences(void **unused)
{
	static const int32_t id[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, index[] = { 1, 0, 0, 2, 1, 3, 2, 0, 1 };
	static const int64_t sequence[] = { 0, 2, 6, 9 };
	struct tokens t = { .n = 9, .id = id, .bos = BOS, .add_bos = true, .sequences = 3,
		.sequence = sequence };
	struct windows w = windows_cut("x", &t, WINDOWS_SLIDING, 4, 2);

	(void)unused;
	assert_int_equal(w.n, 4);	/* 99 0 1 | 99 2 3 4 | 3 4 5 | 99 6 7 8 */
	assert_memory_equal(w.id, ((int32_t[]){ BOS, 0, 1, BOS, 2, 3, 4, 3, 4, 5, BOS, 6, 7, 8 }), 56);
	assert_memory_equal(w.target, ((int32_t[]){ 0, 1, -1, 2, 3, 4, -1, -1, 5, -1, 6, 7, 8, -1 }), 56);
	windows_free(&w);
	t.index = index;
	w = windows_cut("x", &t, WINDOWS_SLIDING, 5, 2);
	assert_int_equal(w.n, 3);
	assert_memory_equal(w.target, ((int32_t[]){ 1, -1, 0, 2, 4, 5, 3, -1, 7, -1, 8, 6 }), 48);
	windows_free(&w);
}

/* No id of an image is a target. The id after an image is one. Windows without targets can be left out. */
static void images_are_no_targets(void **unused)
{
	static const int64_t feature[] = { -1, -1, 0, 1, -1, 2, 3, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1,
		7, 8, 9 };
	static const struct token_image image[] = { { .first = 2, .n = 2 },
		{ .number = 1, .first = 5, .n = 5 }, { .number = 2, .first = 17, .n = 3 } };
	int32_t id[20];
	uint8_t modality[20];
	uint16_t bytes[20];
	struct tokens t = { .n = 20, .id = id, .bytes = bytes, .bos = -1, .modality = modality,
		.feature = feature, .images = 3, .image = image };
	struct windows w;

	(void)unused;
	quiet = true;
	for (int i = 0; i < 20; i++)
		id[i] = i, bytes[i] = (uint16_t)(i + 1), modality[i] = feature[i] >= 0;
	/* 0 1 * * | 4 * * * | * * 10 11 | 12 13 14 15 | 16 * * * */
	w = windows_cut("x", &t, WINDOWS_GPTQ, 4, 0);
	assert_true(w.n == 5 && w.rows == 20 && w.images == 3 && w.targets == 6);
	assert_memory_equal(w.target, ((int32_t[]){ 1, -1, -1, -1, -1, -1, -1, -1, -1, 10, 11, -1,
		13, 14, 15, -1, -1, -1, -1, -1 }), 80);
	w = windows_scored(w);
	assert_true(w.n == 3 && w.rows == 12 && w.images == 2 && w.targets == 6 && w.modalities == 2);
	assert_int_equal(w.bytes, 2 + 11 + 12 + 14 + 15 + 16);
	assert_memory_equal(w.id, ((int32_t[]){ 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15 }), 48);
	assert_memory_equal(w.feature, ((int32_t[]){ -1, -1, 0, 1, 5, 6, -1, -1, -1, -1, -1, -1 }), 48);
	assert_true(w.sequence[1].first == 4 && w.sequence[2].first == 8 && w.modality[2] && !w.modality[6]);
	windows_free(&w);
	t.feature = NULL, t.images = 0;		/* visual tokens without images count as text */
	w = windows_scored(windows_cut("x", &t, WINDOWS_GPTQ, 4, 0));
	assert_true(w.n == 5 && w.targets == 15);
	windows_free(&w);
	/* 0 * * 3 4, in an order with the image first; the BOS is before it */
	t = (struct tokens){ .n = 5, .id = (int32_t[]){ 1, 2, 0, 3, 4 },
		.index = (int32_t[]){ 1, 2, 0, 3, 4 },
		.feature = (int64_t[]){ 0, 1, -1, -1, -1 }, .images = 1, .image = image, .bos = BOS };
	w = windows_scored(windows_cut("x", &t, WINDOWS_BOS, 6, 0));
	assert_memory_equal(w.target, ((int32_t[]){ 0, -1, 3, -1, 4, -1 }), 24);
	windows_free(&w);
}

/* Every place at which a whole window fits, in the order of the text: the ids of the window. */
static size_t all_places(const struct tokens *t, bool each, size_t ctx, int32_t place[][MAX])
{
	size_t places = 0, sequences = t->sequences ? t->sequences : 1;

	for (size_t s = 0; s < sequences; s++) {
		const size_t begin = t->sequences ? (size_t)t->sequence[s] : 0;
		const size_t end = t->sequences ? (size_t)t->sequence[s + 1] : t->n;
		int32_t stream[MAX + 1];
		size_t n = 0, ids = each ? ctx - 1 : ctx;

		if (t->add_bos && !each)
			stream[n++] = BOS;
		for (size_t i = begin; i < end; i++)
			stream[n++] = t->id[i];
		for (size_t i = 0; i + ids <= n; i++, places++) {
			place[places][0] = BOS;
			memcpy(place[places] + each, stream + i, ids * sizeof *stream);
		}
	}
	return places;
}

/* Random windows against the law of the header, with and without sequences. */
static void random_places(void **unused)
{
	static const int64_t sequence[] = { 0, 3, 4, 17, 30 };
	int32_t id[MAX], place[MAX][MAX];
	uint16_t bytes[MAX];
	size_t compared = 0;

	(void)unused;
	for (size_t i = 0; i < MAX; i++)
		id[i] = (int32_t)i, bytes[i] = (uint16_t)(i + 1);
	for (size_t ctx = 2; ctx < 12; ctx++)
		for (int of = 0; of < 32; of++) {
			const bool each = of & 1, split = of & 2;
			const size_t limit = of & 4 ? 20 : 0, seed = (size_t)(of >> 3);
			struct tokens t = { .n = 30, .id = id, .bytes = bytes, .bos = BOS, .add_bos = of & 8,
				.sequences = split ? 4 : 0, .sequence = split ? sequence : NULL };
			const struct random_stream r = random_open(seed, "windows");
			const size_t places = all_places(&t, each, ctx, place);
			struct windows w = windows_draw("x", &t, each ? WINDOWS_BOS : WINDOWS_GPTQ, ctx,
				limit, seed);

			CASE("ctx %zu, %d", ctx, of);
			assert_int_equal(w.n, each ? (limit ? 20 : 30) / (ctx - 1) :
				((limit ? 20 : 30) + t.add_bos) / ctx);
			assert_int_equal(w.rows, w.n * ctx);
			uint64_t sum = 0;

			for (size_t k = 0; k < w.n; k++) {
				const double at = random_uniform(&r, k) * (double)places;
				const int32_t *want = place[(size_t)at];

				assert_memory_equal(w.id + k * ctx, want, ctx * sizeof *want);
				assert_memory_equal(w.target + k * ctx, want + 1, (ctx - 1) * sizeof *want);
				assert_int_equal(w.target[(k + 1) * ctx - 1], -1);
				for (size_t j = 1; j < ctx; j++)
					sum += (uint64_t)want[j] + 1;
			}
			assert_int_equal(w.bytes, sum);
			assert_int_equal(w.targets, w.n * (ctx - 1));
			windows_free(&w);
			compared++;
		}
	assert_int_equal(compared, 320);
}

/* A longer draw begins with the shorter one of the same seed. Every place is drawn, and about equally often:
 * of 20 places and 40000 windows, the number of a place is 2000 with a standard deviation of 44. */
static void random_windows_are_uniform(void **unused)
{
	enum { PLACES = 20, CTX = 3, N = PLACES + CTX - 1, WINDOWS = 40000 };
	static int32_t id[CTX * WINDOWS];
	size_t count[PLACES] = { 0 };
	struct tokens t = { .n = CTX * WINDOWS, .id = id, .bos = -1, .sequences = 1,
		.sequence = (int64_t[]){ 0, N } };
	struct windows w, first;

	(void)unused;
	for (int i = 0; i < N; i++)
		id[i] = i;
	w = windows_draw("x", &t, WINDOWS_GPTQ, CTX, 0, 7);
	first = windows_draw("x", &t, WINDOWS_GPTQ, CTX, 300, 7);
	assert_true(w.n == WINDOWS && first.n == 100);
	assert_memory_equal(w.id, first.id, first.rows * sizeof *w.id);
	for (size_t k = 0; k < w.n; k++)
		count[w.id[k * CTX]]++;
	for (size_t i = 0; i < PLACES; i++)
		assert_in_range(count[i], 2000 - 5 * 44, 2000 + 5 * 44);
	windows_free(&w), windows_free(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_places),
		cmocka_unit_test(random_windows_are_uniform), cmocka_unit_test(of_every_length),
		cmocka_unit_test(strides), cmocka_unit_test(slide_of_sequences),
		cmocka_unit_test(images_are_no_targets) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
