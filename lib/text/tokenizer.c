/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tokenizer.c -- tokenizer.json and its BPE; see tokenizer.h
 *
 * A text runs through: added tokens cut out · normalizer · added tokens that
 * want normalized text · pre-tokenizer · BPE of each word. Every byte on its
 * way carries how many bytes of the text it stands for, so that a token knows
 * its length whatever the normalizer did.
 *
 * Such tokenizers often have no words: a whole text is one. It is cut between
 * two characters that stand at the seam of no merge; nothing can join them, so
 * the ids are the same, and each stretch is short. Merges of a stretch are
 * taken from a heap by (rank, place): O(n log n) also where nothing can be cut.
 */
#include "text/tokenizer.h"
#include "base/error.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
	NONE = -1,
	SEAM_BITS = 20,
	NEST = 16,		/* Sequences in Sequences */
	LONGEST = 512,		/* bytes of an added token */
};

/* Strings to ids; linear probing, at most half full. */
struct words {
	size_t mask;
	struct word { const char *text; uint32_t length; int32_t id; } *slot;
};

struct merges {
	size_t mask;
	struct merge { int32_t left, right, rank, id; } *slot;	/* rank < 0: free */
};

/* A text on its way: bytes, and for each how many bytes of the original it stands for. */
struct buffer {
	size_t n, room;
	char *text;
	uint16_t *weight;
};

struct step {
	void (*run)(const struct step *s, struct buffer *b, struct buffer *spare, bool first);
	char *from, *to;
	size_t from_length, to_length;
	enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER } scheme;
};

struct steps {
	size_t n;
	struct step *step;
};

struct added { int32_t id; bool special, lstrip, rstrip; };

/* Added tokens that are looked for in the raw text, or in the normalized one. */
struct finder {
	struct words words;	/* content → index into added */
	bool first[256], length[LONGEST + 1];
	size_t longest;
};

struct tokenizer {
	const char *name;
	json_t *root;		/* owns the strings of the tables */
	struct words vocab;
	struct merges merges;
	uint64_t *seam;		/* may two characters stand at the seam of a merge? one bit a hash */
	bool uncut;		/* merges of other things than characters: do not cut */
	struct steps normalizer, pretokenizer;
	char *delimiter;	/* a word starts at each, or NULL: one word */
	struct finder raw, normal;
	struct added *added;
	char **owned;		/* normalized contents */
	size_t addeds, size;
	bool fallback, fuse_unknown, ignore_merges;
	int32_t byte[256], unknown, bos;
};

/* --- tables --- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static uint64_t hash(const char *s, size_t n)
{
	uint64_t h = n;

	for (; n >= 8; s += 8, n -= 8) {
		uint64_t w;

		memcpy(&w, s, 8);
		h = mix(h ^ w);
	}
	for (size_t i = 0; i < n; i++)
		h = h << 8 ^ h >> 56 ^ (unsigned char)s[i];
	return mix(h);
}

static size_t table_size(size_t n)
{
	size_t size = 16;

	while (size < 2 * n)
		size *= 2;
	return size;
}

static struct words words_make(size_t n)
{
	size_t size = table_size(n);

	return (struct words){ size - 1, xalloc(size, sizeof(struct word)) };
}

static struct word *words_slot(const struct words *w, const char *s, size_t n)
{
	size_t i = hash(s, n) & w->mask;

	while (w->slot[i].text && (w->slot[i].length != n || memcmp(w->slot[i].text, s, n)))
		i = (i + 1) & w->mask;
	return w->slot + i;
}

static int32_t words_find(const struct words *w, const char *s, size_t n)
{
	const struct word *slot = words_slot(w, s, n);

	return slot->text ? slot->id : NONE;
}

static void words_put(struct words *w, const char *s, size_t n, int32_t id)
{
	*words_slot(w, s, n) = (struct word){ s, (uint32_t)n, id };
}

static struct merge *merges_slot(const struct merges *m, int32_t left, int32_t right)
{
	size_t i = mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right) & m->mask;

	while (m->slot[i].rank >= 0 && (m->slot[i].left != left || m->slot[i].right != right))
		i = (i + 1) & m->mask;
	return m->slot + i;
}

/* --- UTF-8 --- */

/* Bytes of the character at s; 1 for a byte that starts none. */
static size_t character(const char *s, size_t n, bool *valid)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t length = *u < 0x80 ? 1 : *u < 0xc2 ? 0 : *u < 0xe0 ? 2 : *u < 0xf0 ? 3 : *u < 0xf5 ? 4 : 0;

	*valid = length && length <= n;
	for (size_t i = 1; *valid && i < length; i++)
		*valid = (u[i] & 0xc0) == 0x80;
	/* overlong forms, surrogates, beyond U+10FFFF */
	if (*valid && ((*u == 0xe0 && u[1] < 0xa0) || (*u == 0xed && u[1] > 0x9f) ||
		       (*u == 0xf0 && u[1] < 0x90) || (*u == 0xf4 && u[1] > 0x8f)))
		*valid = false;
	return *valid ? length : 1;
}

/* First and last character of a string that is not empty: where they start and how long they are. */
static uint64_t last_character(const char *s, size_t n)
{
	size_t i = n - 1;

	while (i && n - i < 4 && (s[i] & 0xc0) == 0x80)
		i--;
	return hash(s + i, n - i);
}

static uint64_t first_character(const char *s, size_t n)
{
	bool valid;

	return hash(s, character(s, n, &valid));
}

/* Bytes of white space (Unicode's property) at s, or 0. */
static size_t space(const char *s, size_t n)
{
	static const char *const spaces[] = { "\t", "\n", "\v", "\f", "\r", " ", "\xc2\x85", "\u00a0", "\u1680",
		"\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009",
		"\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000" };

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (strlen(spaces[i]) <= n && !memcmp(s, spaces[i], strlen(spaces[i])))
			return strlen(spaces[i]);
	return 0;
}

/* --- buffers and steps --- */

static void *grown(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || !(p = realloc(p, bytes ? bytes : 1)))
		die("out of memory");
	return p;
}

static void buffer_room(struct buffer *b, size_t n)
{
	if (b->n + n <= b->room)
		return;
	b->room = b->room + b->room / 2 + n;
	b->text = grown(b->text, b->room, 1);
	b->weight = grown(b->weight, b->room, sizeof *b->weight);
}

/* Appends n bytes that stand together for `weight` bytes of the text; the first byte carries them. */
static void buffer_put(struct buffer *b, size_t n, const char *s, size_t weight)
{
	if (weight > UINT16_MAX)
		die("the normalizer joins more than %d bytes of the text into one", UINT16_MAX);
	buffer_room(b, n);
	memcpy(b->text + b->n, s, n);
	memset(b->weight + b->n, 0, n * sizeof *b->weight);
	b->weight[b->n] = (uint16_t)weight;
	b->n += n;
}

static void buffer_copy(struct buffer *b, const struct buffer *from, size_t begin, size_t n)
{
	if (!n)
		return;
	buffer_room(b, n);
	memcpy(b->text + b->n, from->text + begin, n);
	memcpy(b->weight + b->n, from->weight + begin, n * sizeof *b->weight);
	b->n += n;
}

static void buffer_swap(struct buffer *a, struct buffer *b)
{
	struct buffer c = *a;

	*a = *b;
	*b = c;
}

static void buffer_free(struct buffer *b)
{
	free(b->text);
	free(b->weight);
}

static bool starts_with(const struct buffer *b, const char *s, size_t n)
{
	return b->n >= n && !memcmp(b->text, s, n);
}

static void run_prepend(const struct step *s, struct buffer *b, struct buffer *spare, bool first)
{
	(void)first;
	if (!b->n)
		return;
	spare->n = 0;
	buffer_put(spare, s->to_length, s->to, 0);
	buffer_copy(spare, b, 0, b->n);
	buffer_swap(b, spare);
}

static void run_replace(const struct step *s, struct buffer *b, struct buffer *spare, bool first)
{
	size_t done = 0;

	(void)first;
	spare->n = 0;
	for (;;) {
		const char *hit = memmem(b->text + done, b->n - done, s->from, s->from_length);
		size_t at = hit ? (size_t)(hit - b->text) : b->n, weight = 0;

		buffer_copy(spare, b, done, at - done);
		if (!hit)
			break;
		for (size_t i = 0; i < s->from_length; i++)
			weight += b->weight[at + i];
		buffer_put(spare, s->to_length, s->to, weight);
		done = at + s->from_length;
	}
	buffer_swap(b, spare);
}

static void run_metaspace(const struct step *s, struct buffer *b, struct buffer *spare, bool first)
{
	run_replace(s, b, spare, first);
	if ((s->scheme == SCHEME_ALWAYS || (s->scheme == SCHEME_FIRST && first)) && !starts_with(b, s->to, s->to_length))
		run_prepend(s, b, spare, first);
}

static void run_steps(const struct steps *s, struct buffer *b, struct buffer *spare, bool first)
{
	for (size_t i = 0; i < s->n; i++)
		s->step[i].run(s->step + i, b, spare, first);
}

static struct step *add_step(struct steps *s)
{
	s->step = grown(s->step, s->n + 1, sizeof *s->step);
	s->step[s->n] = (struct step){ 0 };
	return s->step + s->n++;
}

static void free_steps(struct steps *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->step[i].from);
		free(s->step[i].to);
	}
	free(s->step);
}

/* --- reading tokenizer.json --- */

static const json_t *absent(const json_t *v)
{
	return json_is_null(v) ? NULL : v;
}

/* A member that must be a string, an object, ... where it is there; NULL where it is not, or is null. */
static const json_t *member(const struct tokenizer *t, const json_t *o, const char *key, json_type type)
{
	static const char *const names[] = { [JSON_OBJECT] = "object", [JSON_ARRAY] = "array",
		[JSON_STRING] = "string", [JSON_INTEGER] = "whole number" };
	const json_t *v = absent(json_object_get(o, key));

	if (v && json_typeof(v) != type)
		die("%s: %s: its value is no %s", t->name, key, names[type]);
	return v;
}

static bool flag(const struct tokenizer *t, const json_t *o, const char *key, bool otherwise)
{
	const json_t *v = absent(json_object_get(o, key));

	if (v && !json_is_boolean(v))
		die("%s: %s: its value is neither true nor false", t->name, key);
	return v ? json_is_true(v) : otherwise;
}

static const char *string(const struct tokenizer *t, const json_t *o, const char *key)
{
	return json_string_value(member(t, o, key, JSON_STRING));
}

static const char *wanted_string(const struct tokenizer *t, const json_t *o, const char *key)
{
	const char *s = string(t, o, key);

	if (!s || !*s)
		die("%s: %s: a string that is not empty was wanted", t->name, key);
	return s;
}

static const char *type_of(const struct tokenizer *t, const json_t *o, const char *what)
{
	const char *type;

	if (!json_is_object(o))
		die("%s: %s: an object was wanted", t->name, what);
	type = string(t, o, "type");
	if (!type)
		die("%s: %s: it has no type", t->name, what);
	return type;
}

static void set_strings(struct step *s, const char *from, const char *to)
{
	s->from_length = strlen(from);
	s->to_length = strlen(to);
	s->from = xformat("%s", from);
	s->to = xformat("%s", to);
}

static void read_prepend(struct tokenizer *t, const json_t *o)
{
	struct step *s = add_step(&t->normalizer);

	set_strings(s, "", wanted_string(t, o, "prepend"));
	s->run = run_prepend;
}

static void read_replace(struct tokenizer *t, const json_t *o)
{
	const json_t *pattern = member(t, o, "pattern", JSON_OBJECT);
	struct step *s;

	if (!pattern || !json_object_get(pattern, "String"))
		die("%s: normalizer Replace: a pattern of kind String was wanted", t->name);
	s = add_step(&t->normalizer);
	set_strings(s, wanted_string(t, pattern, "String"), wanted_string(t, o, "content"));
	s->run = run_replace;
}

static void read_metaspace(struct tokenizer *t, const json_t *o)
{
	const char *scheme = string(t, o, "prepend_scheme");
	const char *replacement = wanted_string(t, o, "replacement");
	struct step *s = add_step(&t->pretokenizer);

	if (!flag(t, o, "add_prefix_space", true))
		scheme = "never";
	if (!scheme || !strcmp(scheme, "always"))
		s->scheme = SCHEME_ALWAYS;
	else if (!strcmp(scheme, "first"))
		s->scheme = SCHEME_FIRST;
	else if (!strcmp(scheme, "never"))
		s->scheme = SCHEME_NEVER;
	else
		die("%s: Metaspace: prepend_scheme %s is none of always, first, never", t->name, scheme);
	set_strings(s, " ", replacement);
	s->run = run_metaspace;
	if (flag(t, o, "split", true)) {
		if (t->delimiter)
			die("%s: two pre-tokenizers split the text, one was wanted", t->name);
		t->delimiter = xformat("%s", replacement);
	}
}

/* Parts of a pipeline by type; a Sequence holds others. */
struct reader {
	const char *type;
	void (*read)(struct tokenizer *t, const json_t *o);
};

static const struct reader normalizers[] = {
	{ "Prepend", read_prepend }, { "Replace", read_replace }, { NULL, NULL }
}, pretokenizers[] = {
	{ "Metaspace", read_metaspace }, { NULL, NULL }
};

static void read_pipeline(struct tokenizer *t, const json_t *o, const char *what, const char *list,
	const struct reader *readers, int depth)
{
	const char *type;

	if (!absent(o))
		return;
	type = type_of(t, o, what);
	if (!strcmp(type, "Sequence")) {
		const json_t *array = member(t, o, list, JSON_ARRAY);

		if (!array || depth > NEST)
			die("%s: %s: the Sequence has no list of %s, or is nested too deeply", t->name, what, list);
		for (size_t i = 0; i < json_array_size(array); i++)
			read_pipeline(t, json_array_get(array, i), what, list, readers, depth + 1);
		return;
	}
	for (; readers->type; readers++)
		if (!strcmp(readers->type, type)) {
			readers->read(t, o);
			return;
		}
	die("%s: %s %s is not supported", t->name, what, type);
}

static int32_t read_id(const struct tokenizer *t, const json_t *v, const char *token)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= INT32_MAX)
		die("%s: token '%s': its id is no number from 0 to %d", t->name, token, INT32_MAX - 1);
	return (int32_t)json_integer_value(v);
}

static void note_id(struct tokenizer *t, int32_t id)
{
	if ((size_t)id >= t->size)
		t->size = (size_t)id + 1;
}

static int by_number(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* Merges go by id: one that stands for two strings would join what has no seam. */
static void check_ids(const struct tokenizer *t, size_t n)
{
	int32_t *id = xalloc(n, sizeof *id);
	size_t k = 0;

	for (size_t i = 0; i <= t->vocab.mask; i++)
		if (t->vocab.slot[i].text)
			id[k++] = t->vocab.slot[i].id;
	qsort(id, n, sizeof *id, by_number);
	for (size_t i = 1; i < n; i++)
		if (id[i] == id[i - 1])
			die("%s: vocab: two tokens have the id %d", t->name, id[i]);
	free(id);
}

static void read_vocab(struct tokenizer *t, const json_t *model)
{
	const json_t *vocab = member(t, model, "vocab", JSON_OBJECT);
	const char *unknown = string(t, model, "unk_token"), *token;
	json_t *value;

	if (!vocab || !json_object_size(vocab))
		die("%s: model: it has no vocab", t->name);
	t->vocab = words_make(json_object_size(vocab));
	json_object_foreach((json_t *)vocab, token, value) {
		int32_t id = read_id(t, value, token);

		words_put(&t->vocab, token, strlen(token), id);
		note_id(t, id);
	}
	check_ids(t, json_object_size(vocab));
	t->unknown = unknown ? words_find(&t->vocab, unknown, strlen(unknown)) : NONE;
	for (int i = 0; i < 256; i++) {
		char code[8];

		snprintf(code, sizeof code, "<0x%02X>", i);
		t->byte[i] = t->fallback ? words_find(&t->vocab, code, strlen(code)) : NONE;
	}
}

/* The two parts of a merge, in either form; false: none. */
static bool merge_parts(const json_t *v, const char *part[2], size_t length[2])
{
	const char *s = json_string_value(v), *gap;

	if (s) {
		gap = strchr(s, ' ');
		if (!gap || strchr(gap + 1, ' '))
			return false;
		part[0] = s;
		length[0] = (size_t)(gap - s);
		part[1] = gap + 1;
	} else {
		part[0] = json_string_value(json_array_get(v, 0));
		part[1] = json_string_value(json_array_get(v, 1));
		if (json_array_size(v) != 2 || !part[0] || !part[1])
			return false;
		length[0] = strlen(part[0]);
	}
	length[1] = strlen(part[1]);
	return length[0] && length[1];
}

static size_t seam_bit(uint64_t left, uint64_t right)
{
	return mix(left + 3 * right) >> (64 - SEAM_BITS);
}

static bool is_byte_token(const struct tokenizer *t, int32_t id)
{
	for (int i = 0; i < 256; i++)
		if (t->byte[i] == id)
			return true;
	return false;
}

static void read_merge(struct tokenizer *t, const json_t *v, size_t rank)
{
	const char *part[2];
	size_t length[2], bit;
	int32_t id[2], whole;
	char *joined;

	if (!merge_parts(v, part, length))
		die("%s: merges: number %zu is neither \"a b\" nor [\"a\", \"b\"]", t->name, rank);
	joined = xformat("%.*s%s", (int)length[0], part[0], part[1]);
	id[0] = words_find(&t->vocab, part[0], length[0]);
	id[1] = words_find(&t->vocab, part[1], length[1]);
	whole = words_find(&t->vocab, joined, strlen(joined));
	if (id[0] < 0 || id[1] < 0 || whole < 0)
		die("%s: merges: number %zu: '%s', or a part of it, is not in the vocab", t->name, rank, joined);
	free(joined);
	*merges_slot(&t->merges, id[0], id[1]) = (struct merge){ id[0], id[1], (int32_t)rank, whole };

	bit = seam_bit(last_character(part[0], length[0]), first_character(part[1], length[1]));
	t->seam[bit / 64] |= (uint64_t)1 << bit % 64;
	for (int i = 0; i < 2; i++)
		t->uncut |= id[i] == t->unknown || (t->fallback && part[i][0] == '<' && is_byte_token(t, id[i]));
}

static void read_merges(struct tokenizer *t, const json_t *model)
{
	const json_t *merges = member(t, model, "merges", JSON_ARRAY);
	size_t n = json_array_size(merges), size = table_size(n);

	if (!merges || n >= INT32_MAX)
		die("%s: model: it has no list of merges", t->name);
	t->merges = (struct merges){ size - 1, xalloc(size, sizeof(struct merge)) };
	for (size_t i = 0; i < size; i++)
		t->merges.slot[i].rank = NONE;
	t->seam = xalloc(((size_t)1 << SEAM_BITS) / 64, sizeof *t->seam);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(merges, i);
		const char *s = json_string_value(v);

		if (!s || strncmp(s, "#version", 8))
			read_merge(t, v, i);
	}
}

static void finder_put(struct tokenizer *t, struct finder *f, const char *s, size_t n, int32_t index)
{
	if (n > LONGEST)
		die("%s: added_tokens: number %d: its text has %zu bytes, at most %d were wanted", t->name, index, n, LONGEST);
	words_put(&f->words, s, n, index);
	f->first[(unsigned char)*s] = true;
	f->length[n] = true;
	if (n > f->longest)
		f->longest = n;
}

static void read_added_token(struct tokenizer *t, const json_t *o, size_t index)
{
	const char *text = json_is_object(o) ? string(t, o, "content") : NULL;
	struct added *a = t->added + index;

	if (!text || !*text)
		die("%s: added_tokens: number %zu has no content", t->name, index);
	a->id = read_id(t, json_object_get(o, "id"), text);
	a->special = flag(t, o, "special", false);
	a->lstrip = flag(t, o, "lstrip", false);
	a->rstrip = flag(t, o, "rstrip", false);
	if (flag(t, o, "single_word", false))
		die("%s: added_tokens: '%s': single_word is not supported", t->name, text);
	note_id(t, a->id);
	if (flag(t, o, "normalized", !a->special)) {
		struct buffer b = { 0 }, spare = { 0 };

		buffer_put(&b, strlen(text), text, 0);
		run_steps(&t->normalizer, &b, &spare, true);
		t->owned[index] = xformat("%.*s", (int)b.n, b.text);
		finder_put(t, &t->normal, t->owned[index], b.n, (int32_t)index);
		buffer_free(&b);
		buffer_free(&spare);
	} else {
		finder_put(t, &t->raw, text, strlen(text), (int32_t)index);
	}
}

static void read_added(struct tokenizer *t)
{
	const json_t *array = member(t, t->root, "added_tokens", JSON_ARRAY);

	t->addeds = json_array_size(array);
	t->added = xalloc(t->addeds, sizeof *t->added);
	t->owned = xalloc(t->addeds, sizeof *t->owned);
	t->raw.words = words_make(t->addeds);
	t->normal.words = words_make(t->addeds);
	for (size_t i = 0; i < t->addeds; i++)
		read_added_token(t, json_array_get(array, i), i);
}

/* BOS: the one special token before the text in a TemplateProcessing. */
static void read_template(struct tokenizer *t, const json_t *o)
{
	const json_t *single = member(t, o, "single", JSON_ARRAY);

	for (size_t i = 0; i < json_array_size(single); i++) {
		const json_t *piece = json_object_get(json_array_get(single, i), "SpecialToken"), *entry, *ids;
		const char *name = json_string_value(json_object_get(piece, "id"));

		if (json_object_get(json_array_get(single, i), "Sequence"))
			return;
		entry = name ? json_object_get(json_object_get(o, "special_tokens"), name) : NULL;
		ids = json_object_get(entry, "ids");
		if (json_array_size(ids) != 1)
			die("%s: post_processor: single: number %zu is no special token with one id", t->name, i);
		if (t->bos != NONE)
			die("%s: post_processor: it puts several tokens before the text, one BOS was wanted", t->name);
		t->bos = read_id(t, json_array_get(ids, 0), name);
		note_id(t, t->bos);
	}
}

static const struct reader processors[] = { { "TemplateProcessing", read_template }, { NULL, NULL } };

static void read_bpe(struct tokenizer *t)
{
	const json_t *model = json_object_get(t->root, "model");
	const char *const affix[] = { "continuing_subword_prefix", "end_of_word_suffix" };
	const json_t *dropout = absent(json_object_get(model, "dropout"));

	if (dropout && json_number_value(dropout) != 0)
		die("%s: model: dropout makes the ids random; null was wanted", t->name);
	for (size_t i = 0; i < 2; i++) {
		const char *s = string(t, model, affix[i]);

		if (s && *s)
			die("%s: model: %s is not supported", t->name, affix[i]);
	}
	t->fallback = flag(t, model, "byte_fallback", false);
	t->fuse_unknown = flag(t, model, "fuse_unk", false);
	t->ignore_merges = flag(t, model, "ignore_merges", false);
	read_vocab(t, model);
	read_merges(t, model);
	read_pipeline(t, json_object_get(t->root, "normalizer"), "normalizer", "normalizers", normalizers, 0);
	read_pipeline(t, json_object_get(t->root, "pre_tokenizer"), "pre_tokenizer", "pretokenizers", pretokenizers, 0);
	read_added(t);
	read_pipeline(t, json_object_get(t->root, "post_processor"), "post_processor", "processors", processors, 0);
}

/* --- kinds --- */

/* Whether a part of the pipeline, or one in its Sequences, is of that type. */
static bool mentions(const json_t *o, const char *type, int depth)
{
	const char *s = json_string_value(json_object_get(o, "type"));
	const char *key;
	json_t *v;

	if (s && !strcmp(s, type))
		return true;
	if (s && !strcmp(s, "Sequence") && depth < NEST)
		json_object_foreach((json_t *)o, key, v)
			for (size_t i = 0; i < json_array_size(v); i++)
				if (mentions(json_array_get(v, i), type, depth + 1))
					return true;
	return false;
}

static bool is_byte_level(const json_t *root)
{
	static const char *const places[] = { "pre_tokenizer", "decoder", "normalizer" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (mentions(json_object_get(root, places[i]), "ByteLevel", 0))
			return true;
	return false;
}

static bool is_bpe(const json_t *root)
{
	const json_t *model = json_object_get(root, "model");
	const char *type = json_string_value(json_object_get(model, "type"));

	/* old files give no type */
	return type ? !strcmp(type, "BPE") : json_object_get(model, "merges") && json_object_get(model, "vocab");
}

static bool is_any(const json_t *root)
{
	return root;
}

/* The first row that fits; read NULL: known, and not supported yet. */
static const struct kind {
	const char *name;
	bool (*is)(const json_t *root);
	void (*read)(struct tokenizer *t);
} kinds[] = {
	{ "byte-level (GPT-2, Llama 3, Qwen)", is_byte_level, NULL },
	{ "SentencePiece-style BPE", is_bpe, read_bpe },
	{ NULL, is_any, NULL },
};

static _Noreturn void refuse(const struct tokenizer *t, const struct kind *k)
{
	const char *type = json_string_value(json_object_get(json_object_get(t->root, "model"), "type"));

	die("%s: a tokenizer of kind %s is not supported; %s is", t->name, k->name ? k->name : type ? type : "unknown",
		kinds[1].name);
}

struct tokenizer *tokenizer_read(const char *name, const char *json)
{
	struct tokenizer *t = xalloc(1, sizeof *t);
	const struct kind *k = kinds;
	json_error_t error;

	t->name = name;
	t->bos = NONE;
	t->root = json_loads(json, 0, &error);
	if (!t->root)
		die("%s:%d: not valid JSON: %s", name, error.line, error.text);
	if (!json_is_object(t->root) || !json_is_object(json_object_get(t->root, "model")))
		die("%s: no tokenizer.json: it has no object named model", name);
	while (!k->is(t->root))
		k++;
	if (!k->read)
		refuse(t, k);
	k->read(t);
	return t;
}

void tokenizer_close(struct tokenizer *t)
{
	for (size_t i = 0; i < t->addeds; i++)
		free(t->owned[i]);
	free_steps(&t->normalizer);
	free_steps(&t->pretokenizer);
	free(t->owned);
	free(t->added);
	free(t->delimiter);
	free(t->vocab.slot);
	free(t->merges.slot);
	free(t->raw.words.slot);
	free(t->normal.words.slot);
	free(t->seam);
	json_decref(t->root);
	free(t);
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
	return t->bos;
}

size_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->size;
}

/* --- BPE --- */

struct symbol {
	int32_t id;
	uint32_t previous, next;	/* UINT32_MAX: none */
	uint32_t bytes;
	bool gone;
};

struct candidate { int32_t rank; uint32_t at; int32_t id; };

/* One encoding under way. */
struct encoder {
	const struct tokenizer *t;
	bool special;
	struct tokens out;
	size_t room;
	struct symbol *symbol;
	size_t symbols, symbol_room;
	struct candidate *heap;
	size_t heaps, heap_room;
	size_t unknown_bytes;	/* of the unknown characters that wait to be fused */
	bool unknown;
};

static void put_token(struct encoder *e, int32_t id, size_t bytes)
{
	if (e->out.n == e->room) {
		e->room += e->room / 2 + 256;
		e->out.id = grown(e->out.id, e->room, sizeof *e->out.id);
		e->out.bytes = grown(e->out.bytes, e->room, sizeof *e->out.bytes);
	}
	if (bytes > UINT16_MAX)
		die("%s: token %zu of the text (id %d) stands for more than %d bytes of the text", e->t->name, e->out.n, id, UINT16_MAX);
	e->out.id[e->out.n] = id;
	e->out.bytes[e->out.n++] = (uint16_t)bytes;
}

static bool before(struct candidate a, struct candidate b)
{
	return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(struct encoder *e, uint32_t left, uint32_t right)
{
	const struct merge *m = merges_slot(&e->t->merges, e->symbol[left].id, e->symbol[right].id);
	struct candidate c = { m->rank, left, m->id };
	size_t i;

	if (m->rank < 0)
		return;
	if (e->heaps == e->heap_room)
		e->heap = grown(e->heap, e->heap_room = 2 * e->heap_room + 64, sizeof *e->heap);
	for (i = e->heaps++; i && before(c, e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = c;
}

static struct candidate pop(struct encoder *e)
{
	struct candidate top = e->heap[0], c = e->heap[--e->heaps];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < e->heaps; i = child) {
		child += child + 1 < e->heaps && before(e->heap[child + 1], e->heap[child]);
		if (!before(e->heap[child], c))
			break;
		e->heap[i] = e->heap[child];
	}
	e->heap[i] = c;
	return top;
}

/* Merges the waiting symbols, lowest rank first, and puts what is left into the result. */
static void flush(struct encoder *e)
{
	struct symbol *s = e->symbol;
	size_t n = e->symbols;

	for (size_t i = 1; i < n; i++)
		push(e, (uint32_t)i - 1, (uint32_t)i);
	while (e->heaps) {
		struct candidate c = pop(e);
		struct symbol *left = s + c.at, *right;
		const struct merge *m;

		if (left->gone || left->next == UINT32_MAX)
			continue;
		right = s + left->next;
		m = merges_slot(&e->t->merges, left->id, right->id);
		if (m->rank < 0 || m->id != c.id)	/* the pair has changed since */
			continue;
		left->id = c.id;
		left->bytes += right->bytes;
		left->next = right->next;
		right->gone = true;
		if (left->next != UINT32_MAX) {
			s[left->next].previous = c.at;
			push(e, c.at, left->next);
		}
		if (left->previous != UINT32_MAX)
			push(e, left->previous, c.at);
	}
	for (size_t i = 0; i < n; i++)
		if (!s[i].gone)
			put_token(e, s[i].id, s[i].bytes);
	e->symbols = 0;
}

static void put_symbol(struct encoder *e, int32_t id, size_t bytes)
{
	struct symbol *s;

	if (e->symbols == e->symbol_room)
		e->symbol = grown(e->symbol, e->symbol_room = 2 * e->symbol_room + 64, sizeof *e->symbol);
	if (bytes > UINT32_MAX || e->symbols >= UINT32_MAX - 1)
		die("%s: the text has a stretch of 4 GiB without a place to cut it", e->t->name);
	s = e->symbol + e->symbols;
	*s = (struct symbol){ id, e->symbols ? (uint32_t)e->symbols - 1 : UINT32_MAX, UINT32_MAX, (uint32_t)bytes, false };
	if (e->symbols)
		s[-1].next = (uint32_t)e->symbols;
	e->symbols++;
}

static void put_unknown(struct encoder *e)
{
	if (e->unknown)
		put_symbol(e, e->t->unknown, e->unknown_bytes);
	e->unknown = false;
	e->unknown_bytes = 0;
}

static size_t sum(size_t n, const uint16_t weight[n])
{
	size_t w = 0;

	for (size_t i = 0; i < n; i++)
		w += weight[i];
	return w;
}

static bool has_byte_tokens(const struct tokenizer *t, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (t->byte[(unsigned char)s[i]] < 0)
			return false;
	return t->fallback;
}

/* A character of n bytes as a symbol, as byte tokens, or as unknown. */
static void put_character(struct encoder *e, size_t n, const char *s, const uint16_t weight[n], bool valid)
{
	const struct tokenizer *t = e->t;
	int32_t id = valid ? words_find(&t->vocab, s, n) : NONE;

	if (id >= 0) {
		put_unknown(e);
		put_symbol(e, id, sum(n, weight));
	} else if (has_byte_tokens(t, n, s)) {
		size_t rest = sum(n, weight);

		put_unknown(e);
		for (size_t i = 0; i < n; i++) {	/* one byte each where the character is the text's own */
			size_t w = i + 1 < n && rest ? 1 : rest;

			put_symbol(e, t->byte[(unsigned char)s[i]], w);
			rest -= w;
		}
	} else if (t->unknown >= 0) {
		if (!t->fuse_unknown)
			put_unknown(e);
		e->unknown = true;
		e->unknown_bytes += sum(n, weight);
	} else {
		die("%s: there is neither a token for '%.*s' nor an unknown token", t->name, valid ? (int)n : 1, valid ? s : "?");
	}
}

static void encode_word(struct encoder *e, size_t n, const char *s, const uint16_t weight[n])
{
	const struct tokenizer *t = e->t;
	int32_t id = t->ignore_merges ? words_find(&t->vocab, s, n) : NONE;
	uint64_t last = 0;

	if (id >= 0) {
		put_token(e, id, sum(n, weight));
		return;
	}
	for (size_t i = 0, length; i < n; i += length) {
		bool valid;
		uint64_t here;

		length = character(s + i, n - i, &valid);
		here = hash(s + i, length);
		if (e->symbols && !t->uncut && !e->unknown) {
			size_t bit = seam_bit(last, here);

			if (!(t->seam[bit / 64] >> bit % 64 & 1))
				flush(e);
		}
		put_character(e, length, s + i, weight + i, valid);
		last = here;
	}
	put_unknown(e);
	flush(e);
}

static void encode_words(struct encoder *e, size_t n, const char *s, const uint16_t weight[n])
{
	size_t d = e->t->delimiter ? strlen(e->t->delimiter) : 0;

	while (n) {
		const char *next = d && n > d ? memmem(s + 1, n - 1, e->t->delimiter, d) : NULL;
		size_t length = next ? (size_t)(next - s) : n;

		encode_word(e, length, s, weight);
		s += length;
		weight += length;
		n -= length;
	}
}

/* --- added tokens --- */

/* The longest added token at the start of s; NONE if there is none. */
static int32_t finder_match(const struct finder *f, size_t n, const char *s, size_t *length)
{
	if (!f->first[(unsigned char)*s])
		return NONE;
	for (size_t l = n < f->longest ? n : f->longest; l; l--) {
		int32_t index = f->length[l] ? words_find(&f->words, s, l) : NONE;

		if (index >= 0) {
			*length = l;
			return index;
		}
	}
	return NONE;
}

/*
 * Calls piece for the stretches between added tokens, and puts the tokens into
 * the result. weight NULL: every byte counts one.
 */
static void split_added(struct encoder *e, const struct finder *f, size_t n, const char *s, const uint16_t *weight,
	bool first, void (*piece)(struct encoder *e, size_t n, const char *s, const uint16_t *weight, bool first))
{
	size_t done = 0, length;

	for (size_t i = 0; f->longest && i < n; i += length) {
		int32_t index = finder_match(f, n - i, s + i, &length);
		const struct added *a = e->t->added + index;
		size_t begin = i, end, w;

		if (index < 0)
			length = 1;
		if (index < 0 || (a->special && !e->special))
			continue;
		end = i + length;
		if (a->lstrip)
			for (size_t k = i; k-- > done;)	/* back over white space, character by character */
				if ((s[k] & 0xc0) != 0x80) {
					if (space(s + k, begin - k) != begin - k)
						break;
					begin = k;
				}
		while (a->rstrip && end < n && (w = space(s + end, n - end)))
			end += w;
		if (begin > done)
			piece(e, begin - done, s + done, weight ? weight + done : NULL, first && !done);
		put_token(e, a->id, weight ? sum(end - begin, weight + begin) : end - begin);
		done = end;
		length = end - i;
	}
	if (done < n)
		piece(e, n - done, s + done, weight ? weight + done : NULL, first && !done);
}

static void encode_normal(struct encoder *e, size_t n, const char *s, const uint16_t *weight, bool first)
{
	const struct steps *steps = &e->t->pretokenizer;
	struct buffer b = { 0 }, spare = { 0 };

	if (!steps->n) {
		encode_words(e, n, s, weight);
		return;
	}
	buffer_copy(&b, &(struct buffer){ .text = (char *)s, .weight = (uint16_t *)weight }, 0, n);
	run_steps(steps, &b, &spare, first);
	buffer_free(&spare);
	encode_words(e, b.n, b.text, b.weight);
	buffer_free(&b);
}

static void encode_raw(struct encoder *e, size_t n, const char *s, const uint16_t *weight, bool first)
{
	struct buffer b = { 0 }, spare = { 0 };

	(void)weight;
	buffer_room(&b, n);
	memcpy(b.text, s, n);
	for (b.n = 0; b.n < n; b.n++)
		b.weight[b.n] = 1;
	run_steps(&e->t->normalizer, &b, &spare, first);
	buffer_free(&spare);
	split_added(e, &e->t->normal, b.n, b.text, b.weight, first, encode_normal);
	buffer_free(&b);
}

struct tokens tokenizer_encode(const struct tokenizer *t, size_t n, const char text[n], bool special)
{
	struct encoder e = { .t = t, .special = special };

	split_added(&e, &t->raw, n, text, NULL, true, encode_raw);
	free(e.symbol);
	free(e.heap);
	return e.out;
}

void tokens_free(struct tokens *tokens)
{
	free(tokens->id);
	free(tokens->bytes);
	*tokens = (struct tokens){ 0 };
}

struct tokens tokens_of_bytes(size_t n, const char text[n])
{
	struct tokens k = { n, grown(NULL, n, sizeof *k.id), grown(NULL, n, sizeof *k.bytes) };

	for (size_t i = 0; i < n; i++) {
		k.id[i] = (unsigned char)text[i];
		k.bytes[i] = 1;
	}
	return k;
}
