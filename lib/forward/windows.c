/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows.c -- see windows.h */
#include "forward/windows.h"
#include "base/error.h"
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
