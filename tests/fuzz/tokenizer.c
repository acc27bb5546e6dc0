/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokenizer.c -- any bytes as a tokenizer.json, with a text through it; as a config.json; as a pattern */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/config.h"
#include "model/layer_ref.h"
#include "model/rope.h"
#include "survive.h"
#include "text/regex.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

struct run { const char *json, *text; size_t n; bool special; struct tokenizer *t; };

static void encode(void *arg)
{
	struct run *r = arg;
	struct encoding k = tokenizer_encode(r->t, r->n, r->text, r->special);
	size_t bytes = 0, length;
	char *back;

	for (size_t i = 0; i < k.n; i++) {
		if (k.id[i] < 0 || (size_t)k.id[i] >= tokenizer_vocab(r->t))
			abort();
		bytes += k.bytes[i];
	}
	if (k.n && bytes != r->n)	/* a pre-tokenizer may remove everything */
		abort();
	back = tokenizer_decode(r->t, "ids", k.n, k.id, &length);
	survive_use(back, length);
	free(back);
	encoding_free(&k);
}

static const char text[] = " Once upon a time, <s>\xe2\x96\x81there </s>  was\n\xc3\xa4 <unk>\xff"
		"\xc3 caf\xc3\xa9 \xf0\x9f\x98\x80 aaaaaaab I'm 1234 "
		"e\xcc\x81\xcc\xa3\r\n\r\n  x=[1,2]\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x80\xc2\xbd";

static void tokenizer(void *arg)
{
	struct run *r = arg;

	r->t = tokenizer_read("fuzz", r->json);
	for (int special = 0; special < 2; special++) {
		struct run fixed = { r->json, text, sizeof text - 1, special, r->t };
		struct run json = { r->json, r->json, r->n, special, r->t };

		attempt(encode, &fixed);
		attempt(encode, &json);
	}
	tokenizer_close(r->t);
}

/* Matches must be in order, and consist of whole characters. */
static void pattern(void *arg)
{
	const struct run *r = arg;
	static const char some[] = "I'm 123 caf\xc3\xa9, \xe4\xb8\xad\xe6\x96\x87\n\n  "
		"ab aab\tb \xf0\x9f\x98\x80!";
	const size_t n = sizeof some - 1;
	size_t begin, end, last = 0;
	struct regex *x;

	if (utf8_valid(r->json, strlen(r->json)) != strlen(r->json))
		return;		/* JSON cannot contain it */
	x = regex_make("fuzz", r->json, DIALECT_ONIGURUMA);
	for (struct regex_place at = { 0 }; regex_next(x, n, some, &at, &begin, &end); last = end)
		if (begin < last || end < begin || end > n || (begin < n && (some[begin] & 0xc0) == 0x80) ||
		    (end < n && (some[end] & 0xc0) == 0x80))
			abort();
	regex_free(x);
}

static void config(void *arg)
{
	struct run *r = arg;
	struct config c = config_parse("fuzz", r->json);
	struct layer_ref layer;
	const char **layout;
	double *frequency;

	layer_ref_find(&c, r->json, &layer);
	if (c.stack->rotary) {
		frequency = xalloc(c.stack->head_dim / 2, sizeof *frequency);
		for (int i = 0; i < (c.arch->local_theta_key ? ROPES : 1); i++)
			rope_frequencies(&c.stack->rope[i], c.stack->rotary, 100, frequency);
		free(frequency);
	}
	for (size_t i = 0; i < c.stack->blocks; i += 1 + c.stack->blocks / 8)
		stack_window(c.stack, i);
	config_free(&c);
	layout = model_layout(r->json);
	if (!layout)
		abort();
	free(layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *json = malloc(n + 1);
	struct run r = { .json = json };

	if (!json)
		return 0;
	memcpy(json, data, n);
	json[n] = 0;
	r.n = n < 300 ? n : 300;
	attempt(tokenizer, &r);
	attempt(config, &r);
	attempt(pattern, &r);
	survive_forget();
	free(json);
	return 0;
}
