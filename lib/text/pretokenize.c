/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pretokenize.c -- see pretokenize.h */
#include "text/pretokenize.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/bytelevel.h"
#include "text/fields.h"
#include "text/patterns.h"

/* Patterns of Whitespace and of Punctuation (ASCII's and Unicode's), in PCRE2's dialect. */
#define WORDS "[" PATTERN_WORD "]+|[^" PATTERN_WORD "\\p{White_Space}]+"
#define PUNCTUATION "[\\p{P}!-/:-@\\[-`{-~]"

/* Passes a piece to cut i, or to the callback after the last cut. */
static void hand_on(struct cutter *w, size_t i, struct piece p)
{
	if (!p.n)
		return;
	if (i == w->cuts->n)
		w->use(w->arg, p);
	else
		w->cuts->cut[i].run(w, i, p);
}

/* The last span; it is kept back, since the next span may join it. */
struct pending { size_t begin, end; bool any, match; };

static void release(struct cutter *w, size_t i, struct piece p, const struct pending *last)
{
	struct piece part = piece_part(p, last->begin, last->end);

	if (w->cuts->cut[i].behavior == BEHAVIOR_REMOVED && last->match)
		w->drop(w->arg, part);
	else
		hand_on(w, i + 1, part);
}

static void span(struct cutter *w, size_t i, struct piece p, struct pending *last, size_t end, bool match)
{
	const struct cut *c = w->cuts->cut + i;
	size_t begin = last->end;

	match ^= c->invert;
	if (last->any && ((c->behavior == BEHAVIOR_PREVIOUS && match && !last->match) ||
			  (c->behavior == BEHAVIOR_NEXT && !match && last->match) ||
			  (c->behavior == BEHAVIOR_CONTIGUOUS && match == last->match)))
		begin = last->begin;
	else
		release(w, i, p, last);
	*last = (struct pending){ begin, end, true, match };
}

static void run_split(struct cutter *w, size_t i, struct piece p)
{
	struct pending last = { 0 };
	size_t begin, end;

	for (struct regex_place at = { 0 };
	     regex_next(w->cuts->cut[i].pattern, p.n, p.text, &at, &begin, &end);) {
		if (begin > last.end)
			span(w, i, p, &last, begin, false);
		span(w, i, p, &last, end, true);
	}
	if (p.n > last.end)
		span(w, i, p, &last, p.n, false);
	release(w, i, p, &last);
}

static bool starts_with(struct piece p, const char *s, size_t n)
{
	return p.n >= n && !memcmp(p.text, s, n);
}

/* Workspace number k of a cut, emptied. */
static struct weighted *begin_cut(const struct cutter *w, size_t i, size_t k)
{
	struct weighted *b = w->work + 2 * i + k;

	b->n = 0;
	b->room = w->room;
	b->name = w->name;
	return b;
}

static void made(struct cutter *w, const struct weighted *b)
{
	w->room -= w->room > b->n ? b->n : 0;
}

/* Inserts a string before a piece that does not start with it, if the scheme requires it. */
static void run_prefix(struct cutter *w, size_t i, struct piece p)
{
	const struct cut *c = w->cuts->cut + i;
	struct weighted *b = begin_cut(w, i, 0), *spare = begin_cut(w, i, 1);

	if (c->replace.from) {
		step_replace(&c->replace, spare, p);
		made(w, spare);
		p = weighted_piece(spare, p.first);
	}
	if (c->scheme == SCHEME_NEVER || (c->scheme == SCHEME_FIRST && !p.first) ||
	    starts_with(p, c->replace.to, c->replace.to_length)) {
		hand_on(w, i + 1, p);
		return;
	}
	weighted_put(b, c->replace.to_length, c->replace.to, 0);
	weighted_copy(b, p);
	made(w, b);
	hand_on(w, i + 1, weighted_piece(b, p.first));
}

static void run_bytes(struct cutter *w, size_t i, struct piece p)
{
	struct weighted *b = begin_cut(w, i, 0);

	bytelevel_put(b, p);
	made(w, b);
	hand_on(w, i + 1, weighted_piece(b, p.first));
}

static void add_cut(struct cuts *s, struct cut c)
{
	s->cut = xgrow(s->cut, s->n + 1, sizeof *s->cut);
	s->cut[s->n++] = c;
}

static void add_split(struct cuts *s, struct regex *pattern, enum behavior behavior, bool invert)
{
	add_cut(s, (struct cut){ .run = run_split, .pattern = pattern, .behavior = behavior, .invert =
		invert });
}

static enum behavior read_behavior(const char *name, const json_t *o)
{
	static const char *const words[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
		"Contiguous" };
	const char *s = field_string(name, o, "behavior");

	for (enum behavior b = 0; s && b < sizeof words / sizeof *words; b++)
		if (!strcmp(words[b], s))
			return b;
	die("%s: behavior: is none of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous",
		name);
}

static void read_split(const char *name, const json_t *o, void *to)
{
	enum behavior behavior = read_behavior(name, o);

	add_split(to, pattern_read(name, o), behavior, field_flag(name, o, "invert", false));
}

static void read_digits(const char *name, const json_t *o, void *to)
{
	bool each = field_flag(name, o, "individual_digits", false);

	add_split(to, regex_make(name, "\\p{N}", DIALECT_PCRE2),
		each ? BEHAVIOR_ISOLATED : BEHAVIOR_CONTIGUOUS, false);
}

static void read_punctuation(const char *name, const json_t *o, void *to)
{
	add_split(to, regex_make(name, PUNCTUATION, DIALECT_PCRE2),
		json_object_get(o, "behavior") ? read_behavior(name, o) : BEHAVIOR_ISOLATED, false);
}

static void read_words(const char *name, const json_t *o, void *to)
{
	(void)o;
	add_split(to, regex_make(name, WORDS, DIALECT_PCRE2), BEHAVIOR_REMOVED, true);
}

static void read_spaces(const char *name, const json_t *o, void *to)
{
	(void)o;
	add_split(to, regex_make(name, "\\p{White_Space}", DIALECT_PCRE2), BEHAVIOR_REMOVED, false);
}

static void read_delimiter(const char *name, const json_t *o, void *to)
{
	add_split(to, regex_make(name, field_required(name, o, "delimiter"), DIALECT_LITERAL),
		BEHAVIOR_REMOVED, false);
}

static void read_bytelevel(const char *name, const json_t *o, void *to)
{
	if (field_flag(name, o, "add_prefix_space", true))
		add_cut(to, (struct cut){ .run = run_prefix, .replace = { .to = " ", .to_length = 1 } });
	if (field_flag(name, o, "use_regex", true))
		add_split(to, regex_make(name, PATTERN_GPT2, DIALECT_ONIGURUMA), BEHAVIOR_ISOLATED, false);
	add_cut(to, (struct cut){ .run = run_bytes });
}

static void read_metaspace(const char *name, const json_t *o, void *to)
{
	static const char *const schemes[] = { "always", "first", "never" };
	const char *word = field_string(name, o, "prepend_scheme");
	const char *s = field_required(name, o, "replacement");
	enum scheme scheme = SCHEME_ALWAYS;

	if (!field_flag(name, o, "add_prefix_space", true))
		word = "never";
	while (word && scheme <= SCHEME_NEVER && strcmp(schemes[scheme], word))
		scheme++;
	if (scheme > SCHEME_NEVER)
		die("%s: Metaspace: prepend_scheme %s is none of always, first, never", name, word);
	add_cut(to, (struct cut){ .run = run_prefix, .scheme = scheme, .replace =
		{ .from = regex_make(name, " ", DIALECT_LITERAL), .to = s, .to_length = strlen(s) } });
	if (field_flag(name, o, "split", true))
		add_split(to, regex_make(name, s, DIALECT_LITERAL), BEHAVIOR_NEXT, false);
}

static const struct field_row rows[] = {
	{ "Split", read_split }, { "Digits", read_digits }, { "Punctuation", read_punctuation },
	{ "Whitespace", read_words }, { "WhitespaceSplit", read_spaces },
	{ "CharDelimiterSplit", read_delimiter }, { "ByteLevel", read_bytelevel },
	{ "Metaspace", read_metaspace }, { NULL, NULL },
};

struct cuts cuts_read(const char *name, const json_t *root)
{
	struct cuts c = { 0 };

	field_parts(name, root, "pre_tokenizer", "pretokenizers", rows, &c);
	return c;
}

void cuts_free(struct cuts *c)
{
	for (size_t i = 0; i < c->n; i++) {
		regex_free(c->cut[i].pattern);
		regex_free(c->cut[i].replace.from);
	}
	free(c->cut);
}

struct cutter cuts_begin(const struct cuts *c, void (*use)(void *arg, struct piece word),
	void (*drop)(void *arg, struct piece gap), void *arg)
{
	return (struct cutter){ .cuts = c, .work = xalloc(2 * c->n, sizeof(struct weighted)), .use = use,
		.drop = drop, .arg = arg };
}

void cuts_run(struct cutter *w, struct piece text)
{
	hand_on(w, 0, text);
}

void cuts_end(struct cutter *w)
{
	for (size_t i = 0; i < 2 * w->cuts->n; i++)
		weighted_free(w->work + i);
	free(w->work);
}
