/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_sentencepiece.c -- a tokenizer.json of SentencePiece's BPE; see gguf_vocabulary_private.h */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_said_private.h"
#include "import/gguf_table.h"
#include "import/gguf_vocabulary_private.h"

enum { CUT_MAX = 512 };	/* bytes of a token that is cut: bytes of all its cuts grow with the square */

static const char spiece[] = "\xe2\x96\x81";	/* SentencePiece's mark for a space */

/* A cut of a token into two. */
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

/* Whether text becomes this token by merges. Other tokens are matched as a whole, or represent bytes. */
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

static json_t *merges_by_score(const struct gguf_vocabulary *v, const double score[])
{
	size_t n = 0, room = 0;
	json_t *list = gguf_json_checked(v, json_array());
	struct token_cut *cut = NULL;

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
	return list;
}

static json_t *read_merges(const struct gguf_vocabulary *v)
{
	size_t scores;
	double *score = gguf_reals(v->g, GGUF_SCORES, &scores);
	json_t *list;

	if (!score || scores != v->n)
		die("%s: " GGUF_SCORES ": has %zu elements, expected one for each of %zu tokens",
			v->path, scores, v->n);
	list = merges_by_score(v, score);
	free(score);
	return list;
}

/* The id of a byte, <0x00> to <0xFF>; -1: none. */
static int64_t byte_id(const struct gguf_vocabulary *v, int byte)
{
	char code[8];

	snprintf(code, sizeof code, "<0x%02X>", byte);
	return gguf_find_token(v, code);
}

/* Byte tokens: all or none. */
static bool has_bytes(const struct gguf_vocabulary *v)
{
	int n = 0;

	for (int i = 0; i < 256; i++)
		n += byte_id(v, i) >= 0;
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
	json_t *normalizers = gguf_json_checked(v, json_array()),
		*decoders = gguf_json_checked(v, json_array()), *model;

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
		read_merges(v));
	return json_pack("{s:s, s:n, s:n, s:o, s:{s:s, s:o}, s:n, s:o, s:{s:s, s:o}, s:o}", "version", "1.0",
		"truncation", "padding", "added_tokens", gguf_added_tokens(v), "normalizer", "type",
		"Sequence", "normalizers", normalizers, "pre_tokenizer", "post_processor",
		gguf_post_processor(v, true, false), "decoder", "type", "Sequence", "decoders", decoders,
		"model", gguf_json_checked(v, model));
}

/* --- export --- */

static bool says(const json_t *o, const char *key, const char *value)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && !strcmp(s, value);
}

/* Whether the step replaces spaces by marks. */
static bool marks_spaces(const json_t *step)
{
	return gguf_step_is(step, "Replace") && says(json_object_get(step, "pattern"), "String", " ") &&
		says(step, "content", spiece);
}

/* Whether the step cuts at spaces: without effect, since the normalizer leaves no spaces. */
static bool cuts_nothing(const json_t *step)
{
	return gguf_step_is(step, "Split") && says(json_object_get(step, "pattern"), "String", " ");
}

/* Whether a text becomes marks and characters as in SentencePiece, with or without a space before it. */
static bool take_marks(const json_t *root, struct gguf_tokenizer_keys *s)
{
	enum { STEPS = 3 };
	const json_t *n[STEPS], *p[STEPS];
	const size_t normalizers = gguf_step_parts(json_object_get(root, "normalizer"), "normalizers", STEPS,
		n);
	const size_t cuts = gguf_step_parts(json_object_get(root, "pre_tokenizer"), "pretokenizers", STEPS,
		p);

	if (!normalizers && cuts == 1 && gguf_step_is(p[0], "Metaspace")) {
		s->prefix = !says(p[0], "prepend_scheme", "never");
		if (s->prefix)
			s->note = "that no space is added before a text that begins with one, or that "
				"follows an added token";
		return says(p[0], "replacement", spiece) && json_is_false(json_object_get(p[0], "split"));
	}
	s->prefix = normalizers == 2 && gguf_step_is(n[0], "Prepend") && says(n[0], "prepend", spiece);
	return normalizers == 1u + s->prefix && marks_spaces(n[s->prefix]) &&
		(!cuts || (cuts == 1 && cuts_nothing(p[0])));
}

/* The two parts of a merge with a newline between them; *gap: the position of the newline. */
static char *merge_parts(const json_t *m, size_t *gap)
{
	const char *text = json_string_value(m), *right = json_string_value(json_array_get(m, 1));
	char *both = text ? xformat("%s", text) : xformat("%s\n%s",
		json_string_value(json_array_get(m, 0)), right ? right : "");

	*gap = strcspn(both, text ? " " : "\n");
	if (both[*gap])
		both[*gap] = '\n';
	return both;
}

/* The id of the result of a merge; -1: it is no token. Adds the parts of the merge to `pairs`. */
static int64_t merged_id(const struct gguf_vocabulary *v, const json_t *m, json_t *pairs)
{
	size_t gap;
	char *both = merge_parts(m, &gap), *whole = both[gap] ?
		xformat("%.*s%s", (int)gap, both, both + gap + 1) : NULL;
	const int64_t id = whole ? gguf_find_token(v, whole) : -1;

	json_object_set_new(pairs, both, gguf_json_checked(v, json_true()));
	free(both), free(whole);
	return id;
}

/* Scores of tokens by the order of the merges that form them; tokens without a merge have lower scores. */
static bool take_scores(const struct gguf_vocabulary *v, const json_t *merges, double score[])
{
	json_t *pairs = gguf_json_checked(v, json_object());
	bool good = true;
	double next = 0;

	for (size_t i = 0; i < v->n; i++)
		score[i] = -(double)v->n;
	for (size_t i = 0; good && i < json_array_size(merges); i++) {
		const int64_t id = merged_id(v, json_array_get(merges, i), pairs);

		good = id >= 0;
		if (good && score[id] <= -(double)v->n)
			score[id] = -next++;
	}
	json_decref(pairs);
	return good;
}

/* Whether the merges by these scores equal those of the tokenizer.json, for each token in any order. */
static bool same_merges(const struct gguf_vocabulary *v, const json_t *merges, const double score[])
{
	json_t *theirs = merges_by_score(v, score), *pairs[2] = { gguf_json_checked(v, json_object()),
		gguf_json_checked(v, json_object()) };
	bool same = json_array_size(theirs) == json_array_size(merges);

	for (size_t i = 0; same && i < json_array_size(merges); i++)
		same = merged_id(v, json_array_get(merges, i), pairs[0]) ==
			merged_id(v, json_array_get(theirs, i), pairs[1]);
	same = same && json_equal(pairs[0], pairs[1]);
	json_decref(theirs);
	json_decref(pairs[0]);
	json_decref(pairs[1]);
	return same;
}

/* Sets the types of the tokens of bytes and of the unknown token. */
static char *take_types(const struct gguf_vocabulary *v, const json_t *model, struct gguf_tokenizer_keys *s)
{
	const char *unknown = json_string_value(json_object_get(model, "unk_token"));

	s->unknown = unknown ? gguf_find_token(v, unknown) : -1;
	if (s->unknown >= 0)
		v->type[s->unknown] = GGUF_UNKNOWN;
	for (int i = 0; i < 256; i++) {
		if (byte_id(v, i) < 0 || !json_is_true(json_object_get(model, "byte_fallback")))
			return xformat("it has no token of byte %d", i);
		v->type[byte_id(v, i)] = GGUF_BYTE;
	}
	for (size_t i = 0; i < v->n; i++)
		if (strlen(v->token[i]) > CUT_MAX)
			return xformat("its token %zu has more than %d bytes", i, CUT_MAX);
	return NULL;
}

char *gguf_sentencepiece_keys(const struct gguf_vocabulary *v, const json_t *root,
	struct gguf_tokenizer_keys *s)
{
	const json_t *model = json_object_get(root, "model"), *merges = json_object_get(model, "merges");
	double *score;
	char *why;

	if (!take_marks(root, s))
		return xformat("its pre-tokenizer is neither byte-level nor that of SentencePiece");
	if (json_is_true(json_object_get(model, "ignore_merges")))
		return xformat("it has ignore_merges");
	why = take_types(v, model, s);
	if (why)
		return why;
	score = xalloc(v->n, sizeof *score);
	s->score = xalloc(v->n, sizeof *s->score);
	if (!take_scores(v, merges, score) || !same_merges(v, merges, score))
		why = xformat("its merges are not in the order of scores of tokens");
	for (size_t i = 0; i < v->n; i++)
		s->score[i] = (float)score[i];
	free(score);
	return why;
}
