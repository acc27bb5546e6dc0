/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf.c -- values of every type from a GGUF file; the vocabularies of the trial data, which are files
 * without tensors: ids of SentencePiece's kind against llama.cpp's, words and merges of GPT-2's against the
 * original ones
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/error.h"
#include "case.h"
#include "import/gguf.h"
#include "import/source.h"
#include "io/contents.h"
#include "text/tokenizer.h"

struct bytes { size_t n; unsigned char b[4096]; };

static void put(struct bytes *y, const void *from, size_t n)
{
	memcpy(y->b + y->n, from, n);
	y->n += n;
}

static void number(struct bytes *y, uint64_t v, size_t n)
{
	put(y, &v, n);
}

static void text(struct bytes *y, const char *s)
{
	number(y, strlen(s), 8);
	put(y, s, strlen(s));
}

static void key(struct bytes *y, const char *name, unsigned type)
{
	text(y, name);
	number(y, type, 4);
}

static char *file_of(const struct bytes *y)
{
	char *path = xformat("/tmp/ptq-gguf-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0 && write(fd, y->b, y->n) == (ssize_t)y->n);
	close(fd);
	return path;
}

/* Types 0 to 12 except strings and arrays, with their bytes and values. */
static const struct {
	const char *key;
	unsigned type;
	uint64_t bits;
	size_t size;
	bool whole, real;
	int64_t v;
	double x;
} numbers[] = {
	{ "u8", 0, 200, 1, true, true, 200, 200 },
	{ "i8", 1, 0xfe, 1, true, true, -2, -2 },
	{ "u16", 2, 0xfffe, 2, true, true, 65534, 65534 },
	{ "i16", 3, 0xfffe, 2, true, true, -2, -2 },
	{ "u32", 4, 0xfffffffe, 4, true, true, 4294967294, 4294967294.0 },
	{ "i32", 5, 0xfffffffe, 4, true, true, -2, -2 },
	{ "f32", 6, 0x3fc00000, 4, false, true, 0, 1.5 },
	{ "u64", 10, INT64_MAX, 8, true, true, INT64_MAX, 0x1p63 },
	{ "i64", 11, UINT64_MAX, 8, true, true, -1, -1 },
	{ "f64", 12, 0x3ff8000000000000, 8, false, true, 0, 1.5 },
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void values(void **unused)
{
	struct bytes y = { 0 };
	struct gguf *g;
	char *path, *s;
	bool flag = false;
	size_t n;

	(void)unused;
	put(&y, "GGUF", 4);
	number(&y, 3, 4), number(&y, 1, 8), number(&y, 2 * NUMBERS + 4, 8);
	for (size_t i = 0; i < NUMBERS; i++) {
		char array[16];

		key(&y, numbers[i].key, numbers[i].type);
		number(&y, numbers[i].bits, numbers[i].size);
		snprintf(array, sizeof array, "%s[]", numbers[i].key);
		key(&y, array, 9);
		number(&y, numbers[i].type, 4), number(&y, 2, 8);
		number(&y, 0, numbers[i].size), number(&y, numbers[i].bits, numbers[i].size);
	}
	key(&y, "yes", 7), number(&y, 1, 1);
	key(&y, "word", 8), text(&y, "na\xc3\xafve");
	key(&y, "words", 9), number(&y, 8, 4), number(&y, 2, 8), text(&y, ""), text(&y, "b");
	key(&y, "nested", 9), number(&y, 9, 4), number(&y, 2, 8);
	number(&y, 8, 4), number(&y, 1, 8), text(&y, "c"), number(&y, 0, 4), number(&y, 3, 8),
		number(&y, 0, 3);
	text(&y, "t"), number(&y, 2, 4), number(&y, 3, 8), number(&y, 2, 8), number(&y, 77, 4),
		number(&y, 32, 8);
	y.n = (y.n + 31) / 32 * 32 + 32 + 5;
	path = file_of(&y);
	g = gguf_open(path);
	for (size_t i = 0; i < NUMBERS; i++) {
		CASE("%s", numbers[i].key);
		int64_t v = 0, *list;
		double x = 0, *reals;
		char array[16];

		snprintf(array, sizeof array, "%s[]", numbers[i].key);
		if (numbers[i].whole) {
			assert_true(gguf_integer(g, numbers[i].key, &v) && v == numbers[i].v);
			list = gguf_integers(g, array, &n);
			assert_true(n == 2 && list[0] == 0 && list[1] == numbers[i].v);
			free(list);
		}
		assert_true(gguf_real(g, numbers[i].key, &x) && x == numbers[i].x);
		reals = gguf_reals(g, array, &n);
		assert_true(n == 2 && reals[0] == 0 && reals[1] == numbers[i].x);
		free(reals);
	}
	assert_true(gguf_flag(g, "yes", &flag) && flag && !gguf_flag(g, "no", &flag) && flag);
	s = gguf_string(g, "word");
	assert_string_equal(s, "na\xc3\xafve");
	free(s);
	struct gguf_text *words = gguf_strings(g, "words", &n);
	assert_true(n == 2 && !words[0].n && words[1].n == 1 && *words[1].s == 'b');
	free(words);
	assert_null(gguf_string(g, "none"));
	assert_null(gguf_strings(g, "none", &n));
	assert_true(!n && gguf_count(g) == 1 && !gguf_tensor(g, "u"));
	const struct gguf_tensor *t = gguf_tensor(g, "t");
	assert_true(t == gguf_at(g, 0) && t->rank == 2 && t->dim[0] == 2 && t->dim[1] == 3 && t->type == 77 &&
		t->room == 5);
	gguf_close(g);
	unlink(path);
	free(path);
}

static struct source *vocabulary(const char *name, char **path)
{
	const char *shared = getenv("PTQ_SHARED");

	*path = xformat("%s/data/tokenizers/ggml-vocab-%s.gguf", shared ? shared : "../shared", name);
	if (!access(*path, R_OK))
		return source_open(*path);
	/* skip() of cmocka counts as a failure in TAP */
	print_message("# SKIP: no %s (PTQ_SHARED)\n", *path);
	free(*path);
	return NULL;
}

static char *sibling(const char *path, const char *ending)
{
	char *name = xformat("%s%s", path, ending), *s;
	size_t n;

	s = contents_read(name, SIZE_MAX / 4, &n);
	free(name);
	return s;
}

/* Texts are between lines of "__ggml_vocab_test__"; there is one line of ids for each text. */
static void sentencepiece(void **unused)
{
	static const char between[] = "\n__ggml_vocab_test__\n";
	char *path, *texts, *ids, *at, *line;
	struct source *s = vocabulary("llama-spm", &path);
	struct tokenizer *t;
	int cases = 0;

	(void)unused;
	if (!s)
		return;
	assert_int_equal(s->n, 0);
	t = tokenizer_read("spm", s->text[TEXT_TOKENIZER]);
	assert_int_equal(tokenizer_vocab(t), 32000);
	assert_int_equal(tokenizer_bos(t), 1);
	at = texts = sibling(path, ".inp");
	line = ids = sibling(path, ".out");
	for (char *end; at; at = end ? end + sizeof between - 1 : NULL, cases++) {
		CASE("text %d", cases);
		struct encoding k;

		end = strstr(at, between);
		k = tokenizer_encode(t, end ? (size_t)(end - at) : strlen(at), at, false);
		for (size_t i = 0; i < k.n; i++)
			assert_int_equal(k.id[i], strtol(line, &line, 10));
		assert_int_equal(*line, end ? '\n' : '\0');
		line++;
		encoding_free(&k);
	}
	assert_int_equal(cases, 47);
	tokenizer_close(t);
	source_close(s);
	free(texts), free(ids), free(path);
}

static void byte_level(void **unused)
{
	char *path, *name, *text_of, *line;
	struct source *s = vocabulary("gpt-2", &path);
	json_t *root, *model, *vocab, *merges;

	(void)unused;
	if (!s)
		return;
	root = json_loads(s->text[TEXT_TOKENIZER], 0, NULL);
	model = json_object_get(root, "model");
	name = xformat("%.*sgpt2_vocab.json", (int)(strrchr(path, '/') + 1 - path), path);
	vocab = json_load_file(name, 0, NULL);
	assert_true(json_object_size(vocab) == 50257 && json_equal(vocab, json_object_get(model, "vocab")));
	free(name);
	name = xformat("%.*s", (int)(strrchr(path, '/') + 1 - path), path);
	text_of = sibling(name, "gpt2_merges_vocab.bpe");
	merges = json_object_get(model, "merges");
	assert_int_equal(json_array_size(merges), 50000);
	line = strchr(text_of, '\n') + 1;	/* after the version */
	for (size_t i = 0; i < 50000; i++) {
		CASE("merge %zu", i);
		const json_t *m = json_array_get(merges, i);
		char *both = xformat("%s %s\n", json_string_value(json_array_get(m, 0)),
			json_string_value(json_array_get(m, 1)));

		assert_memory_equal(line, both, strlen(both));
		line += strlen(both);
		free(both);
	}
	json_decref(root), json_decref(vocab);
	source_close(s);
	free(text_of), free(name), free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values), cmocka_unit_test(sentencepiece), cmocka_unit_test(byte_level),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
