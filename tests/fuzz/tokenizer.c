/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokenizer.c -- any bytes as a tokenizer.json, and a text through it; the same bytes as a config.json */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/config.h"
#include "model/rope.h"
#include "survive.h"
#include "text/tokenizer.h"

struct run { const char *json, *text; size_t n; bool special; struct tokenizer *t; };

static void encode(void *arg)
{
	struct run *r = arg;
	struct encoding k = tokenizer_encode(r->t, r->n, r->text, r->special);
	size_t bytes = 0;

	for (size_t i = 0; i < k.n; i++) {
		if (k.id[i] < 0 || (size_t)k.id[i] >= tokenizer_vocab(r->t))
			abort();
		bytes += k.bytes[i];
	}
	if (bytes != r->n)
		abort();
	encoding_free(&k);
}

static void tokenizer(void *arg)
{
	static const char text[] = " Once upon a time, <s>\xe2\x96\x81there </s>  was\n\xc3\xa4 <unk>\xff"
		"\xc3 caf\xc3\xa9 \xf0\x9f\x98\x80 aaaaaaab";
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

static void config(void *arg)
{
	struct run *r = arg;
	struct config c = config_parse("fuzz", r->json);
	size_t block, row;
	double *frequency;

	config_find(&c, r->json, &block, &row, NULL);
	if (c.stack->rotary) {
		frequency = xalloc(c.stack->head_dim / 2, sizeof *frequency);
		for (int i = 0; i < (c.arch->local_theta_key ? ROPES : 1); i++)
			rope_frequencies(&c.stack->rope[i], c.stack->rotary, 100, frequency);
		free(frequency);
	}
	for (size_t i = 0; i < c.stack->blocks; i += 1 + c.stack->blocks / 8)
		stack_window(c.stack, i);
	config_free(&c);
	if (!model_layout(r->json))
		abort();
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
	survive_forget();
	free(json);
	return 0;
}
