/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_bpe.c -- a tokenizer.json of byte-level BPE; see gguf_vocabulary_private.h */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_said_private.h"
#include "import/gguf_table.h"
#include "import/gguf_vocabulary_private.h"
#include "text/patterns.h"

enum { LIST = 512 };

#define APOSTROPHE "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CL100K(digits) APOSTROPHE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASES(ending, digits) "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending \
	"|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending "|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 .split = { CL100K("\\p{N}{1,3}") }, .ignore_merges = true, .bos = true

const struct gguf_pre gguf_pres[] = {
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
	{ .name = NULL },
};

static const struct gguf_pre *find_pre(const struct gguf_vocabulary *v)
{
	char *name = gguf_string(v->g, GGUF_PRE), known[LIST] = "";

	if (!name)
		warn("%s: " GGUF_PRE ": is missing; words are cut as llama.cpp does by default",
			v->path);
	for (const struct gguf_pre *p = gguf_pres; p->name; p++) {
		size_t n = strlen(known);

		if (!strcmp(name ? name : gguf_pres[0].name, p->name)) {
			free(name);
			return p;
		}
		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", p->name);
	}
	die("%s: " GGUF_PRE ": '%s' is not known, expected one of %s", v->path, name, known);
}

static json_t *byte_level(const struct gguf_vocabulary *v, bool words)
{
	return gguf_json_checked(v,
		json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
			1, "use_regex", words));
}

static json_t *pre_tokenizer(const struct gguf_vocabulary *v, const struct gguf_pre *p)
{
	json_t *list = gguf_json_checked(v, json_array());

	for (size_t i = 0; i < GGUF_SPLITS && p->split[i]; i++)
		gguf_append(v, list,
			json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
				p->split[i], "behavior", "Isolated", "invert", 0));
	if (p->digits)
		gguf_append(v, list, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
	gguf_append(v, list, byte_level(v, p->words));
	return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

static json_t *read_merges(const struct gguf_vocabulary *v)
{
	static const char key[] = GGUF_MERGES;
	json_t *list = gguf_json_checked(v, json_array());
	size_t n;
	struct gguf_text *merge = gguf_strings(v->g, key, &n);

	if (!merge)
		die("%s: %s: is missing, expected the merges of its BPE", v->path, key);
	for (size_t i = 0; i < n; i++) {
		char *left = merge[i].n < INT32_MAX ? gguf_text_part(merge[i].s, merge[i].n) : NULL;
		char *gap = left && *left ? strchr(left + 1, ' ') : NULL, *whole;

		if (!gap || !gap[1] || strlen(left) != merge[i].n)
			die("%s: %s: number %zu is not two texts with a space between them", v->path, key, i);
		*gap = '\0';
		whole = xformat("%s%s", left, gap + 1);
		if (gguf_find_token(v, left) < 0 || gguf_find_token(v, gap + 1) < 0 ||
		    gguf_find_token(v, whole) < 0)
			die("%s: %s: number %zu: '%s', or a part of it, is not a token", v->path, key, i,
				whole);
		gguf_append(v, list, json_pack("[s, s]", left, gap + 1));
		free(whole);
		free(left);
	}
	free(merge);
	return list;
}

json_t *gguf_byte_bpe(const struct gguf_vocabulary *v)
{
	const struct gguf_pre *p = find_pre(v);
	json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:O, s:o}", "type", "BPE",
		"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
		"byte_fallback", 0, "ignore_merges", p->ignore_merges, "vocab", v->ids, "merges",
		read_merges(v));

	return json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:o, s:o, s:o}", "version", "1.0", "truncation",
		"padding", "added_tokens", gguf_added_tokens(v), "normalizer", "pre_tokenizer",
		pre_tokenizer(v, p), "post_processor", gguf_post_processor(v, p->bos, false), "decoder",
		byte_level(v, true), "model", gguf_json_checked(v, model));
}

/* --- export --- */

/* The pre-tokenizer of a tokenizer.json, in the members of struct gguf_pre. */
struct cuts { const char *split[GGUF_SPLITS]; size_t n; bool digits, words, done; };

static bool has_flag(const json_t *o, const char *key, bool default_value)
{
	const json_t *x = json_object_get(o, key);

	return json_is_boolean(x) ? json_is_true(x) : default_value;
}

/* Matches are words, and so is the text between them (Isolated). With `invert`, matches are the only words
 * (Removed), which is the same for patterns that match all of a text. */
static bool take_split(struct cuts *c, const json_t *p)
{
	const char *pattern = json_string_value(json_object_get(json_object_get(p, "pattern"), "Regex"));
	const char *how = json_string_value(json_object_get(p, "behavior"));
	const bool invert = has_flag(p, "invert", false);

	if (!pattern || !how || c->n == GGUF_SPLITS || c->digits ||
	    strcmp(how, invert ? "Removed" : "Isolated"))
		return false;
	c->split[c->n++] = pattern;
	return true;
}

static bool take_part(struct cuts *c, const json_t *p)
{
	if (c->done)
		return false;
	if (gguf_step_is(p, "Split"))
		return take_split(c, p);
	if (gguf_step_is(p, "Digits"))
		return c->digits = has_flag(p, "individual_digits", false);
	c->done = gguf_step_is(p, "ByteLevel") && !has_flag(p, "add_prefix_space", true);
	c->words = has_flag(p, "use_regex", true);
	return c->done;
}

static bool same_cuts(const struct gguf_pre *p, const struct cuts *c)
{
	size_t n = 0;

	while (n < GGUF_SPLITS && p->split[n] && n < c->n && !strcmp(p->split[n], c->split[n]))
		n++;
	return n == c->n && (n == GGUF_SPLITS || !p->split[n]) && p->digits == c->digits &&
		p->words == c->words;
}

/* The name of the row with the same pre-tokenizer; NULL: none. */
static const char *pre_of(const json_t *root, bool ignore_merges)
{
	const json_t *part[GGUF_SPLITS + 2];
	const size_t n = gguf_step_parts(json_object_get(root, "pre_tokenizer"), "pretokenizers",
		GGUF_SPLITS + 2, part);
	struct cuts c = { .n = 0 };
	const struct gguf_pre *p = gguf_pres;

	for (size_t i = 0; i < n; i++)
		if (i == GGUF_SPLITS + 2 || !take_part(&c, part[i]))
			return NULL;
	while (p->name && (p->ignore_merges != ignore_merges || !same_cuts(p, &c)))
		p++;
	return c.done ? p->name : NULL;
}

/* Merges must be of two tokens to a third, which are written with a space between them. */
static char *check_merges(const struct gguf_vocabulary *v, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *m = json_array_get(list, i);
		const char *text = json_string_value(m), *gap = text ? strchr(text, ' ') : NULL;
		char *left = gap ? gguf_text_part(text, (size_t)(gap - text)) : text ? NULL :
			xformat("%s", json_string_value(json_array_get(m, 0)));
		const char *right = gap ? gap + 1 : json_string_value(json_array_get(m, 1));
		char *whole = left && right ? xformat("%s%s", left, right) : NULL;
		const bool good = whole && *left && *right && !strchr(whole, ' ') &&
			gguf_find_token(v, left) >= 0 && gguf_find_token(v, right) >= 0 &&
			gguf_find_token(v, whole) >= 0;

		free(left), free(whole);
		if (!good)
			return xformat("its merge %zu is not of two tokens without spaces into a third", i);
	}
	return NULL;
}

char *gguf_byte_bpe_keys(const struct gguf_vocabulary *v, const json_t *root, struct gguf_tokenizer_keys *s)
{
	enum { NORMALIZERS = 1 };
	const json_t *model = json_object_get(root, "model"), *part[NORMALIZERS];
	const size_t n = gguf_step_parts(json_object_get(root, "normalizer"), "normalizers", NORMALIZERS,
		part);

	s->pre = pre_of(root, has_flag(model, "ignore_merges", false));
	if (!s->pre)
		return xformat("its pre-tokenizer has no name in tokenizer.ggml.pre");
	if (n > NORMALIZERS || (n && !gguf_step_is(part[0], "NFC")))
		return xformat("it normalizes texts");
	if (has_flag(model, "byte_fallback", false))
		return xformat("it has byte_fallback and a byte-level vocabulary");
	if (n)
		s->note = "its normalizer NFC: texts in another form have other ids";
	return check_merges(v, json_object_get(model, "merges"));
}
