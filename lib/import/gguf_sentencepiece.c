/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_sentencepiece.c -- a tokenizer.json of SentencePiece's BPE; see gguf_vocabulary_private.h */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_table_private.h"
#include "import/gguf_vocabulary_private.h"

enum { CUT_MAX = 512 };	/* bytes of a token that is cut, since cuts grow with their square */

static const char spiece[] = "\xe2\x96\x81";	/* SentencePiece's mark of a blank */

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
static bool is_merged(const struct gguf_vocabulary *v, size_t id)
{
	int64_t t = gguf_token_type(v, id);

	return t != GGUF_CONTROL && t != GGUF_UNKNOWN && t != GGUF_USER_DEFINED && t != GGUF_BYTE;
}

static void cut_token(const struct gguf_vocabulary *v, size_t id, double score, struct token_cut **cut,
	size_t *n, size_t *room)
{
	const char *token = v->token[id];
	char *left = xformat("%s", token);

	if (strlen(token) > CUT_MAX)
		die("%s: " GGUF_TOKENS ": number %zu has %zu bytes, expected at most %d", v->path, id,
			strlen(token), CUT_MAX);
	for (size_t at = strlen(token) - 1; at > 0; at--) {
		struct token_cut c = { .score = score, .id = id, .at = at };

		left[at] = '\0';
		if (((unsigned char)token[at] & 0xc0) == 0x80)
			continue;
		c.left = gguf_find_token(v, left);
		if (c.left < 0 || gguf_find_token(v, token + at) < 0)
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

static json_t *merges_by_score(const struct gguf_vocabulary *v)
{
	size_t n = 0, room = 0, scores;
	double *score = gguf_reals(v->g, GGUF_SCORES, &scores);
	json_t *list = gguf_made(v, json_array());
	struct token_cut *cut = NULL;

	if (!score || scores != v->n)
		die("%s: " GGUF_SCORES ": has %zu elements, expected one for each of %zu tokens",
			v->path, scores, v->n);
	for (size_t i = 0; i < v->n; i++)
		if (is_merged(v, i))
			cut_token(v, i, score[i], &cut, &n, &room);
	if (n)
		qsort(cut, n, sizeof *cut, by_rank);
	for (size_t i = 0; i < n; i++) {
		const char *token = v->token[cut[i].id];
		char *left = gguf_text_part(token, cut[i].at);

		gguf_append(v, list, json_pack("[s, s]", left, token + cut[i].at));
		free(left);
	}
	free(cut);
	free(score);
	return list;
}

/* Byte tokens <0x00> to <0xFF>: all or none. */
static bool has_bytes(const struct gguf_vocabulary *v)
{
	int n = 0;

	for (int i = 0; i < 256; i++) {
		char code[8];

		snprintf(code, sizeof code, "<0x%02X>", i);
		n += gguf_find_token(v, code) >= 0;
	}
	if (n && n < 256)
		die("%s: " GGUF_TOKENS ": has %d of the 256 tokens <0x00> to <0xFF>, expected all",
			v->path, n);
	return n;
}

static json_t *unknown(const struct gguf_vocabulary *v)
{
	int64_t id = gguf_token_id(v, GGUF_UNKNOWN_ID);

	for (size_t i = 0; id < 0 && i < v->n; i++)
		if (gguf_token_type(v, i) == GGUF_UNKNOWN)
			id = (int64_t)i;
	return id < 0 ? json_null() : gguf_token_text(v, (size_t)id);
}

static json_t *replace(const char *from, const char *to)
{
	return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", from, "content", to);
}

json_t *gguf_sentencepiece(const struct gguf_vocabulary *v)
{
	bool prefix = true;
	json_t *normalizers = gguf_made(v, json_array()), *decoders = gguf_made(v, json_array()), *model;

	gguf_flag(v->g, GGUF_ADD_PREFIX, &prefix);
	if (prefix)
		gguf_append(v, normalizers, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", spiece));
	gguf_append(v, normalizers, replace(" ", spiece));
	gguf_append(v, decoders, replace(spiece, " "));
	gguf_append(v, decoders, json_pack("{s:s}", "type", "ByteFallback"));
	gguf_append(v, decoders, json_pack("{s:s}", "type", "Fuse"));
	if (prefix)
		gguf_append(v, decoders,
			json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop",
				0));
	model = json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:O, s:o}", "type", "BPE", "dropout",
		"unk_token", unknown(v), "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1,
		"byte_fallback", has_bytes(v), "ignore_merges", 0, "vocab", v->ids, "merges",
		merges_by_score(v));
	return json_pack("{s:s, s:n, s:n, s:o, s:{s:s, s:o}, s:n, s:o, s:{s:s, s:o}, s:o}", "version", "1.0",
		"truncation", "padding", "added_tokens", gguf_added_tokens(v), "normalizer", "type",
		"Sequence", "normalizers", normalizers, "pre_tokenizer", "post_processor",
		gguf_post_processor(v, true, false), "decoder", "type", "Sequence", "decoders", decoders,
		"model", gguf_made(v, model));
}
