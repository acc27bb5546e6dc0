/* SPDX-License-Identifier: GPL-3.0-or-later */
/* forward.c -- a model run over all windows, part by part; see forward.h */
#include "model/forward.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/scratch.h"
#include "base/thread.h"
#include "num/linalg.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Constants, not options: results depend on them. */
enum { CHUNK = 2048, HEAD_ROWS = 512, HEAD_COLUMNS = 8192, ROWS = 16, FEW = 1 << 16 };

/* ---- hidden states ---- */

static float *map_file(size_t bytes)
{
	int fd = scratch_file(), e;
	void *p;

	e = posix_fallocate(fd, 0, (off_t)bytes);	/* now, or a full disk is a signal later */
	errno = e;
	if (e)
		die("%s: no room for %zu MiB of hidden states (--memory, TMPDIR):", scratch_folder(), bytes >> 20);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("%s: cannot map %zu MiB of hidden states:", scratch_folder(), bytes >> 20);
	close(fd);
	return p;
}

struct hidden hidden_make(size_t rows, size_t width, size_t limit)
{
	struct hidden h = { .rows = rows, .width = width };

	if (__builtin_mul_overflow(rows, width, &h.bytes) || __builtin_mul_overflow(h.bytes, sizeof *h.x, &h.bytes) ||
	    h.bytes > PTRDIFF_MAX)
		die("hidden states of %zu tokens are too large", rows);
	h.mapped = h.bytes > limit;
	h.x = h.mapped ? map_file(h.bytes) : xalloc(rows * width, sizeof *h.x);
	return h;
}

void hidden_free(struct hidden *h)
{
	if (h->mapped)
		munmap(h->x, h->bytes);
	else
		free(h->x);
	*h = (struct hidden){ 0 };
}

/* ---- the run ---- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct forward *forward_open(const struct config *c, const struct windows *w, size_t memory)
{
	struct forward *f = xalloc(1, sizeof *f);

	f->config = c;
	f->windows = w;
	f->chunk = least(w->n, w->ctx < CHUNK ? CHUNK / w->ctx : 1);
	f->hidden = hidden_make(w->n * w->ctx, c->hidden, memory);
	f->work = work_make(c, f->chunk * w->ctx, w->ctx);
	return f;
}

void forward_close(struct forward *f)
{
	hidden_free(&f->hidden);
	work_free(&f->work);
	free(f);
}

void embed_tokens(const struct layer *embedding, size_t n, float x[n][embedding->linear.in], const int32_t id[n])
{
	const struct linear *l = &embedding->linear;

	for (size_t i = 0; i < n; i++)
		if (id[i] < 0 || (size_t)id[i] >= l->out)
			die("%s: token id %d is not in the vocabulary of %zu", embedding->path, id[i], l->out);
	#pragma omp parallel for num_threads(threads) if (n * l->in > FEW) schedule(static, ROWS)
	for (size_t i = 0; i < n; i++)
		linear_weight(l, (size_t)id[i], 1, &x[i]);
}

void embed_positions(const struct layer *position, size_t n, float x[n][position->linear.in], size_t past, size_t period)
{
	const struct linear *l = &position->linear;
	float *row = xalloc(l->in, sizeof *row);

	if (past + least(n, period) > l->out)
		die("%s: holds %zu positions, the context needs %zu: a smaller --ctx", position->path, l->out,
			past + least(n, period));
	for (size_t p = 0; p < least(n, period); p++) {
		linear_weight(l, past + p, 1, (float (*)[l->in])row);
		for (size_t i = p; i < n; i += period)
			for (size_t j = 0; j < l->in; j++)
				x[i][j] += row[j];
	}
	free(row);
}

void forward_block(struct forward *f, const struct block *b, bool keep, const struct observer *observer)
{
	size_t ctx = f->windows->ctx, hidden = f->config->hidden, n = f->windows->n;
	float *copy = keep ? NULL : xalloc(f->chunk * ctx, hidden * sizeof *copy);

	for (size_t i = 0; i < n; i += f->chunk) {
		size_t windows = least(f->chunk, n - i);
		float *x = f->hidden.x + i * ctx * hidden;

		progress(f->config->arch->blocks + 1, b->index * n + i, f->config->blocks * n);
		if (!keep)
			x = memcpy(copy, x, windows * ctx * hidden * sizeof *x);
		block_forward(b, &f->work, windows, ctx, (float (*)[hidden])x, NULL, observer);
	}
	free(copy);
}

/* What of the model stands in this part: a part of a file may see the rest of the file too. */
struct found {
	const struct config *config;
	bool embedding, position, head;
	bool *block;			/* [blocks] */
};

static void look_for(void *arg, const char *path)
{
	struct found *y = arg;
	const struct architecture *arch = y->config->arch;
	size_t block;

	y->embedding |= !strcmp(path, arch->embedding);
	y->position |= arch->position && !strcmp(path, arch->position);
	y->head |= !strcmp(path, arch->final_norm);
	if (!config_block(y->config, path, &block))
		return;
	if (block >= y->config->blocks)
		die("%s: the config knows %zu blocks", path, y->config->blocks);
	y->block[block] = true;
}

static void embed(struct forward *f, const struct image *image, const struct found *found)
{
	const struct config *c = f->config;
	size_t n = f->hidden.rows, hidden = c->hidden;
	float (*x)[hidden] = (float (*)[hidden])f->hidden.x;
	struct layer l;

	if (found->embedding) {
		l = layer_read(image, c->arch->embedding, c->vocab, hidden);
		embed_tokens(&l, n, x, f->windows->id);
		layer_free(&l);
		f->embedded = true;
	}
	if (found->position) {
		if (!f->embedded)
			die("%s: %s: comes before the embeddings", image_name(image), c->arch->position);
		l = layer_read(image, c->arch->position, 0, hidden);
		embed_positions(&l, n, x, 0, f->windows->ctx);
		layer_free(&l);
		f->placed = true;
	}
}

static void run_block(struct forward *f, const struct image *image, size_t i, const struct observer *observer)
{
	const struct config *c = f->config;
	struct block *b;

	if (!f->embedded || (c->arch->position && !f->placed))
		die("%s: %s/%zu: comes before the embeddings", image_name(image), c->arch->blocks, i);
	if (i != f->blocks)
		die("%s: %s/%zu: block %zu was expected; the model is not whole, or out of order", image_name(image),
			c->arch->blocks, i, f->blocks);
	b = block_read(image, c, i);
	forward_block(f, b, true, observer);
	block_free(b);
	f->blocks++;
}

bool forward_part(struct forward *f, const struct image *image, const struct observer *observer)
{
	const struct config *c = f->config;
	struct found found = { .config = c, .block = xalloc(c->blocks, sizeof *found.block) };

	image_groups(image, look_for, &found);
	embed(f, image, &found);
	for (size_t i = 0; i < c->blocks; i++)
		if (found.block[i])
			run_block(f, image, i, observer);
	if (found.head && f->blocks != c->blocks)
		die("%s: holds %zu blocks, the config says %zu", image_name(image), f->blocks, c->blocks);
	free(found.block);
	return found.head;
}

/* ---- the head ---- */

void forward_head(struct forward *f, const struct head *h, const struct observer *observer)
{
	size_t hidden = f->config->hidden, ctx = f->windows->ctx, n = f->windows->n;
	float (*x)[hidden] = (float (*)[hidden])f->hidden.x;

	for (size_t i = 0; i < n && !f->normed; i += f->chunk)
		head_input(h, least(f->chunk, n - i), ctx, &x[i * ctx], (const float (*)[hidden])&x[i * ctx], observer);
	f->normed = true;
}

/* Of one row so far: largest logit, Σ exp(logit - max), the target's logit. */
struct running { float max; double sum, target; };

static void run_row(struct running *r, size_t n, const float y[n], size_t first, int64_t target)
{
	float max = fmaxf(r->max, linalg_max(n, y));

	r->sum = r->sum * exp((double)r->max - (double)max) + linalg_sum_exp(n, y, max);
	r->max = max;
	if (target >= (int64_t)first && target < (int64_t)(first + n))
		r->target = (double)y[target - (int64_t)first];
}

/* Id that row i predicts, or -1 where it is no target. */
static int64_t target_of(const struct windows *w, size_t i)
{
	size_t window = i / w->ctx, p = i % w->ctx + 1;

	return p >= w->first[window] && p < w->end[window] ? w->id[i + 1] : -1;
}

static void score_tile(struct forward *f, const struct head *h, struct running *r, size_t first, size_t n, float *logits,
	const float *w)
{
	size_t hidden = f->config->hidden, rows = f->hidden.rows;

	for (size_t i = 0; i < rows; i += HEAD_ROWS) {
		size_t m = least(HEAD_ROWS, rows - i);

		head_logits(h, m, first, n, (float (*)[n])logits, (const float (*)[hidden])(f->hidden.x + i * hidden),
			(const float (*)[hidden])w);
		#pragma omp parallel for num_threads(threads) if (m * n > FEW) schedule(static, ROWS)
		for (size_t k = 0; k < m; k++)
			if (target_of(f->windows, i + k) >= 0)
				run_row(&r[i + k], n, logits + k * n, first, target_of(f->windows, i + k));
	}
}

void forward_score(struct forward *f, const struct head *h, double nll[f->windows->targets])
{
	size_t rows = f->hidden.rows, vocab = f->config->vocab, k = 0, wide = least(HEAD_COLUMNS, vocab);
	struct running *r = xalloc(rows, sizeof *r);
	float *logits = xalloc(HEAD_ROWS * wide, sizeof *logits), *own = xalloc(wide * f->config->hidden, sizeof *own);

	forward_head(f, h, NULL);
	for (size_t i = 0; i < rows; i++)
		r[i].max = -INFINITY;
	for (size_t v = 0; v < vocab; v += HEAD_COLUMNS) {
		size_t n = least(HEAD_COLUMNS, vocab - v);

		progress("head", v, vocab);
		score_tile(f, h, r, v, n, logits, head_weight(h, v, n, own));
	}
	for (size_t i = 0; i < rows; i++) {
		if (target_of(f->windows, i) < 0)
			continue;
		nll[k] = log(r[i].sum) + (double)r[i].max - r[i].target;
		if (!isfinite(nll[k]))
			die("the model gives %g as the likelihood of position %zu of window %zu: its numbers overflow",
				nll[k], i % f->windows->ctx + 1, i / f->windows->ctx);
		k++;
	}
	free(r);
	free(logits);
	free(own);
}

void forward_logits(struct forward *f, const struct head *h, size_t first, size_t n, float y[n][f->config->vocab])
{
	size_t hidden = f->config->hidden;
	float *x = xalloc(n * hidden, sizeof *x), *own = xalloc(f->config->vocab * hidden, sizeof *own);

	memcpy(x, f->hidden.x + first * hidden, n * hidden * sizeof *x);
	if (!f->normed)
		head_input(h, 1, n, (float (*)[hidden])x, (const float (*)[hidden])x, NULL);
	head_logits(h, n, 0, f->config->vocab, y, (const float (*)[hidden])x,
		(const float (*)[hidden])head_weight(h, 0, f->config->vocab, own));
	free(x);
	free(own);
}
