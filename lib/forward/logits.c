/* SPDX-License-Identifier: GPL-3.0-or-later */
/* logits.c -- see logits.h */
#include "forward/logits.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"
#include "forward/logits_private.h"
#include "forward/score.h"

/* Constants, not options, since results depend on them: rows and entries of the vocabulary of a tile of
 * logits, and entries whose weights are prepared at once. */
enum { HEAD_ROWS = 512, HEAD_COLUMNS = 512, HEAD_WEIGHTS = 8192 };

/* Arguments of logits_tiles(), and the current weights of each model. */
struct tiles {
	size_t models;
	struct forward *const *f;
	const struct head *const *h;
	struct product product[LOGITS_MODELS];
	logits_visit *visit;
	void *arg;
};

/* Rows i .. i + m - 1, entries first .. first + n - 1, whose weights are in t->product. */
static void tile_rows(const struct tiles *t, size_t i, size_t m, size_t first, size_t n, float *logits[],
	void *workspace[])
{
	const void *x[LOGITS_MODELS];

	for (size_t k = 0; k < t->models; k++) {
		const struct forward *f = t->f[k];
		size_t hidden = f->hidden.width;

		x[k] = product_input(&t->product[k], m, workspace[k],
			(const float (*)[hidden])(f->hidden.x + i * hidden),
			f->windows->modality ? f->windows->modality + i : NULL);
	}
	for (size_t v = 0, wide; v < n; v += wide) {
		wide = min(HEAD_COLUMNS, n - v);
		for (size_t k = 0; k < t->models; k++)
			head_logits(t->h[k], &t->product[k], first + v, wide, m, (float (*)[wide])logits[k],
				x[k]);
		t->visit(t->arg, i, m, first + v, wide, (const float *const *)logits);
	}
}

/* All rows, entries first .. first + n - 1. */
static void tile_columns(const struct tiles *t, size_t first, size_t n)
{
	size_t rows = t->f[0]->hidden.rows;

	#pragma omp parallel num_threads(threads_for((rows + HEAD_ROWS - 1) / HEAD_ROWS))
	{
		float *logits[LOGITS_MODELS];
		void *workspace[LOGITS_MODELS];

		for (size_t k = 0; k < t->models; k++) {
			logits[k] = xalloc(HEAD_ROWS * HEAD_COLUMNS, sizeof *logits[k]);
			workspace[k] = xalloc(product_workspace(&t->product[k], HEAD_ROWS), 1);
		}
		#pragma omp for schedule(dynamic)
		for (size_t i = 0; i < rows; i += HEAD_ROWS)
			tile_rows(t, i, min(HEAD_ROWS, rows - i), first, n, logits, workspace);
		for (size_t k = 0; k < t->models; k++)
			free(logits[k]), free(workspace[k]);
	}
}

/* The first of the models that has the head of model k. */
static size_t first_with_head(const struct head *const h[], size_t k)
{
	size_t i = 0;

	while (h[i] != h[k])
		i++;
	return i;
}

void logits_tiles(size_t models, struct forward *const f[models], const struct head *const h[models],
	logits_visit *visit, void *arg)
{
	size_t vocab = f[0]->config->vocab;
	struct tiles t = { .models = models, .f = f, .h = h, .visit = visit, .arg = arg };
	void *weight[LOGITS_MODELS];

	for (size_t k = 0; k < models; k++)
		forward_head(f[k], h[k], NULL);
	if (f[0]->execution->device) {
		logits_device_tiles(models, f, h, visit, arg);
		return;
	}
	for (size_t k = 0; k < models; k++)
		weight[k] = first_with_head(h, k) < k ? NULL :
			xalloc(head_workspace(h[k], min(HEAD_WEIGHTS, vocab)), 1);
	for (size_t v = 0; v < vocab; v += HEAD_WEIGHTS) {
		progress("head", v, vocab);
		for (size_t k = 0; k < models; k++)
			t.product[k] = !weight[k] ? t.product[first_with_head(h, k)] :
				head_product(h[k], v, min(HEAD_WEIGHTS, vocab - v), weight[k]);
		tile_columns(&t, v, min(HEAD_WEIGHTS, vocab - v));
	}
	for (size_t k = 0; k < models; k++)
		free(weight[k]);
}

struct scored { const struct windows *windows; struct score *score; };

static void score_tile(void *arg, size_t row, size_t m, size_t first, size_t n, const float *const y[])
{
	struct scored *s = arg;

	for (size_t k = 0; k < m; k++) {
		int32_t target = s->windows->target[row + k];

		if (target >= 0)
			score_add(&s->score[row + k], n, y[0] + k * n, first, (size_t)target);
	}
}

void logits_score(struct forward *f, const struct head *h, double nll[f->windows->targets],
	uint8_t *likeliest)
{
	size_t rows = f->hidden.rows, k = 0;
	struct scored s = { f->windows, xalloc(rows, sizeof *s.score) };

	for (size_t i = 0; i < rows; i++)
		s.score[i] = score_begin();
	logits_tiles(1, &f, &h, score_tile, &s);
	for (size_t i = 0; i < rows; i++) {
		if (f->windows->target[i] < 0)
			continue;
		if (likeliest)
			likeliest[k] = score_likeliest(&s.score[i]);
		nll[k++] = score_nll(&s.score[i], f->name, f->windows, i);
	}
	free(s.score);
}
