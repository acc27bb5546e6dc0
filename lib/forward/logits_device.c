/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * logits_device.c -- see logits_private.h
 *
 * The head is a projection of one layer. A group of rows at a time, logits are downloaded, and the threads of
 * the processor visit them.
 */
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/device_open.h"
#include "forward/logits_private.h"
#include "forward/projection_device.h"

enum { NUMBERS = 1 << 27, ROWS_MAX = 4096, VISITED = 16 };	/* NUMBERS: logits at a time */

struct device_head {
	const struct forward *f;
	struct projection p;
	float cap;
	float *x, *y;			/* on the device: hidden states, logits */
	float *logits;
};

static struct device_head head_on_device(const struct forward *f, const struct head *h, size_t rows)
{
	const struct execution *e = h->execution;
	struct device_head y = { .f = f, .cap = (float)h->config->logit_cap,
		.p = { .name = PROJECTION_HEAD, .type = e->compute_type, .device = e->device,
			.in = f->hidden.width, .out = h->config->vocab, .layers = 1 } };

	y.p.layer[0] = h->layer;
	y.p.bias = (float *)(uintptr_t)h->layer.linear.bias;
	projection_upload(&y.p, 0, 1);
	y.x = device_memory(e->device, rows, y.p.in * sizeof *y.x);
	y.y = device_memory(e->device, rows, y.p.out * sizeof *y.y);
	y.logits = xalloc(rows, y.p.out * sizeof *y.logits);
	e->device->pin(y.logits, rows * y.p.out * sizeof *y.logits);
	return y;
}

static void head_off_device(struct device_head *h)
{
	const struct device *d = h->p.device;

	d->unpin(h->logits);
	device_free(d, h->x), device_free(d, h->y);
	free(h->logits);
	projection_drop(&h->p, true);
}

/* Logits of rows first .. first + m - 1. */
static void compute(const struct device_head *h, size_t first, size_t m)
{
	const struct device *d = h->p.device;

	d->upload(h->x, h->f->hidden.x + first * h->p.in, m * h->p.in * sizeof *h->x);
	projection_device_apply(&h->p, m, h->p.out, h->y, h->x, false);
	d->download(h->logits, h->y, m * h->p.out * sizeof *h->y);
}

/* Caps the logits of rows i .. i + m - 1 in memory, and visits them as rows first + i and following. */
static void visit_rows(size_t models, struct device_head h[models], size_t first, size_t i, size_t m,
	logits_visit *visit, void *arg)
{
	const size_t vocab = h->p.out;
	const float *y[LOGITS_MODELS];

	for (size_t k = 0; k < models; k++) {
		float *own = h[k].logits + i * vocab;

		for (size_t j = 0; h[k].cap > 0 && j < m * vocab; j++)
			own[j] = h[k].cap * tanhf(own[j] / h[k].cap);
		y[k] = own;
	}
	visit(arg, first + i, m, 0, vocab, y);
}

void logits_device_tiles(size_t models, struct forward *const f[models], const struct head *const h[models],
	logits_visit *visit, void *arg)
{
	const size_t rows = f[0]->hidden.rows, vocab = h[0]->config->vocab;
	const size_t each = min(rows, min(ROWS_MAX, max(VISITED, NUMBERS / vocab)));
	struct device_head head[LOGITS_MODELS];

	for (size_t k = 0; k < models; k++)
		head[k] = head_on_device(f[k], h[k], each);
	for (size_t first = 0, m; first < rows; first += m) {
		m = min(each, rows - first);
		progress("head", first, rows);
		for (size_t k = 0; k < models; k++)
			compute(&head[k], first, m);
		#pragma omp parallel for num_threads(threads) schedule(dynamic)
		for (size_t i = 0; i < m; i += VISITED)
			visit_rows(models, head, first, i, min(VISITED, m - i), visit, arg);
	}
	for (size_t k = 0; k < models; k++)
		head_off_device(&head[k]);
}
