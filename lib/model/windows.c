/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows.c -- a tokens file, and how it is cut into windows; see windows.h */
#include "model/windows.h"
#include "base/digest.h"
#include "base/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_DEFAULT = 2048 };

/* A row says what each window of a text of n ids is; bos is in the text's front already where `lead` says so. */
struct convention {
	const char *name;
	bool lead;		/* one BOS before the whole text, if the tokenizer adds one */
	bool each;		/* every window begins with a BOS of its own */
};

static const struct convention conventions[] = {
	{ "gptq", true, false },
	{ "bos", false, true },
};

const char *const windows_conventions[] = { "gptq", "bos", NULL };

/* What a tool that evaluates reads of a tokens file takes every id at its usual place. */
static void check_members(const struct image *image)
{
	static const char *const places[] = { "/sequence", "/position", "/index", "/modality" };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (image_has(image, places[i]))
			die("%s: %s: tokens with sequences, positions or modalities of their own are not read yet", image_name(image), places[i]);
}

static void check_maker(const struct image *image, const struct image *part, size_t ours, size_t vocab, bool force)
{
	char *theirs = image_text(image, "/tokens", "tokenizer_sha256");
	char *text = theirs && image_has(part, "/tokenizer") ? image_string(part, "/tokenizer") : NULL;
	char *digest = text ? digest_of(strlen(text), text) : NULL;

	if (ours && ours != vocab && !force)
		die("%s: /tokens: made for a vocabulary of %zu, %s has %zu: tokenize the text for this model (--force-tokens takes them all the same)",
			image_name(image), ours, image_name(part), vocab);
	if (digest && strcmp(digest, theirs))
		warn("%s: /tokens: made by another tokenizer than that of %s", image_name(image), image_name(part));
	free(theirs), free(text), free(digest);
}

void tokens_describe(struct output *out, const char *tokenizer, long bos, bool add_bos, size_t vocab)
{
	char *digest = tokenizer ? digest_of(strlen(tokenizer), tokenizer) : NULL;

	output_integer(out, "/tokens", "bos_id", bos);
	output_integer(out, "/tokens", "add_bos", add_bos);
	output_integer(out, "/tokens", "vocab", (int64_t)vocab);
	if (digest)
		output_text(out, "/tokens", "tokenizer_sha256", digest);
	free(digest);
}

struct tokens tokens_read(const struct image *image, const struct image *part, size_t vocab, bool force, size_t limit)
{
	struct tensor t = image_tensor(image, "/tokens", TENSOR_I32, 1, NULL), b;
	struct tokens y = { .n = t.dim[0], .id = t.data };
	double add = image_number(image, "/tokens", "add_bos", image_number(image, "/", "add_bos", NAN));
	double bos = image_number(image, "/tokens", "bos_id", image_number(image, "/", "bos_id", -1));
	double size = image_number(image, "/tokens", "vocab", image_number(image, "/", "vocab", 0));

	if (!(bos >= -1) || bos >= INT32_MAX || bos != (int32_t)bos)
		die("%s: /tokens: attribute bos_id is no token id", image_name(image));
	if (!(size >= 0) || size > INT32_MAX || size != floor(size))
		die("%s: /tokens: attribute vocab is no size", image_name(image));
	if (isnan(add))
		warn("%s: /tokens: has no attribute add_bos: no BOS is put before the text", image_name(image));
	y.bos = (int32_t)bos;
	y.add_bos = add > 0 && y.bos >= 0;
	y.vocab = (size_t)size;
	check_members(image);
	if (part)
		check_maker(image, part, y.vocab, vocab, force);
	if (image_find(image, "/bytes", TENSOR_U16, 1, &y.n, &b))
		y.bytes = b.data;
	if (limit && limit < y.n)
		y.n = limit;
	for (size_t i = 0; vocab && i < y.n; i++)
		if (y.id[i] < 0 || (size_t)y.id[i] >= vocab)
			die("%s: /tokens: id %d at %zu is not in the model's vocabulary of %zu: made by another tokenizer",
				image_name(image), y.id[i], i, vocab);
	if (vocab && y.bos >= 0 && (size_t)y.bos >= vocab)
		die("%s: /tokens: bos_id %d is not in the model's vocabulary of %zu", image_name(image), y.bos, vocab);
	return y;
}

size_t windows_ctx(size_t ctx, size_t positions)
{
	if (!ctx)
		ctx = positions && positions < LARGEST_DEFAULT ? positions : LARGEST_DEFAULT;
	if (ctx < 2)
		die("the model has %zu positions, a window takes 2 at least", positions);
	if (positions && ctx > positions)
		warn("--ctx %zu is longer than the %zu positions the model was made for", ctx, positions);
	return ctx;
}

static void count_bytes(struct windows *w, const struct tokens *t)
{
	w->bytes = 0;
	for (size_t i = 0; i < w->n; i++)
		for (size_t p = w->first[i]; t->bytes && p < w->end[i]; p++)
			w->bytes += t->bytes[w->source[i] + (int64_t)p];
}

struct windows windows_cut(const char *name, const struct tokens *t, int convention, size_t ctx)
{
	const struct convention *c = &conventions[convention];
	bool lead = c->lead && t->add_bos;
	size_t step = ctx - c->each, n = t->n + lead;
	struct windows w = { .n = n / step, .ctx = ctx };

	if (c->each && t->bos < 0)
		die("%s: /tokens: names no bos_id, --convention %s needs one; gptq does not", name, c->name);
	if (!w.n)
		die("%s: /tokens: %zu ids do not fill one window of --ctx %zu", name, t->n, ctx);
	w.id = xalloc(w.n * ctx, sizeof *w.id);
	w.first = xalloc(w.n, sizeof *w.first);
	w.end = xalloc(w.n, sizeof *w.end);
	w.source = xalloc(w.n, sizeof *w.source);
	for (size_t i = 0; i < w.n; i++) {
		int64_t at = (int64_t)(i * step) - (lead || c->each);

		for (size_t p = 0; p < ctx; p++)
			w.id[i * ctx + p] = (c->each && !p) || at + (int64_t)p < 0 ? t->bos : t->id[at + (int64_t)p];
		w.source[i] = at;
		w.first[i] = 1;
		w.end[i] = ctx;
		w.targets += ctx - 1;
	}
	count_bytes(&w, t);
	return w;
}

int64_t windows_target(const struct windows *w, size_t row)
{
	size_t window = row / w->ctx, p = row % w->ctx + 1;

	return p >= w->first[window] && p < w->end[window] ? w->id[row + 1] : -1;
}

void windows_shard(struct windows *w, size_t i, size_t n)
{
	size_t kept = 0;

	w->targets = 0;
	w->bytes = 0;	/* of what is left: not known */
	for (size_t k = i - 1; k < w->n; k += n, kept++) {
		memmove(w->id + kept * w->ctx, w->id + k * w->ctx, w->ctx * sizeof *w->id);
		w->first[kept] = w->first[k];
		w->end[kept] = w->end[k];
		w->source[kept] = w->source[k];
		w->targets += w->end[k] - w->first[k];
	}
	if (!kept)
		die("shard %zu/%zu is empty: there are %zu windows", i, n, w->n);
	w->n = kept;
}

void windows_free(struct windows *w)
{
	free(w->id);
	free(w->first);
	free(w->end);
	free(w->source);
	*w = (struct windows){ 0 };
}
