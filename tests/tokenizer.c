/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.c -- ids against those of the `tokenizers` library (ref/tokenizer.json), bytes per token, invalid
 * UTF-8, long runs, hostile files
 */
#include <jansson.h>
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
#include "base/error.h"
#include "case.h"
#include "io/contents.h"
#include "text/tokenizer.h"

static const char one_split[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, "
	"\"merges\": []}, \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, "
	"\"behavior\": \"Isolated\", \"invert\": false}}";

static const char llama[] = "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": ["
	"{\"type\": \"Prepend\", \"prepend\": \"\u2581\"},"
	"{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}]},"
	"\"pre_tokenizer\": %s, \"post_processor\": {\"type\": \"Sequence\", \"processors\": [{"
	"\"type\": \"TemplateProcessing\", \"single\": "
	"[{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}],"
	"\"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [1]}}}]},"
	"\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"special\": true, \"normalized\": false},"
	"{\"id\": 20, \"content\": \"[x]\", \"special\": false, \"normalized\": false}],"
	"\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": %s, \"byte_fallback\": %s, "
	"\"fuse_unk\": true,"
	"\"vocab\": {\"<unk>\": 0, \"<s>\": 1, \"\u2581\": 2, \"a\": 3, \"b\": 4, \"\u2581a\": 5, \"ab\": 6, "
	"\"aa\": 7,"
	" \"aaaa\": 8, \"\u00e9\": 9%s}, \"merges\": [\"\u2581 a\", \"a b\", [\"a\", \"a\"], \"aa aa\"]}}";

/* The tokenizer above: with all byte tokens from id 100 on, or with "<unk>", or with neither. */
static char *own(bool bytes, bool unknown)
{
	char list[256 * 16] = "", *json;

	for (int i = 0; bytes && i < 256; i++)
		sprintf(list + strlen(list), ", \"<0x%02X>\": %d", i, 100 + i);
	json = xformat(llama, "null", unknown ? "\"<unk>\"" : "null", bytes ? "true" : "false", list);
	return json;
}

static struct encoding encode(const char *json, size_t n, const char *text, bool special)
{
	struct tokenizer *t = tokenizer_read("test", json);
	char *exact = malloc(n ? n : 1);	/* so that a sanitizer detects a read beyond the text */
	struct encoding k;

	memcpy(exact, text, n);
	k = tokenizer_encode(t, n, exact, special);
	free(exact);
	tokenizer_close(t);
	return k;
}

static void check(bool bytes, const char *text, size_t n, bool special, size_t wanted, const int id[],
	const int length[])
{
	char *json = own(bytes, true);
	struct encoding k = encode(json, n, text, special);

	assert_int_equal(k.n, wanted);
	for (size_t i = 0; i < k.n; i++) {
		assert_int_equal(k.id[i], id[i]);
		assert_int_equal(k.bytes[i], length[i]);
	}
	encoding_free(&k);
	free(json);
}

#define CHECK(bytes, text, special, ids, lengths) do { \
	const int id_[] = ids, length_[] = lengths; \
	check(bytes, text, sizeof text - 1, special, sizeof id_ / sizeof *id_, id_, length_); \
} while (0)
#define LIST(...) { __VA_ARGS__ }

static void lengths_of_tokens(void **state)
{
	(void)state;
	CHECK(true, "a", false, LIST(5), LIST(1));	/* the prepended mark counts 0 bytes */
	CHECK(true, " a", false, LIST(2, 5), LIST(0, 2));		/* a space is one byte */
	CHECK(true, "b\u2581a", false, LIST(2, 4, 5), LIST(0, 1, 4));	/* a mark is three */
	CHECK(true, "\u00e9", false, LIST(2, 9), LIST(0, 2));
	CHECK(true, "\U0001f600", false, LIST(2, 340, 259, 252, 228), LIST(0, 1, 1, 1, 1));
	CHECK(false, "\U0001f600xa", false, LIST(2, 0, 3), LIST(0, 5, 1));	/* unknown ones are fused */
	CHECK(true, "[x]a<s>", false, LIST(20, 5, 160, 215, 162), LIST(3, 1, 1, 1, 1));
	CHECK(true, "a<s>a", true, LIST(5, 1, 5), LIST(1, 3, 1));
	CHECK(true, "a\0a", false, LIST(5, 100, 3), LIST(1, 1, 1));
}

static void text_that_is_no_utf8(void **state)
{
	(void)state;
	CHECK(true, "a\xff", false, LIST(5, 339, 291, 289), LIST(1, 1, 0, 0));
	CHECK(true, "\xc3", false, LIST(2, 339, 291, 289), LIST(0, 1, 0, 0));			/* cut */
	CHECK(true, "\xc3" "a", false, LIST(2, 339, 291, 289, 3), LIST(0, 1, 0, 0, 1));
	CHECK(true, "\xf0\x9f\x98" "a", false, LIST(2, 339, 291, 289, 3), LIST(0, 1, 1, 1, 1));
	CHECK(false, "a\xc1\x81", false, LIST(5, 0), LIST(1, 2));	/* overlong: two bytes */
	CHECK(false, "\xed\xa0\x80", false, LIST(2, 0), LIST(0, 3));	/* a surrogate: three bytes */
	CHECK(false, "\xff\xfe" "a", false, LIST(2, 0, 3), LIST(0, 2, 1));
}

static void empty_text(void **state)
{
	char *json = own(true, true);
	struct encoding k = encode(json, 0, "", false);

	(void)state;
	assert_int_equal(k.n, 0);
	encoding_free(&k);
	free(json);
}

static void start_and_size(void **state)
{
	char *json = own(true, true);
	struct tokenizer *t = tokenizer_read("test", json);

	(void)state;
	assert_int_equal(tokenizer_bos(t), 1);
	assert_int_equal(tokenizer_vocab(t), 356);
	tokenizer_close(t);
	free(json);
}

/* No run of one letter can be cut: a million symbols in one heap. */
static void long_stretch(void **state)
{
	enum { N = 1 << 20 };
	char *text = malloc(N), *json = own(false, true);
	struct encoding k;

	(void)state;
	memset(text, 'a', N);
	k = encode(json, N, text, false);
	assert_int_equal(k.n, 1 + (N - 4) / 4 + 2);	/* _a, aaaa ..., aa, a */
	assert_int_equal(k.id[0], 5);
	assert_int_equal(k.id[1], 8);
	assert_int_equal(k.id[k.n - 2], 7);
	assert_int_equal(k.id[k.n - 1], 3);
	encoding_free(&k);
	free(json);
	free(text);
}

/* --- against the library --- */

static json_t *reference(void)
{
	json_t *r = json_load_file("tests/ref/tokenizer.json", 0, NULL);

	assert_non_null(r);
	return r;
}

static void compare(const char *name, const char *json, const json_t *strings, const json_t *record)
{
	struct tokenizer *t = tokenizer_read(name, json);
	size_t good = 0, n = json_array_size(strings);

	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(strings, i));

		for (int special = 0; special < 2; special++) {
			char key[32];
			const json_t *ids;
			struct encoding k;
			size_t bytes = 0;
			bool same;

			snprintf(key, sizeof key, "%zu", i);
			ids = special ? json_object_get(json_object_get(record, "special"), key) : NULL;
			if (!ids)
				ids = json_array_get(json_object_get(record, "plain"), i);
			k = tokenizer_encode(t, strlen(text), text, special);
			same = k.n == json_array_size(ids);
			for (size_t j = 0; same && j < k.n; j++) {
				same = k.id[j] == json_integer_value(json_array_get(ids, j));
				bytes += k.bytes[j];
			}
			if (!same || bytes != strlen(text))
				print_message("# %s: string %zu, special %d\n", name, i, special);
			good += same && bytes == strlen(text);
			encoding_free(&k);
		}
	}
	assert_int_equal(good, 2 * n);
	tokenizer_close(t);
}

static void same_ids_small(void **state)
{
	json_t *r = reference(), *record;
	const char *name;

	(void)state;
	json_object_foreach(json_object_get(r, "small"), name, record) {
		char *json = json_dumps(json_object_get(record, "json"), 0);

		compare(name, json, json_object_get(r, "strings"), record);
		free(json);
	}
	json_decref(r);
}

static void same_ids_shared(void **state)
{
	const char *shared = getenv("PTQ_SHARED");
	json_t *r = reference(), *record;
	const char *name;
	size_t found = 0;

	(void)state;
	json_object_foreach(json_object_get(r, "shared"), name, record) {
		char *path = xformat("%s/data/%s/tokenizer.json", shared ? shared : "../shared", name), *json;
		size_t n;

		if (!access(path, R_OK)) {
			json = contents_read(path, 1 << 20, &n);
			compare(name, json, json_object_get(r, "strings"), record);
			free(json);
			found++;
		}
		free(path);
	}
	json_decref(r);
	if (!found)	/* skip() of cmocka counts as a failure in TAP */
		print_message("# SKIP same_ids_shared: no ../shared/data (PTQ_SHARED)\n");
}

static uint32_t crc(uint32_t sum, size_t n, const void *data)
{
	const unsigned char *s = data;

	sum = ~sum;
	for (size_t i = 0; i < n; i++) {
		sum ^= s[i];
		for (int k = 0; k < 8; k++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
	}
	return ~sum;
}

/* Decoders of SentencePiece-style tokenizers, on lists of ids. */
static void same_texts(void **state)
{
	json_t *file = reference(), *record, *ids;
	json_t *first = json_object_iter_value(json_object_iter(json_object_get(file, "small")));
	json_t *root = json_object_get(first, "json");
	size_t bad = 0, i, length;
	const char *name;

	(void)state;
	assert_true(json_object_size(json_object_get(file, "decoders")) > 5);
	json_object_foreach(json_object_get(file, "decoders"), name, record) {
		struct tokenizer *t;
		uint32_t sum = 0;
		char *json;

		json_object_set(root, "decoder", json_object_get(record, "decoder"));
		json = json_dumps(root, 0);
		t = tokenizer_read(name, json);
		json_array_foreach(json_object_get(file, "lists"), i, ids) {
			int32_t id[16];
			size_t n = json_array_size(ids);
			char *text;

			assert_true(n <= 16);
			for (size_t k = 0; k < n; k++)
				id[k] = (int32_t)json_integer_value(json_array_get(ids, k));
			text = tokenizer_decode(t, "ids", n, id, &length);
			sum = crc(crc(sum, length, text), 1, "\n");
			free(text);
		}
		if (sum != json_integer_value(json_object_get(record, "text"))) {
			print_message("# decoder %s: sum %u\n", name, sum);
			bad++;
		}
		tokenizer_close(t);
		free(json);
	}
	assert_int_equal(bad, 0);
	json_decref(file);
}

/* --- byte-level tokenizers of ref/bytelevel.py --- */

/* The tokenizer.json of a record: its parts and the vocabulary of the file. */
static struct tokenizer *byte_level(const char *name, const json_t *file, const json_t *record)
{
	json_t *json = json_pack("{s:O, s:O?, s:O?, s:O, s:O, s:{s:s, s:O, s:O, s:O}}",
		"added_tokens", json_object_get(file, "added_tokens"),
		"normalizer", json_object_get(record, "normalizer"),
		"pre_tokenizer", json_object_get(record, "pre_tokenizer"),
		"post_processor", json_object_get(file, "level"), "decoder", json_object_get(file, "level"),
		"model", "type", "BPE", "vocab", json_object_get(file, "vocab"),
		"merges", json_object_get(file, "merges"),
		"ignore_merges", json_object_get(record, "ignore_merges"));
	char *text = json_dumps(json, 0);
	struct tokenizer *t = tokenizer_read(name, text);

	free(text);
	json_decref(json);
	return t;
}

/* Checksums of tokens and their decoded texts. */
struct sums { size_t n; uint32_t ids, text; };

static void add_text(const struct tokenizer *t, const char *text, size_t n, bool special, struct sums *y)
{
	struct encoding k = tokenizer_encode(t, n, text, special);
	size_t bytes = 0, length;
	char *back = tokenizer_decode(t, "ids", k.n, k.id, &length);

	for (size_t i = 0; i < k.n; i++)
		bytes += k.bytes[i];
	if (k.n)
		assert_int_equal(bytes, n);
	y->n += k.n;
	y->ids = crc(y->ids, k.n * sizeof *k.id, k.id);
	y->text = crc(y->text, length, back);
	encoding_free(&k);
	free(back);
}

static bool agree(const char *name, const char *what, const struct sums *y, const json_t *wanted)
{
	bool same = y->n == (size_t)json_integer_value(json_array_get(wanted, 0)) &&
		y->ids == json_integer_value(json_array_get(wanted, 1));

	if (!same)
		print_message("# %s: %s: %zu tokens, sum %u\n", name, what, y->n, y->ids);
	return same;
}

static char *mixed_text(size_t *n)
{
	FILE *p = popen("python3 tests/ref/bytelevel.py text", "r");
	char *text = malloc(2 << 20);

	*n = p ? fread(text, 1, 2 << 20, p) : 0;
	if (p && pclose(p))
		*n = 0;
	return text;
}

static void same_ids_byte_level(void **state)
{
	json_t *file = json_load_file("tests/ref/bytelevel.json", 0, NULL), *record, *s;
	size_t bad = 0, i, n;
	char *text = mixed_text(&n);
	const char *name;

	(void)state;
	assert_non_null(file);
	assert_true(json_object_size(json_object_get(file, "tokenizers")) > 30);
	if (!n)
		print_message("# SKIP 1 MB of text: no python3\n");
	json_object_foreach(json_object_get(file, "tokenizers"), name, record) {
		struct tokenizer *t = byte_level(name, file, record);
		const json_t *whole = json_object_get(record, "text");

		for (int special = 0; special < 2; special++) {
			struct sums y = { 0 };

			json_array_foreach(json_object_get(file, "strings"), i, s)
				add_text(t, json_string_value(s), json_string_length(s), special, &y);
			bad += !agree(name, special ? "special" : "plain", &y,
				json_object_get(record, special ? "special" : "plain"));
			if (!special && y.text != json_integer_value(json_object_get(record, "decoded"))) {
				print_message("# %s: decoded, sum %u\n", name, y.text);
				bad++;
			}
		}
		if (n && whole) {
			struct sums y = { 0 };

			add_text(t, text, n, false, &y);
			bad += !agree(name, "text", &y, whole);
			if (!json_is_object(json_object_get(record, "normalizer")))
				assert_int_equal(y.text, crc(0, n, text));
		}
		tokenizer_close(t);
	}
	assert_int_equal(bad, 0);
	free(text);
	json_decref(file);
}

/* GPT-2's whole vocabulary on the texts of llama.cpp. A second file has their ids, one line for each text. */
static void same_ids_gpt2(void **state)
{
	static const char part[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}";
	const char *shared = getenv("PTQ_SHARED"), separator[] = "\n__ggml_vocab_test__\n";
	char *folder = xformat("%s/data/tokenizers", shared ? shared : "../shared");
	char *paths[4] = { xformat("%s/gpt2_vocab.json", folder), xformat("%s/gpt2_merges_vocab.bpe", folder),
		xformat("%s/ggml-vocab-gpt-2.gguf.inp", folder),
		xformat("%s/ggml-vocab-gpt-2.gguf.out", folder) };
	char *file[4], *text, *ids, *json;
	json_t *root, *merges = json_array();
	struct tokenizer *t;
	size_t n, texts = 0;

	(void)state;
	if (access(paths[0], R_OK)) {
		print_message("# SKIP same_ids_gpt2: no ../shared/data/tokenizers (PTQ_SHARED)\n");
		return;
	}
	for (size_t i = 0; i < 4; i++)
		file[i] = contents_read(paths[i], 1 << 24, &n);
	for (char *line = strtok(file[1], "\n"); line; line = strtok(NULL, "\n"))
		json_array_append_new(merges, json_string(line));	/* the first line is #version */
	root = json_pack("{s:o, s:o, s:{s:s, s:o, s:o}}", "pre_tokenizer", json_loads(part, 0, NULL),
		"decoder", json_loads(part, 0, NULL), "model", "type", "BPE",
		"vocab", json_loads(file[0], 0, NULL), "merges", merges);
	json = json_dumps(root, 0);
	t = tokenizer_read("gpt2", json);
	for (text = file[2], ids = file[3]; text; texts++) {
		CASE("text %zu", texts);
		char *end = strstr(text, separator);
		size_t length = end ? (size_t)(end - text) : strlen(text), size;
		struct encoding k = tokenizer_encode(t, length, text, false);
		char *back = tokenizer_decode(t, "ids", k.n, k.id, &size);

		for (size_t i = 0; i < k.n; i++)
			assert_int_equal(k.id[i], strtol(ids, &ids, 10));
		assert_true(*ids == '\n' || !*ids || (*ids == ' ' && ids[1] == '\n'));
		ids += strcspn(ids, "\n") + 1;
		assert_int_equal(size, length);
		assert_true(!size || !memcmp(text, back, size));
		text = end ? end + strlen(separator) : NULL;
		encoding_free(&k);
		free(back);
	}
	assert_true(texts > 40);
	tokenizer_close(t);
	free(json);
	json_decref(root);
	for (size_t i = 0; i < 4; i++) {
		free(file[i]);
		free(paths[i]);
	}
	free(folder);
}

/* --- files and texts that must be refused: one line, status 1 --- */

/* Exit status of a child that reads json and encodes text; `line` is its message. */
static int attempt(const char *json, size_t n, const char *text, size_t size, char line[size])
{
	int fd[2], status;
	size_t have = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		struct encoding k;

		dup2(fd[1], 2);
		k = encode(json, n, text, true);
		encoding_free(&k);
		_exit(0);
	}
	close(fd[1]);
	while ((got = read(fd[0], line + have, size - 1 - have)) > 0)
		have += (size_t)got;
	line[have] = '\0';
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void refused(const char *json, size_t n, const char *text, const char *why)
{
	char line[1024];
	int status = attempt(json, n, text, sizeof line, line);

	if (status != 1 || !strstr(line, why) || strchr(line, '\n') != line + strlen(line) - 1)
		fail_msg("status %d, said '%s', expected '%s'", status, line, why);
}

/* Tokenizers with a single pre-tokenizer, a Split by the pattern. */
static void refused_patterns(void)
{
	static const char *const patterns[][3] = {
		{ "(a", "", "at byte 2: missing closing parenthesis" },
		{ "a**", "", "quantifier does not follow a repeatable item" },
		{ "x[a[b]]", "", "'x[a[b]]': at byte 3: sets within sets are not supported" },
		{ "[a&&b]", "", "intersections" }, { "[a", "", "at byte 0: a set has no ]" },
		{ "\\\\q", "", "at byte 0: this escape" }, { "[\\\\W]", "", "at byte 1: this escape" },
		{ "a\\\\", "", "ends in a backslash" }, { "\\\\12", "", "digits" },
		{ "\\\\xe9", "", "is a byte" },
		{ "\\\\pL", "", "{NAME}" }, { "\\\\p{Klingon}", "", "unknown property" },
		{ "[[:blank:]]", "", "POSIX" }, { "a(?i)b", "", "need a group" },
		{ "(?s:a)", "", "kind of group" },
		{ "(?R)", "", "kind of group" }, { "(*UTF)a", "", "kind of group" },
		{ "(?(1)a)", "", "kind of group" },
		{ "a{2}?", "", "{n}?" }, { "(?<=a*)b", "", "lookbehind" },
		{ "", "", "Regex: expected a string" },
		{ "((ab){1000}){1000}", "", "too large" },
		{ "(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "is given up: match limit exceeded" },
	};
	char *deep = malloc(1200), *json;

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		CASE("patterns[%zu]", i);
		json = xformat(one_split, patterns[i][0]);
		refused(json, strlen(patterns[i][1]), patterns[i][1], patterns[i][2]);
		free(json);
	}
	memset(deep, '(', 1199);
	deep[1199] = '\0';
	json = xformat(one_split, deep);
	refused(json, 0, "", "at byte 251: groups are nested too deeply");
	free(json);
	free(deep);
}

static void what_is_refused(void **state)
{
	enum { LONG = 70000 };
	char *json = own(false, false), *text = malloc(LONG);
	const char *end;

	(void)state;
	refused("", 0, "", "not valid JSON");
	refused("[]", 0, "", "is not a tokenizer.json");
	refused("{\"model\": {\"type\": \"Unigram\"}}", 0, "",
		"kind Unigram is not supported, expected BPE");
	refused_patterns();
	refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"b\": 1}, \"merges\": []}}", 0, "",
		"two tokens have the id 1, 'a' and 'b'");
	refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"a\": 2}, \"merges\": []}}", 0, "",
		"duplicate object key");
	refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}", 0, "",
		"'a': its id");
	refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1}, \"merges\": [\"a a\"]}}", 0, "",
		"'aa', or a part of it");
	refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1}, \"merges\": [\"a\"]}}", 0, "",
		"number 0 is neither");
	refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1}, \"merges\": [], \"dropout\": 0.1}}",
		0, "", "dropout");
	refused(json, 3, "a c", "neither a token for 'c' nor an unknown token");
	refused(json, 3, "a \xff", "neither a token for '\ufffd'");
	end = own(false, true);
	memset(text, 'z', LONG);
	refused(end, LONG, text, "expected at most 65535");
	free((char *)end);
	free(json);
	free(text);
}

static const char *const strange[] = { "null",
	"true", "-1", "7", "99999999999", "1e300", "\"\"", "\"\\u2581\"", "[]", "{}", "[[[1]]]",
	"{\"type\": \"Sequence\", \"normalizers\": [3], \"pretokenizers\": {}, \"processors\": [[]]}" };

/* Replaces every value of root by every odd value, one at a time. */
static void disturb(json_t *root, json_t *node)
{
	const char *key;
	json_t *child;
	void *next;

	json_object_foreach_safe(node, next, key, child) {
		char *name = xformat("%s", key);

		json_incref(child);
		for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
			CASE("%s", strange[i]);
			char line[4096], *text;
			int status;

			json_object_set_new(node, name, json_loads(strange[i], JSON_DECODE_ANY, NULL));
			text = json_dumps(root, 0);
			status = attempt(text, 8, "a <s>[x]\xff", sizeof line, line);
			if (status && (status != 1 || strchr(line, '\n') != line + strlen(line) - 1))
				fail_msg("%s = %s: status %d, said '%s'", name, strange[i], status, line);
			free(text);
		}
		json_object_set_new(node, name, child);
		disturb(root, child);
		free(name);
	}
	for (size_t i = 0; i < json_array_size(node); i++) {
		child = json_incref(json_array_get(node, i));
		json_array_set_new(node, i, json_loads("{\"type\": 3, \"id\": []}", 0, NULL));
		{
			char line[4096], *text = json_dumps(root, 0);
			int status = attempt(text, 1, "a", sizeof line, line);

			if (status && (status != 1 || strchr(line, '\n') != line + strlen(line) - 1))
				fail_msg("element %zu: status %d, said '%s'", i, status, line);
			free(text);
		}
		json_array_set_new(node, i, child);
		disturb(root, child);
	}
}

static void hostile_files(void **state)
{
	char *json = own(false, true);
	json_t *root = json_loads(json, 0, NULL);
	char deep[5000], line[1024];

	(void)state;
	json_object_set_new(root, "pre_tokenizer",
		json_loads("{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", "
			"\"prepend_scheme\": \"first\", \"split\": true}", 0, NULL));
	disturb(root, root);
	memset(deep, '[', sizeof deep);
	deep[sizeof deep - 1] = '\0';
	assert_int_equal(attempt(deep, 1, "a", sizeof line, line), 1);
	for (size_t i = 0; i < strlen(json); i += 7) {	/* truncated */
		CASE("cut at %zu", i);
		char c = json[i];

		json[i] = '\0';
		assert_int_equal(attempt(json, 1, "a", sizeof line, line), 1);
		json[i] = c;
	}
	json_decref(root);
	free(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_of_tokens),
		cmocka_unit_test(text_that_is_no_utf8),
		cmocka_unit_test(empty_text),
		cmocka_unit_test(start_and_size),
		cmocka_unit_test(long_stretch),
		cmocka_unit_test(same_ids_small),
		cmocka_unit_test(same_ids_shared),
		cmocka_unit_test(same_texts),
		cmocka_unit_test(same_ids_byte_level),
		cmocka_unit_test(same_ids_gpt2),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(hostile_files),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
