/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows.c -- see windows.h */
#include "forward/windows.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"

enum { LARGEST_DEFAULT = 2048 };

/* Where a row puts a BOS. */
struct convention {
	bool lead;		/* one BOS before the whole text, if the tokenizer adds one */
	bool each;		/* every window begins with a BOS of its own */
};

static const struct convention conventions[] = {
	[WINDOWS_GPTQ] = { true, false },
	[WINDOWS_BOS] = { false, true },
};

const char *const windows_conventions[] = { [WINDOWS_GPTQ] = "gptq", [WINDOWS_BOS] = "bos", NULL };

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

/* How each text is cut, and the windows so far. */
struct cut {
	const char *name;		/* of the file */
	const struct tokens *t;
	const struct convention *c;
	bool lead;			/* the text begins with a BOS */
	size_t ctx;
	struct windows w;
};

/* A window of a BOS, if it has one, and tokens `from` on. */
struct window { size_t row, length, bos, from; };

static void set_target(struct cut *k, const struct window *v, size_t place, size_t next)
{
	k->w.target[v->row + place] = k->w.id[v->row + next];
	if (k->t->bytes)
		k->w.bytes += k->t->bytes[v->from + next - v->bos];
}

/* The targets of a window whose tokens were reordered: those of the next index. */
static void targets_by_index(struct cut *k, const struct window *v)
{
	size_t *place = xalloc(v->length, sizeof *place);

	for (size_t p = 0; p < v->length; p++)
		place[(size_t)k->w.index[v->row + p] + v->bos] = p;
	for (size_t i = 0; i + 1 < v->length; i++)
		set_target(k, v, place[i], place[i + 1]);
	free(place);
}

/* Positions, indices and modalities. */
static void place_tokens(struct cut *k, const struct window *v)
{
	const struct tokens *t = k->t;
	struct windows *w = &k->w;

	for (size_t p = 0; p < v->length; p++) {
		const bool bos = p < v->bos;
		size_t row = v->row + p, i = v->from + p - v->bos;

		if (w->modality)
			w->modality[row] = bos ? 0 : t->modality[i];
		if (w->index)
			w->index[row] = bos ? -1 : t->index[i];
		if (w->position && bos)
			w->position[row] = 0;
		else if (w->position)	/* where the file has none: the place before reordering */
			w->position[row] = (t->position ? t->position[i] : t->index[i]) + (int32_t)v->bos;
	}
}

static void add_window(struct cut *k, size_t bos, size_t from, size_t n)
{
	struct windows *w = &k->w;
	const struct window v = { w->rows, bos + n, bos, from };

	w->sequence[w->n++] = (struct sequence){ .first = v.row, .length = v.length };
	w->rows += v.length;
	w->longest = v.length > w->longest ? v.length : w->longest;
	for (size_t p = 0; p < v.length; p++) {
		w->id[v.row + p] = p < bos ? k->t->bos : k->t->id[from + p - bos];
		w->target[v.row + p] = -1;
	}
	place_tokens(k, &v);
	if (w->index)
		targets_by_index(k, &v);
	for (size_t p = 0; !w->index && p + 1 < v.length; p++)
		set_target(k, &v, p, p + 1);
}

/* A text of tokens begin .. end - 1; tail: its last window may be shorter. */
static void cut_text(struct cut *k, size_t begin, size_t end, bool tail)
{
	size_t bos = k->c->each || k->lead;

	if (k->w.index && end - begin + bos > k->ctx)
		die("%s: /index: a sequence of %zu tokens was reordered and must fit into one window: "
			"--ctx %zu at least", k->name, end - begin, end - begin + bos);
	for (size_t at = begin, n; at < end; at += n, bos = k->c->each) {
		n = k->ctx - bos;
		if (n > end - at && (!tail || end - at + bos < 2))
			return;
		n = least(n, end - at);
		add_window(k, bos, at, n);
	}
}

static void reserve(struct windows *w, const struct tokens *t, size_t rows, size_t windows)
{
	w->sequence = xalloc(windows, sizeof *w->sequence);
	w->id = xalloc(rows, sizeof *w->id);
	w->target = xalloc(rows, sizeof *w->target);
	if (t->position || t->index)
		w->position = xalloc(rows, sizeof *w->position);
	if (t->index)
		w->index = xalloc(rows, sizeof *w->index);
	if (t->modality)
		w->modality = xalloc(rows, sizeof *w->modality);
}

static void count(struct windows *w)
{
	w->targets = 0;
	w->positions = w->position ? 0 : w->longest;
	w->modalities = 1;
	for (size_t i = 0; i < w->rows; i++) {
		w->targets += w->target[i] >= 0;
		if (w->position && (size_t)w->position[i] >= w->positions)
			w->positions = (size_t)w->position[i] + 1;
		if (w->modality && w->modality[i] >= w->modalities)
			w->modalities = (size_t)w->modality[i] + 1;
	}
}

struct windows windows_cut(const char *name, const struct tokens *t, enum windows_convention convention,
	size_t ctx)
{
	struct cut k = { .name = name, .t = t, .c = &conventions[convention], .ctx = ctx, .w.name = name };
	size_t texts = t->sequences ? t->sequences : 1, most = t->n / (ctx - 1) + texts;

	k.lead = k.c->lead && t->add_bos;
	if (k.c->each && t->bos < 0)
		die("%s: /tokens: names no bos_id, --convention %s needs one; gptq does not", name,
			windows_conventions[convention]);
	reserve(&k.w, t, t->n + most, most);
	for (size_t i = 0; i < t->sequences; i++)
		cut_text(&k, (size_t)t->sequence[i], least((size_t)t->sequence[i + 1], t->n), true);
	if (!t->sequences)
		cut_text(&k, 0, t->n, false);
	if (!k.w.n)
		die("%s: /tokens: %zu ids do not fill one window of --ctx %zu", name, t->n, ctx);
	count(&k.w);
	return k.w;
}

struct batch windows_batch(const struct windows *w, size_t first, size_t n, struct sequence own[n])
{
	size_t row = w->sequence[first].first;
	struct batch y = { .sequences = n, .sequence = own };

	for (size_t i = 0; i < n; i++) {
		own[i] = w->sequence[first + i];
		own[i].first -= row;
		y.rows += own[i].length;
	}
	y.position = w->position ? w->position + row : NULL;
	y.index = w->index ? w->index + row : NULL;
	y.modality = w->modality ? w->modality + row : NULL;
	return y;
}

size_t windows_within(const struct windows *w, size_t first, size_t tokens)
{
	size_t n = 1, rows = w->sequence[first].length;

	while (first + n < w->n && rows + w->sequence[first + n].length <= tokens)
		rows += w->sequence[first + n++].length;
	return n;
}

char *windows_place(const struct windows *w, size_t row)
{
	size_t i = 0;

	while (i + 1 < w->n && w->sequence[i + 1].first <= row)
		i++;
	return xformat("position %zu of window %zu", row - w->sequence[i].first + 1, i + 1);
}

void windows_shard(struct windows *w, struct shard s)
{
	size_t kept = 0, rows = 0;

	for (size_t k = s.i - 1; k < w->n; k += s.n, kept++) {
		struct sequence *q = &w->sequence[k];
		size_t from = q->first, length = q->length;

		memmove(w->id + rows, w->id + from, length * sizeof *w->id);
		memmove(w->target + rows, w->target + from, length * sizeof *w->target);
		if (w->position)
			memmove(w->position + rows, w->position + from, length * sizeof *w->position);
		if (w->index)
			memmove(w->index + rows, w->index + from, length * sizeof *w->index);
		if (w->modality)
			memmove(w->modality + rows, w->modality + from, length);
		w->sequence[kept] = (struct sequence){ .first = rows, .length = length };
		rows += length;
	}
	if (!kept)
		die("%s: --shard %zu/%zu has no window: there are %zu", w->name, s.i, s.n, w->n);
	w->n = kept;
	w->rows = rows;
	w->bytes = 0;	/* of what is left: not known */
	count(w);
}

void windows_free(struct windows *w)
{
	free(w->sequence);
	free(w->id);
	free(w->target);
	free(w->position);
	free(w->index);
	free(w->modality);
	*w = (struct windows){ 0 };
}
