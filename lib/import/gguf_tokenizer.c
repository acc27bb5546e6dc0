/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_tokenizer.c -- see gguf_tokenizer_private.h */
#include "import/gguf_tokenizer_private.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/patterns.h"

enum { LIST = 512, CUT_MAX = 512 };	/* bytes of a token that is cut, since cuts grow with their square */
enum token_type { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, BYTE = 6 };

static const char spiece[] = "\xe2\x96\x81";	/* SentencePiece's mark of a blank */

struct vocabulary {
	const struct gguf *g;
	const char *path;
	size_t n;
	char **token;			/* [n] */
	int64_t *type;			/* [n]; NULL: all are normal */
	json_t *ids;			/* token to id */
};

/* What Split says of a text: pieces that match are words, and so is what is between them. */
struct pre {
	const char *name;
	const char *split[4];		/* patterns, one after the other; then NULL */
	bool digits;			/* every digit is a word */
	bool words;			/* words as GPT-2 has them */
	bool ignore_merges;		/* a word that is a token is that token */
	bool bos;			/* BOS before a text, if the file does not say */
};

#define APOSTROPHE "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CL100K(digits) APOSTROPHE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASES(ending, digits) "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending \
	"|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending "|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 .split = { CL100K("\\p{N}{1,3}") }, .ignore_merges = true, .bos = true

/* The first is taken where a file names none. */
static const struct pre pres[] = {
	{ .name = "default",
		.split = { "[\\p{P}\\$\\+<=>\\^~\\|]+", PATTERN_GPT2, "\\p{N}+", "[0-9][0-9][0-9]" } },
	{ .name = "gpt-2", .words = true }, { .name = "phi-2", .words = true },
	{ .name = "olmo", .words = true }, { .name = "mpt", .words = true },
	{ .name = "smollm", .digits = true, .words = true },
	{ .name = "starcoder", .digits = true, .words = true },
	{ .name = "refact", .digits = true, .words = true },
	{ .name = "llama-bpe", LLAMA3 }, { .name = "llama3", LLAMA3 }, { .name = "llama-v3", LLAMA3 },
	{ .name = "dbrx", .split = { CL100K("\\p{N}{1,3}") } },
	{ .name = "qwen2", .split = { CL100K("\\p{N}") } },
	{ .name = "gpt-4o", .split = { CASES(APOSTROPHE "?", "\\p{N}{1,3}") } },
	{ .name = "tekken", .split = { CASES("", "\\p{N}") }, .ignore_merges = true, .bos = true },
};
enum { PRES = sizeof pres / sizeof *pres };

static json_t *made(const struct vocabulary *v, json_t *json)
{
	if (!json)
		die("%s: out of memory", v->path);
	return json;
}

static void put_member(const struct vocabulary *v, json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, made(v, value)))
		die("%s: out of memory", v->path);
}

static void append(const struct vocabulary *v, json_t *array, json_t *value)
{
	if (json_array_append_new(array, made(v, value)))
		die("%s: out of memory", v->path);
}

static int64_t type_of_token(const struct vocabulary *v, size_t id)
{
	return v->type ? v->type[id] : NORMAL;
}

/* -1: it is no token. */
static int64_t find_token(const struct vocabulary *v, const char *token)
{
	const json_t *id = json_object_get(v->ids, token);

	return id ? json_integer_value(id) : -1;
}

static void read_tokens(struct vocabulary *v)
{
	static const char key[] = "tokenizer.ggml.tokens";
	size_t types;
	struct gguf_text *token = gguf_strings(v->g, key, &v->n);

	if (!v->n)
		die("%s: %s: is %s, expected the tokens by their ids", v->path, key,
			token ? "empty" : "missing");
	v->type = gguf_integers(v->g, "tokenizer.ggml.token_type", &types);
	if (v->type && types != v->n)
		die("%s: tokenizer.ggml.token_type: has %zu elements, expected one for each of %zu tokens",
			v->path, types, v->n);
	v->token = xalloc(v->n, sizeof *v->token);
	for (size_t i = 0; i < v->n; i++) {
		const struct gguf_text t = token[i];
		int64_t other;

		if (!t.n || t.n > INT32_MAX || memchr(t.s, 0, t.n))
			die("%s: %s: number %zu is %s, expected a text", v->path, key, i,
				t.n ? "with a NUL byte" : "empty");
		v->token[i] = xformat("%.*s", (int)t.n, t.s);
		other = find_token(v, v->token[i]);
		if (other >= 0)
			die("%s: %s: '%s' is there twice, as %jd and %zu", v->path, key, v->token[i],
				(intmax_t)other, i);
		if (json_object_set_new(v->ids, v->token[i], made(v, json_integer((json_int_t)i))))
			die("%s: %s: number %zu is not valid UTF-8", v->path, key, i);
	}
	free(token);
}

/* The id of a key, of a token that is there; -1: no such key. */
static int64_t token_id(const struct vocabulary *v, const char *key)
{
	int64_t id = -1;

	if (gguf_integer(v->g, key, &id) && (id < 0 || (uint64_t)id >= v->n))
		die("%s: %s: is %jd, expected an id from 0 to %zu", v->path, key, (intmax_t)id, v->n - 1);
	return id;
}

static json_t *text_of(const struct vocabulary *v, size_t id)
{
	return made(v, json_string(v->token[id]));
}

/* A text of n bytes at the beginning of another; free() it. */
static char *part(const char *s, size_t n)
{
	return xformat("%.*s", (int)n, s);
}

static json_t *added_tokens(const struct vocabulary *v)
{
	json_t *list = made(v, json_array());

	for (size_t i = 0; i < v->n; i++) {
		const int64_t type = type_of_token(v, i);

		if (type == CONTROL || type == USER_DEFINED || (type == UNKNOWN && token_id(v,
			"tokenizer.ggml.unknown_token_id") == (int64_t)i))
			append(v, list,
				json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i,
					"content", text_of(v, i), "single_word", 0, "lstrip", 0, "rstrip", 0,
					"normalized", 0, "special", type != USER_DEFINED));
	}
	return list;
}

static json_t *special(const struct vocabulary *v, size_t id)
{
	return json_pack("{s:{s:o, s:i}}", "SpecialToken", "id", text_of(v, id), "type_id", 0);
}

/* BOS before a text, EOS behind it; null for neither. */
static json_t *post_processor(const struct vocabulary *v, bool bos, bool eos)
{
	const int64_t ids[2] = { token_id(v, "tokenizer.ggml.bos_token_id"),
		token_id(v, "tokenizer.ggml.eos_token_id") };
	static const char *const keys[2] = { "bos", "eos" };
	json_t *single = made(v, json_array()), *tokens = made(v, json_object()), *twice;
	bool wanted[2] = { bos, eos };

	for (int i = 0; i < 2; i++) {
		char *key = xformat("tokenizer.ggml.add_%s_token", keys[i]);

		gguf_flag(v->g, key, wanted + i);
		if (wanted[i] && ids[i] < 0)
			die("%s: %s: is true, but there is no tokenizer.ggml.%s_token_id", v->path, key,
				keys[i]);
		free(key);
	}
	for (int i = 0; i < 2; i++) {
		if (i)
			append(v, single, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
		if (!wanted[i])
			continue;
		append(v, single, special(v, (size_t)ids[i]));
		put_member(v, tokens, v->token[ids[i]], json_pack("{s:o, s:[I], s:[o]}",
			"id", text_of(v, (size_t)ids[i]), "ids", (json_int_t)ids[i],
			"tokens", text_of(v, (size_t)ids[i])));
	}
	if (!wanted[0] && !wanted[1]) {
		json_decref(single);
		json_decref(tokens);
		return json_null();
	}
	twice = made(v, json_deep_copy(single));
	json_array_extend(twice, single);
	return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair",
		twice, "special_tokens", tokens);
}

/* --- byte-level BPE --- */

static const struct pre *find_pre(const struct vocabulary *v)
{
	char *name = gguf_string(v->g, "tokenizer.ggml.pre"), known[LIST] = "";

	if (!name)
		warn("%s: tokenizer.ggml.pre: is missing; words are cut as llama.cpp does by default",
			v->path);
	for (size_t i = 0; i < PRES; i++) {
		size_t n = strlen(known);

		if (!strcmp(name ? name : pres[0].name, pres[i].name)) {
			free(name);
			return pres + i;
		}
		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", pres[i].name);
	}
	die("%s: tokenizer.ggml.pre: '%s' is not known; known are %s", v->path, name, known);
}

static json_t *byte_level(const struct vocabulary *v, bool words)
{
	return made(v,
		json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
			1, "use_regex", words));
}

static json_t *pre_tokenizer(const struct vocabulary *v, const struct pre *p)
{
	json_t *list = made(v, json_array());

	for (size_t i = 0; i < sizeof p->split / sizeof *p->split && p->split[i]; i++)
		append(v, list,
			json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
				p->split[i], "behavior", "Isolated", "invert", 0));
	if (p->digits)
		append(v, list, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
	append(v, list, byte_level(v, p->words));
	return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

static json_t *read_merges(const struct vocabulary *v)
{
	static const char key[] = "tokenizer.ggml.merges";
	json_t *list = made(v, json_array());
	size_t n;
	struct gguf_text *merge = gguf_strings(v->g, key, &n);

	if (!merge)
		die("%s: %s: is missing, expected the merges of its BPE", v->path, key);
	for (size_t i = 0; i < n; i++) {
		char *left = merge[i].n < INT32_MAX ? part(merge[i].s, merge[i].n) : NULL;
		char *gap = left && *left ? strchr(left + 1, ' ') : NULL, *whole;

		if (!gap || !gap[1] || strlen(left) != merge[i].n)
			die("%s: %s: number %zu is not two texts with a blank between them", v->path, key, i);
		*gap = '\0';
		whole = xformat("%s%s", left, gap + 1);
		if (find_token(v, left) < 0 || find_token(v, gap + 1) < 0 || find_token(v, whole) < 0)
			die("%s: %s: number %zu: '%s', or a part of it, is no token", v->path, key, i, whole);
		append(v, list, json_pack("[s, s]", left, gap + 1));
		free(whole);
		free(left);
	}
	free(merge);
	return list;
}

static json_t *byte_bpe(const struct vocabulary *v)
{
	const struct pre *p = find_pre(v);
	json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:O, s:o}", "type", "BPE",
		"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
		"byte_fallback", 0, "ignore_merges", p->ignore_merges, "vocab", v->ids, "merges",
		read_merges(v));

	return json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:o, s:o, s:o}", "version", "1.0", "truncation",
		"padding", "added_tokens", added_tokens(v), "normalizer", "pre_tokenizer",
		pre_tokenizer(v, p), "post_processor", post_processor(v, p->bos, false), "decoder",
		byte_level(v, true), "model", made(v, model));
}

/* --- SentencePiece's BPE --- */

/* A token cut into two. */
struct token_cut { double score; int64_t left; size_t id, at, characters[2]; };

static int by_rank(const void *a, const void *b)
{
	const struct token_cut *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	for (int i = 0; i < 2; i++)
		if (x->characters[i] != y->characters[i])
			return x->characters[i] > y->characters[i] ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->left > y->left) - (x->left < y->left);
}

static size_t characters(const char *s)
{
	size_t k = 0;

	for (; *s; s++)
		k += ((unsigned char)*s & 0xc0) != 0x80;
	return k;
}

/* Whether text becomes this token by merges; others are found as a whole, or stand for bytes. */
static bool is_merged(const struct vocabulary *v, size_t id)
{
	int64_t t = type_of_token(v, id);

	return t != CONTROL && t != UNKNOWN && t != USER_DEFINED && t != BYTE;
}

static void cut_token(const struct vocabulary *v, size_t id, double score, struct token_cut **cut, size_t *n,
	size_t *room)
{
	const char *token = v->token[id];
	char *left = xformat("%s", token);

	if (strlen(token) > CUT_MAX)
		die("%s: tokenizer.ggml.tokens: number %zu has %zu bytes, expected at most %d", v->path, id,
			strlen(token), CUT_MAX);
	for (size_t at = strlen(token) - 1; at > 0; at--) {
		struct token_cut c = { .score = score, .id = id, .at = at };

		left[at] = '\0';
		if (((unsigned char)token[at] & 0xc0) == 0x80)
			continue;
		c.left = find_token(v, left);
		if (c.left < 0 || find_token(v, token + at) < 0)
			continue;
		c.characters[0] = characters(left);
		c.characters[1] = characters(token + at);
		if (*n == *room) {
			*room = *room ? 2 * *room : v->n;
			*cut = xgrow(*cut, *room, sizeof c);
		}
		(*cut)[(*n)++] = c;
	}
	free(left);
}

static json_t *merges_by_score(const struct vocabulary *v)
{
	size_t n = 0, room = 0, scores;
	double *score = gguf_reals(v->g, "tokenizer.ggml.scores", &scores);
	json_t *list = made(v, json_array());
	struct token_cut *cut = NULL;

	if (!score || scores != v->n)
		die("%s: tokenizer.ggml.scores: has %zu elements, expected one for each of %zu tokens",
			v->path, scores, v->n);
	for (size_t i = 0; i < v->n; i++)
		if (is_merged(v, i))
			cut_token(v, i, score[i], &cut, &n, &room);
	if (n)
		qsort(cut, n, sizeof *cut, by_rank);
	for (size_t i = 0; i < n; i++) {
		const char *token = v->token[cut[i].id];
		char *left = part(token, cut[i].at);

		append(v, list, json_pack("[s, s]", left, token + cut[i].at));
		free(left);
	}
	free(cut);
	free(score);
	return list;
}

/* Byte tokens <0x00> to <0xFF>: all or none. */
static bool has_bytes(const struct vocabulary *v)
{
	int n = 0;

	for (int i = 0; i < 256; i++) {
		char code[8];

		snprintf(code, sizeof code, "<0x%02X>", i);
		n += find_token(v, code) >= 0;
	}
	if (n && n < 256)
		die("%s: tokenizer.ggml.tokens: has %d of the 256 tokens <0x00> to <0xFF>, expected all",
			v->path, n);
	return n;
}

static json_t *unknown(const struct vocabulary *v)
{
	int64_t id = token_id(v, "tokenizer.ggml.unknown_token_id");

	for (size_t i = 0; id < 0 && i < v->n; i++)
		if (type_of_token(v, i) == UNKNOWN)
			id = (int64_t)i;
	return id < 0 ? json_null() : text_of(v, (size_t)id);
}

static json_t *replace(const char *from, const char *to)
{
	return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", from, "content", to);
}

static json_t *sentencepiece(const struct vocabulary *v)
{
	bool prefix = true;
	json_t *normalizers = made(v, json_array()), *decoders = made(v, json_array()), *model;

	gguf_flag(v->g, "tokenizer.ggml.add_space_prefix", &prefix);
	if (prefix)
		append(v, normalizers, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", spiece));
	append(v, normalizers, replace(" ", spiece));
	append(v, decoders, replace(spiece, " "));
	append(v, decoders, json_pack("{s:s}", "type", "ByteFallback"));
	append(v, decoders, json_pack("{s:s}", "type", "Fuse"));
	if (prefix)
		append(v, decoders,
			json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop",
				0));
	model = json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:O, s:o}", "type", "BPE", "dropout",
		"unk_token", unknown(v), "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1,
		"byte_fallback", has_bytes(v), "ignore_merges", 0, "vocab", v->ids, "merges",
		merges_by_score(v));
	return json_pack("{s:s, s:n, s:n, s:o, s:{s:s, s:o}, s:n, s:o, s:{s:s, s:o}, s:o}", "version", "1.0",
		"truncation", "padding", "added_tokens", added_tokens(v), "normalizer", "type", "Sequence",
		"normalizers", normalizers, "pre_tokenizer", "post_processor", post_processor(v, true, false),
		"decoder", "type", "Sequence", "decoders", decoders, "model", made(v, model));
}

/* --- the kinds --- */

static const struct { const char *name; json_t *(*make)(const struct vocabulary *v); } kinds[] = {
	{ "gpt2", byte_bpe }, { "llama", sentencepiece },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

char *gguf_tokenizer(const struct gguf *g, const char *path)
{
	struct vocabulary v = { .g = g, .path = path };
	char *name = gguf_string(g, "tokenizer.ggml.model"),
	     *text = gguf_string(g, "tokenizer.huggingface.json");
	char known[LIST] = "";
	json_t *root = NULL;
	bool none = !name || !strcmp(name, "none") || !strcmp(name, "no_vocab");

	for (size_t i = 0; !text && !none && !root && i < KINDS; i++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", kinds[i].name);
		if (strcmp(name, kinds[i].name))
			continue;
		v.ids = made(&v, json_object());
		read_tokens(&v);
		root = made(&v, kinds[i].make(&v));
	}
	if (!text && !none && !root)
		die("%s: tokenizer.ggml.model: '%s' is not known; known are %s", path, name, known);
	if (root) {
		text = json_dumps(root, JSON_COMPACT);
		if (!text)
			die("%s: out of memory", path);
		json_decref(root);
		json_decref(v.ids);
	}
	for (size_t i = 0; v.token && i < v.n; i++)
		free(v.token[i]);
	free(v.token);
	free(v.type);
	free(name);
	return text;
}
