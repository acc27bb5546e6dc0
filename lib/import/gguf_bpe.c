/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_bpe.c -- a tokenizer.json of byte-level BPE; see gguf_vocabulary_private.h */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_table_private.h"
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
	die("%s: " GGUF_PRE ": '%s' is not known; known are %s", v->path, name, known);
}

static json_t *byte_level(const struct gguf_vocabulary *v, bool words)
{
	return gguf_made(v,
		json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
			1, "use_regex", words));
}

static json_t *pre_tokenizer(const struct gguf_vocabulary *v, const struct gguf_pre *p)
{
	json_t *list = gguf_made(v, json_array());

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
	json_t *list = gguf_made(v, json_array());
	size_t n;
	struct gguf_text *merge = gguf_strings(v->g, key, &n);

	if (!merge)
		die("%s: %s: is missing, expected the merges of its BPE", v->path, key);
	for (size_t i = 0; i < n; i++) {
		char *left = merge[i].n < INT32_MAX ? gguf_text_part(merge[i].s, merge[i].n) : NULL;
		char *gap = left && *left ? strchr(left + 1, ' ') : NULL, *whole;

		if (!gap || !gap[1] || strlen(left) != merge[i].n)
			die("%s: %s: number %zu is not two texts with a blank between them", v->path, key, i);
		*gap = '\0';
		whole = xformat("%s%s", left, gap + 1);
		if (gguf_find_token(v, left) < 0 || gguf_find_token(v, gap + 1) < 0 ||
		    gguf_find_token(v, whole) < 0)
			die("%s: %s: number %zu: '%s', or a part of it, is no token", v->path, key, i, whole);
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
		byte_level(v, true), "model", gguf_made(v, model));
}
