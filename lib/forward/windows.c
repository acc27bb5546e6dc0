/* SPDX-License-Identifier: GPL-3.0-or-later */
/* windows.c -- see windows.h */
#include "forward/windows.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/random.h"
#include "base/size.h"

enum { LARGEST_DEFAULT = 2048 };

struct convention {
	/* Place of a BOS. TEXT: before the text, if the tokenizer adds one. WINDOW: before the ids of each
	 * window. REPLACES: before the text and in place of each window's first id, if the tokenizer adds
	 * one. */
	enum { BOS_TEXT, BOS_WINDOW, BOS_REPLACES } bos;
	bool half;		/* targets are in the second half of a window only */
	bool slides;		/* windows overlap, up to the last id; each id is a target once */
	bool plain;		/* needs one text in storage order; leaves out a final newline */
};

static const struct convention conventions[] = {
	[WINDOWS_GPTQ] = { BOS_TEXT, false, false, false },
	[WINDOWS_BOS] = { BOS_WINDOW, false, false, false },
	[WINDOWS_LLAMA_CPP] = { BOS_REPLACES, true, false, true },
	[WINDOWS_SLIDING] = { BOS_TEXT, false, true, false },
};

const char *const windows_conventions[] = { [WINDOWS_GPTQ] = "gptq", [WINDOWS_BOS] = "bos",
	[WINDOWS_LLAMA_CPP] = "llama.cpp", [WINDOWS_SLIDING] = "sliding", NULL };

size_t windows_ctx(size_t ctx, size_t positions)
{
	if (!ctx)
		ctx = positions && positions < LARGEST_DEFAULT ? positions : LARGEST_DEFAULT;
	if (ctx < 2)
		die("the model has %zu positions, expected at least 2 for a window", positions);
	if (positions && ctx > positions)
		warn("--ctx %zu is larger than the %zu positions of the model", ctx, positions);
	return ctx;
}

/* How texts are cut, and the windows so far. */
struct window_cut {
	const struct tokens *t;
	const struct convention *c;
	bool lead, each;		/* a BOS before the text; a BOS in every window */
	size_t ctx, step;		/* step: ids from window to window, with the BOS before the text */
	struct windows w;		/* without memory, windows are only counted */
};

/* A window: bos (0 or 1) BOS, then tokens from `from` on. Its targets are at places from `target` on. */
struct window { size_t row, length, bos, from, target; };

static void set_target(struct window_cut *k, const struct window *v, size_t place, size_t next)
{
	const size_t i = v->from + next - v->bos;

	if (k->t->feature && k->t->feature[i] >= 0)	/* of an image */
		return;
	k->w.target[v->row + place] = k->w.id[v->row + next];
	if (k->t->bytes)
		k->w.bytes += k->t->bytes[i];
}

/* Targets of a window whose tokens were reordered: the target of an index is the token of the next index. */
static void targets_by_index(struct window_cut *k, const struct window *v)
{
	size_t *place = xalloc(v->length, sizeof *place);

	for (size_t p = 0; p < v->length; p++)
		place[(size_t)k->w.index[v->row + p] + v->bos] = p;
	for (size_t i = 0; i + 1 < v->length; i++)
		set_target(k, v, place[i], place[i + 1]);
	free(place);
}

/* Sets modalities, features, indices and positions. */
static void place_tokens(struct window_cut *k, const struct window *v)
{
	const struct tokens *t = k->t;
	struct windows *w = &k->w;

	for (size_t p = 0; p < v->length; p++) {
		const bool bos = p < v->bos;
		size_t row = v->row + p, i = v->from + p - v->bos;

		if (w->modality)
			w->modality[row] = bos ? 0 : t->modality[i];
		if (w->feature)
			w->feature[row] = bos ? -1 : (int32_t)t->feature[i];
		if (w->index)
			w->index[row] = bos ? -1 : t->index[i];
		/* 0 for a BOS; without /position, the places before reordering */
		for (size_t a = 0; w->position && a < w->axes; a++)
			w->position[row * w->axes + a] = bos ? 0 : (int32_t)v->bos +
				(t->position ? t->position[i * w->axes + a] : t->index[i]);
	}
}

static void add_window(struct window_cut *k, struct window v)
{
	struct windows *w = &k->w;

	v.row = w->rows;
	w->rows += v.length;
	w->longest = v.length > w->longest ? v.length : w->longest;
	if (!w->sequence) {
		w->n++;
		return;
	}
	w->sequence[w->n++] = (struct sequence){ .first = v.row, .length = v.length };
	for (size_t p = 0; p < v.length; p++) {
		w->id[v.row + p] = p < v.bos ? k->t->bos : k->t->id[v.from + p - v.bos];
		w->target[v.row + p] = -1;
	}
	place_tokens(k, &v);
	if (w->index)
		targets_by_index(k, &v);
	for (size_t p = v.target; !w->index && p < v.length; p++)
		set_target(k, &v, p - 1, p);
}

/* Place of the first target in a window; later: it is not the first window of its text. */
static size_t first_target(const struct window_cut *k, bool later)
{
	if (k->c->half)
		return k->ctx / 2 + 1;
	return k->c->slides && later && k->step < k->ctx ? k->ctx - k->step : 1;
}

/* Cuts the text of tokens begin .. end - 1. tail: its last window may be shorter. */
static void cut_text(struct window_cut *k, size_t begin, size_t end, bool tail)
{
	const size_t all = end - begin + (k->each || k->lead);

	if (k->t->index && all > k->ctx)
		die("%s: /index: a sequence of %zu tokens was reordered and must fit into one window: "
			"expected --ctx %zu or more", k->w.name, end - begin, all);
	for (size_t at = begin; at < end; at += k->step) {
		const bool later = at > begin, bos = k->each || (k->lead && !later);
		const size_t from = at - (k->lead && later), n = min(k->ctx - bos, end - from);
		const struct window v = { 0, bos + n, bos, from, first_target(k, later) };

		if ((v.length < k->ctx && !tail) || v.length <= v.target)
			return;
		add_window(k, v);
		if (from + n == end)
			return;
	}
}

/* Cuts the first n tokens of the file, text by text. */
static void cut_all(struct window_cut *k, size_t n)
{
	const struct tokens *t = k->t;

	k->w.n = k->w.rows = 0;
	for (size_t i = 0; i < t->sequences; i++)
		cut_text(k, (size_t)t->sequence[i], min((size_t)t->sequence[i + 1], n), true);
	if (!t->sequences)
		cut_text(k, 0, n, k->c->slides);
}

/* Of each text, the places of whole windows in it and in all texts before it; free() it. */
static size_t *count_places(const struct window_cut *k, size_t texts)
{
	const struct tokens *t = k->t;
	const size_t ids = k->ctx - k->each;
	size_t *y = xalloc(texts, sizeof *y), all = t->n + k->lead;

	for (size_t i = 0; i < texts; i++) {
		if (t->sequences)
			all = min((size_t)t->sequence[i + 1], t->n) - (size_t)t->sequence[i] + k->lead;
		y[i] = (i ? y[i - 1] : 0) + (all < ids ? 0 : all - ids + 1);
	}
	return y;
}

/* The first of n sums, which do not fall, that is above x; the last one is. */
static size_t first_above(size_t n, const size_t sum[n], size_t x)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (sum[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Adds the window at a place, counted through all texts. */
static void add_drawn(struct window_cut *k, size_t texts, const size_t places[texts], size_t place)
{
	const size_t i = first_above(texts, places, place);
	const size_t begin = k->t->sequences ? (size_t)k->t->sequence[i] : 0;
	bool bos;

	place -= i ? places[i - 1] : 0;
	bos = k->each || (k->lead && !place);
	add_window(k, (struct window){ 0, k->ctx, bos, begin + place - (k->lead && place), 1 });
}

/* Draws `windows` windows. */
static void draw_all(struct window_cut *k, size_t windows, size_t texts, const size_t places[texts],
	size_t seed)
{
	const struct random_stream stream = random_open(seed, "windows");
	const size_t all = places[texts - 1];

	k->w.n = k->w.rows = 0;
	for (size_t i = 0; i < windows; i++)
		add_drawn(k, texts, places, min((size_t)(random_uniform(&stream, i) * (double)all), all - 1));
}

/* Allocates memory for the windows that were counted. */
static void reserve(struct windows *w, const struct tokens *t)
{
	w->sequence = xalloc(w->n, sizeof *w->sequence);
	w->id = xalloc(w->rows, sizeof *w->id);
	w->target = xalloc(w->rows, sizeof *w->target);
	w->axes = t->position && t->axes ? t->axes : 1;
	if (t->position || t->index)
		w->position = xalloc(w->rows, w->axes * sizeof *w->position);
	if (t->index)
		w->index = xalloc(w->rows, sizeof *w->index);
	if (t->modality)
		w->modality = xalloc(w->rows, sizeof *w->modality);
	if (t->feature)
		w->feature = xalloc(w->rows, sizeof *w->feature);
	w->images = t->images;
	w->image = t->image;
}

void windows_count(struct windows *w)
{
	w->targets = 0;
	w->positions = w->position ? 0 : w->longest;
	w->modalities = 1;
	for (size_t i = 0; i < w->rows; i++) {
		w->targets += w->target[i] >= 0;
		for (size_t a = i * w->axes; w->position && a < (i + 1) * w->axes; a++)
			if ((size_t)w->position[a] >= w->positions)
				w->positions = (size_t)w->position[a] + 1;
		if (w->modality && w->modality[i] >= w->modalities)
			w->modalities = (size_t)w->modality[i] + 1;
	}
}

/* Number of tokens without a final newline, for a convention that leaves it out. */
static size_t without_newline(const struct window_cut *k)
{
	const struct tokens *t = k->t;
	const char *const places[] = { t->sequence ? "/sequence" : NULL, t->position ? "/position" : NULL,
		t->index ? "/index" : NULL };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (places[i])
			die("%s: %s: --convention llama.cpp needs one text in its original order; "
				"gptq, bos and sliding do not", k->w.name, places[i]);
	if (k->ctx < 3)
		misuse("--ctx %zu leaves no target to --convention llama.cpp, expected at least 3", k->ctx);
	/* Without its newline the last token may become two. */
	if (t->newline == NEWLINE_WITHIN && (t->n + k->each + 1) % k->ctx < 2)
		die("%s: /tokens: the last id of the last window contains the final newline of the text "
			"and more; llama.cpp leaves the newline out: tokenize the text without it",
			k->w.name);
	return t->n - (t->newline == NEWLINE_ALONE);
}

/* A cut without windows. The convention sets the places of BOS and the step between windows. */
static struct window_cut cut_begin(const char *name, const struct tokens *t,
	enum windows_convention convention, size_t ctx, size_t stride)
{
	const struct convention *c = &conventions[convention];
	const bool each = c->bos == BOS_WINDOW || (c->bos == BOS_REPLACES && t->add_bos);
	const size_t step = c->slides ? stride ? stride : ctx / 2 : ctx - (c->bos == BOS_WINDOW);

	if (each && t->bos < 0)
		die("%s: /tokens: attribute bos_id is missing; --convention %s needs it, gptq does not",
			name, windows_conventions[convention]);
	if (step > ctx)
		misuse("--stride %zu leaves out tokens between windows of --ctx %zu", stride, ctx);
	return (struct window_cut){ .t = t, .c = c, .lead = c->bos == BOS_TEXT && t->add_bos,
		.each = each, .ctx = ctx, .step = step, .w.name = name };
}

/* Number of rows of each image; free() it. */
static size_t *image_rows(const struct windows *w)
{
	size_t *n = xalloc(max(w->images, 1), sizeof *n), *end = xalloc(max(w->images, 1), sizeof *end);

	for (size_t i = 0; i < w->images; i++)	/* of its features */
		end[i] = (i ? end[i - 1] : 0) + w->image[i].n;
	for (size_t row = 0; w->images && row < w->rows; row++)
		if (w->feature[row] >= 0)
			n[first_above(w->images, end, (size_t)w->feature[row])]++;
	free(end);
	return n;
}

/* Leaves out images without a row, and renumbers the features of the others. */
static void keep_images(struct windows *w)
{
	struct token_image *image = xalloc(max(w->images, 1), sizeof *image);
	size_t kept = 0, before = 0, gone = 0, *rows = image_rows(w);
	int32_t *shift = NULL;

	for (size_t i = 0; i < w->images; before += w->image[i++].n) {
		const size_t n = w->image[i].n;

		shift = xgrow(shift, before + n, sizeof *shift);
		for (size_t k = before; k < before + n; k++)
			shift[k] = (int32_t)gone;
		if (rows[i])
			image[kept++] = w->image[i];
		else
			gone += n;
	}
	if (kept < w->images) {
		for (size_t row = 0; row < w->rows; row++)
			if (w->feature[row] >= 0)
				w->feature[row] -= shift[w->feature[row]];
		free(w->own);
		w->image = w->own = image;
		w->images = kept;
	} else {
		free(image);
	}
	free(shift), free(rows);
}

struct windows windows_cut(const char *name, const struct tokens *t, enum windows_convention convention,
	size_t ctx, size_t stride)
{
	struct window_cut k = cut_begin(name, t, convention, ctx, stride);
	const size_t n = k.c->plain ? without_newline(&k) : t->n;

	cut_all(&k, n);
	if (!k.w.n)
		die("%s: /tokens: %zu ids do not fill one window of --ctx %zu", name, n, ctx);
	reserve(&k.w, t);
	cut_all(&k, n);
	windows_count(&k.w);
	keep_images(&k.w);
	return k.w;
}

/* Fatal error unless windows can be drawn. */
static void check_drawn(const char *name, const struct tokens *t, enum windows_convention convention)
{
	if (conventions[convention].slides || conventions[convention].plain)
		misuse("--random-windows: --convention %s reads a text from end to end; gptq and bos do not",
			windows_conventions[convention]);
	if (t->index)
		die("%s: /index: --random-windows needs texts in their original order", name);
	if (t->images)
		die("%s: /image_span: --random-windows needs tokens without images", name);
}

struct windows windows_draw(const char *name, const struct tokens *t, enum windows_convention convention,
	size_t ctx, size_t ids, size_t seed)
{
	const size_t texts = max(t->sequences, 1);
	struct window_cut k;
	size_t windows, *places;

	check_drawn(name, t, convention);
	k = cut_begin(name, t, convention, ctx, 0);
	ids = ids ? min(ids, t->n) : t->n;
	windows = (ids + k.lead) / (ctx - k.each);
	if (!windows)
		die("%s: /tokens: %zu ids do not fill one window of --ctx %zu", name, ids, ctx);
	places = count_places(&k, texts);
	if (!places[texts - 1])
		die("%s: /sequence: no sequence fills a window of --ctx %zu", name, ctx);
	draw_all(&k, windows, texts, places, seed);
	reserve(&k.w, t);
	draw_all(&k, windows, texts, places, seed);
	windows_count(&k.w);
	free(places);
	return k.w;
}

void windows_targets(const struct windows *w, size_t targets[w->n])
{
	for (size_t i = 0; i < w->n; i++) {
		const struct sequence *q = &w->sequence[i];

		targets[i] = 0;
		for (size_t row = q->first; row < q->first + q->length; row++)
			targets[i] += w->target[row] >= 0;
	}
}

struct batch windows_batch(const struct windows *w, size_t first, size_t n, struct sequence own[n])
{
	size_t row = w->sequence[first].first;
	struct batch y = { .sequences = n, .sequence = own };

	for (size_t i = 0; i < n; i++) {
		own[i] = w->sequence[first + i];
		own[i].first -= row;
		own[i].prefix -= own[i].past ? row : 0;
		y.rows += own[i].length;
	}
	y.axes = w->axes ? w->axes : 1;
	y.position = w->position ? w->position + row * y.axes : NULL;
	y.index = w->index ? w->index + row : NULL;
	y.modality = w->modality ? w->modality + row : NULL;
	return y;
}

size_t windows_within(const struct windows *w, size_t first, size_t tokens)
{
	size_t n = 0, rows = 0;

	for (size_t i = first, more; i < w->n; i += more) {
		size_t together = w->sequence[i].length;

		for (more = 1; i + more < w->n && w->sequence[i + more].past; more++)
			together += w->sequence[i + more].length;
		if (n && rows + together > tokens)
			break;
		n += more;
		rows += together;
	}
	return n;
}

char *windows_place(const struct windows *w, size_t row)
{
	size_t i = 0;

	while (i + 1 < w->n && w->sequence[i + 1].first <= row)
		i++;
	return xformat("position %zu of window %zu", row - w->sequence[i].first + 1, i + 1);
}

/* Moves window `from` to window `to`, which begins at row `row`; returns its number of rows. */
static size_t move_window(struct windows *w, size_t to, size_t row, size_t from)
{
	const size_t first = w->sequence[from].first, length = w->sequence[from].length;

	memmove(w->id + row, w->id + first, length * sizeof *w->id);
	memmove(w->target + row, w->target + first, length * sizeof *w->target);
	if (w->position)
		memmove(w->position + row * w->axes, w->position + first * w->axes,
			length * w->axes * sizeof *w->position);
	if (w->index)
		memmove(w->index + row, w->index + first, length * sizeof *w->index);
	if (w->modality)
		memmove(w->modality + row, w->modality + first, length);
	if (w->feature)
		memmove(w->feature + row, w->feature + first, length * sizeof *w->feature);
	w->sequence[to] = (struct sequence){ .first = row, .length = length };
	return length;
}

/* Keeps the first windows and rows. The number of modalities stays that of all windows. */
static void shorten(struct windows *w, size_t windows, size_t rows)
{
	const size_t modalities = w->modalities;

	w->n = windows;
	w->rows = rows;
	windows_count(w);
	w->modalities = modalities;
}

void windows_shard(struct windows *w, struct shard s)
{
	size_t kept = 0, rows = 0, *all = image_rows(w), *own;

	for (size_t k = s.i - 1; k < w->n; k += s.n)
		rows += move_window(w, kept++, rows, k);
	if (!kept)
		die("%s: --shard %zu/%zu has no window: the file has %zu", w->name, s.i, s.n, w->n);
	shorten(w, kept, rows);
	w->bytes = 0;	/* unknown for the windows that are left */
	own = image_rows(w);
	for (size_t i = 0; i < w->images; i++)
		if (own[i] && own[i] < all[i])
			die("%s: --shard %zu/%zu: an image is in windows of several shards, expected "
				"sequences that fit into a window (--ctx)", w->name, s.i, s.n);
	keep_images(w);
	free(all), free(own);
}

struct windows windows_scored(struct windows w)
{
	size_t kept = 0, rows = 0, *targets = xalloc(w.n, sizeof *targets);

	windows_targets(&w, targets);
	for (size_t k = 0; k < w.n; k++)
		if (targets[k])
			rows += move_window(&w, kept++, rows, k);
	free(targets);
	if (!kept)
		die("%s: /image_span: no window of --ctx has a token of text to predict", w.name);
	if (kept == w.n)
		return w;
	warn("%s: /image_span: %zu of %zu windows have no token of text to predict and are left out",
		w.name, w.n - kept, w.n);
	shorten(&w, kept, rows);
	keep_images(&w);
	return w;
}

void windows_free(struct windows *w)
{
	free(w->sequence);
	free(w->id);
	free(w->target);
	free(w->position);
	free(w->index);
	free(w->modality);
	free(w->feature);
	free(w->own);
	*w = (struct windows){ 0 };
}
