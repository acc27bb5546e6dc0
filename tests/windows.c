/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows.c -- conventions of windows against their definitions, token by token, on texts of every length */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(of_every_length), cmocka_unit_test(strides),
		cmocka_unit_test(slide_of_sequences), cmocka_unit_test(images_are_no_targets) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
