/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokenizer_decode.c -- see tokenizer_decode_private.h */
#include "text/tokenizer_decode_private.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "text/bytelevel.h"
#include "text/fields.h"
#include "text/tokenizer_private.h"
#include "text/utf8.h"

void texts_put(struct texts *t, const char *s, size_t n)
{
	if (t->room && t->length + n > t->room)
		weighted_refuse(t->name);
	if (t->length + n > t->capacity)
		t->text = xgrow(t->text, t->capacity = t->capacity + t->capacity / 2 + n + 64, 1);
	if (n)
		memcpy(t->text + t->length, s, n);
	t->length += n;
}

void texts_end(struct texts *t)
{
	if (t->n == t->max)
		t->end = xgrow(t->end, t->max = t->max + t->max / 2 + 64, sizeof *t->end);
	t->end[t->n++] = t->length;
}

void texts_free(struct texts *t)
{
	free(t->text);
	free(t->end);
}

static struct piece text_at(const struct texts *t, size_t i)
{
	size_t begin = i ? t->end[i - 1] : 0;

	return (struct piece){ t->end[i] - begin, t->text ? t->text + begin : "", NULL, false };
}

/* Appends bytes; each sequence that is not valid UTF-8 becomes U+FFFD. */
static void put_mended(struct texts *to, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t good = utf8_valid(s + i, n - i);
		bool valid;

		texts_put(to, s + i, good);
		i += good;
		if (i == n)
			break;
		i += utf8_character(s + i, n - i, &valid);
		texts_put(to, UTF8_REPLACEMENT, 3);
	}
}

static void run_replace(const struct decoder *d, const struct texts *from, struct texts *to)
{
	for (size_t i = 0; i < from->n; i++) {
		struct piece p = text_at(from, i);
		size_t done = 0, begin, end;

		for (struct regex_place at = { 0 };
		     regex_next(d->replace.from, p.n, p.text, &at, &begin, &end); done = end) {
			texts_put(to, p.text + done, begin - done);
			texts_put(to, d->replace.to, d->replace.to_length);
		}
		texts_put(to, p.text + done, p.n - done);
		texts_end(to);
	}
}

static void run_fuse(const struct decoder *d, const struct texts *from, struct texts *to)
{
	(void)d;
	texts_put(to, from->text, from->length);
	texts_end(to);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The byte of a token such as "<0x41>", or -1. */
static int byte_of(struct piece p)
{
	const char *s = p.text;

	if (p.n != 6 || memcmp(s, "<0x", 3) || s[5] != '>' || digit(s[3]) < 0 || digit(s[4]) < 0)
		return -1;
	return digit(s[3]) << 4 | digit(s[4]);
}

/* A run of byte tokens becomes its text if that is valid UTF-8, or else one U+FFFD per byte. */
static void run_fallback(const struct decoder *d, const struct texts *from, struct texts *to)
{
	char *run = xgrow(NULL, from->n + 1, 1);
	size_t n = 0;

	(void)d;
	for (size_t i = 0; i <= from->n; i++) {
		int byte = i < from->n ? byte_of(text_at(from, i)) : -1;

		if (byte >= 0) {
			run[n++] = (char)byte;
			continue;
		}
		if (n && utf8_valid(run, n) == n) {
			texts_put(to, run, n);
			texts_end(to);
		} else {
			for (size_t k = 0; k < n; k++) {
				texts_put(to, UTF8_REPLACEMENT, 3);
				texts_end(to);
			}
		}
		n = 0;
		if (i < from->n) {
			texts_put(to, text_at(from, i).text, text_at(from, i).n);
			texts_end(to);
		}
	}
	free(run);
}

static void run_strip(const struct decoder *d, const struct texts *from, struct texts *to)
{
	size_t c = strlen(d->string);

	for (size_t i = 0; i < from->n; i++) {
		struct piece p = text_at(from, i);

		for (size_t k = 0; k < d->start && p.n >= c && !memcmp(p.text, d->string, c); k++)
			p = piece_part(p, c, p.n);
		for (size_t k = 0; k < d->stop && p.n >= c && !memcmp(p.text + p.n - c, d->string, c); k++)
			p.n -= c;
		texts_put(to, p.text, p.n);
		texts_end(to);
	}
}

static void run_metaspace(const struct decoder *d, const struct texts *from, struct texts *to)
{
	for (size_t i = 0; i < from->n; i++) {
		struct piece p = text_at(from, i);
		size_t c = strlen(d->string), done = 0;
		const char *hit;

		while ((hit = memmem(p.text + done, p.n - done, d->string, c))) {
			size_t at = (size_t)(hit - p.text);

			texts_put(to, p.text + done, at - done);
			if (i || !d->strip_first)
				texts_put(to, " ", 1);
			done = at + c;
		}
		texts_put(to, p.text + done, p.n - done);
		texts_end(to);
	}
}

/* Joins the bytes of all tokens. A token with a character that stands for no byte is kept as text. */
static void run_bytes(const struct decoder *d, const struct texts *from, struct texts *to)
{
	struct texts all = { 0 };

	(void)d;
	for (size_t i = 0; i < from->n; i++) {
		struct piece p = text_at(from, i);
		size_t before = all.length, length;
		bool valid;

		for (size_t k = 0; k < p.n; k += length) {
			int byte = bytelevel_byte(p.text + k, p.n - k);
			char c = (char)byte;

			length = utf8_character(p.text + k, p.n - k, &valid);
			if (byte < 0) {
				all.length = before;
				texts_put(&all, p.text, p.n);
				break;
			}
			texts_put(&all, &c, 1);
		}
	}
	put_mended(to, all.text, all.length);
	texts_end(to);
	texts_free(&all);
}

static void run_spaces(const struct decoder *d, const struct texts *from, struct texts *to)
{
	(void)d;
	for (size_t i = 0; i < from->n; i++) {
		texts_put(to, " ", i > 0);
		texts_put(to, text_at(from, i).text, text_at(from, i).n);
	}
	texts_end(to);
}

static void add_decoder(struct decoders *s, struct decoder d)
{
	s->decoder = xgrow(s->decoder, s->n + 1, sizeof *s->decoder);
	s->decoder[s->n++] = d;
}

static void read_replace(const char *name, const json_t *o, void *to)
{
	const char *s = field_string(name, o, "content");

	if (!s)
		die("%s: decoder Replace: has no content", name);
	add_decoder(to, (struct decoder){ .run = run_replace,
		.replace = { .from = pattern_read(name, o), .to = s, .to_length = strlen(s) } });
}

static void read_fallback(const char *name, const json_t *o, void *to)
{
	(void)name, (void)o;
	add_decoder(to, (struct decoder){ .run = run_fallback });
}

static void read_fuse(const char *name, const json_t *o, void *to)
{
	(void)name, (void)o;
	add_decoder(to, (struct decoder){ .run = run_fuse });
}

static size_t count(const char *name, const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(field(name, o, key, JSON_INTEGER));

	if (n < 0)
		die("%s: decoder Strip: %s is negative", name, key);
	return (size_t)n;
}

static void read_strip(const char *name, const json_t *o, void *to)
{
	add_decoder(to, (struct decoder){ .run = run_strip, .string = field_required(name, o, "content"),
		.start = count(name, o, "start"), .stop = count(name, o, "stop") });
}

static void read_metaspace(const char *name, const json_t *o, void *to)
{
	const char *scheme = field_string(name, o, "prepend_scheme");
	bool never = (scheme && !strcmp(scheme, "never")) || !field_flag(name, o, "add_prefix_space", true);

	add_decoder(to, (struct decoder){ .run = run_metaspace, .string = field_required(name, o,
		"replacement"),
		.strip_first = !never });
}

static void read_bytes(const char *name, const json_t *o, void *to)
{
	(void)name, (void)o;
	add_decoder(to, (struct decoder){ .run = run_bytes });
}

static const struct field_row rows[] = {
	{ "Replace", read_replace }, { "ByteFallback", read_fallback }, { "Fuse", read_fuse },
	{ "Strip", read_strip }, { "Metaspace", read_metaspace }, { "ByteLevel", read_bytes }, { NULL, NULL },
};

struct decoders decoders_read(const char *name, const json_t *root)
{
	struct decoders d = { .name = name };

	field_parts(name, root, "decoder", "decoders", rows, &d);
	if (json_is_null(json_object_get(root, "decoder")) || !json_object_get(root, "decoder"))
		add_decoder(&d, (struct decoder){ .run = run_spaces });
	return d;
}

void decoders_run(const struct decoders *d, struct texts *tokens)
{
	const size_t room = weighted_room(tokens->length + tokens->n);

	for (size_t i = 0; i < d->n; i++) {
		struct texts to = { .room = room, .name = d->name };

		d->decoder[i].run(d->decoder + i, tokens, &to);
		texts_free(tokens);
		*tokens = to;
	}
}

void decoders_free(struct decoders *d)
{
	for (size_t i = 0; i < d->n; i++)
		regex_free(d->decoder[i].replace.from);
	free(d->decoder);
}

static int by_id(const void *key, const void *element)
{
	const int32_t id = *(const int32_t *)key, other = ((const struct spelled *)element)->id;

	return (id > other) - (id < other);
}

static void decode(const struct tokenizer *t, const char *from, size_t n, const int32_t id[n],
	struct texts *to)
{
	struct texts texts = { 0 };

	for (size_t i = 0; i < n; i++) {
		const char byte = (char)id[i];
		const struct spelled *s = t ?
			bsearch(id + i, t->token, t->tokens, sizeof *t->token, by_id) : NULL;

		if (t && !s)
			die("%s: id %d at %zu has no token in %s", from, id[i], i, t->name);
		texts_put(&texts, t ? s->text : &byte, t ? strlen(s->text) : 1);
		texts_end(&texts);
	}
	if (t)
		decoders_run(&t->decoder, &texts);
	texts_put(to, texts.text, texts.length);
	texts_free(&texts);
}

char *tokenizer_decode(const struct tokenizer *t, const char *from, size_t n, const int32_t id[n],
	size_t *length)
{
	struct texts to = { 0 };

	decode(t, from, n, id, &to);
	*length = to.length;
	return to.text;
}

char *tokenizer_decode_each(const struct tokenizer *t, const char *from, size_t sequences,
	const int64_t sequence[sequences + 1], const int32_t id[], size_t *length)
{
	struct texts to = { 0 };

	for (size_t i = 0; i < sequences; i++) {
		decode(t, from, (size_t)(sequence[i + 1] - sequence[i]), id + sequence[i], &to);
		texts_put(&to, "\n", 1);
	}
	*length = to.length;
	return to.text;
}
