/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cross.c -- see cross.h */
#include "calib/cross.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/layer_ref.h"

/* The sets of extra tokens of the pair: those that reach the expert in the model, and those of the prior. */
enum { REACHED, FIRST };

struct cross *cross_open(const struct config *config, enum half_type type, struct sums *input,
	struct sums *extra)
{
	const size_t n = config_inputs(config);
	struct cross *c = xalloc(1, sizeof *c);

	*c = (struct cross){ config, type, input, extra, xalloc(n, sizeof *c->held),
		xalloc(n, sizeof *c->held_extra) };
	for (size_t i = 0; i < n; i++) {
		if (input[i].in)
			sums_pair(&input[i]);
		if (extra[i].in)
			sums_pair(&extra[i]);
	}
	return c;
}

static void drop(struct held *h)
{
	free(h->x), free(h->token);
	*h = (struct held){ 0 };
}

void cross_close(struct cross *c)
{
	for (size_t i = 0; i < config_inputs(c->config); i++)
		drop(&c->held[i]), drop(&c->held_extra[i]);
	free(c->held), free(c->held_extra);
	free(c);
}

static void hold(struct held *h, size_t in, size_t rows, const int32_t token[], const float *x)
{
	drop(h);
	h->rows = rows;
	if (in) {
		h->x = xalloc(rows, in * sizeof *h->x);
		memcpy(h->x, x, rows * in * sizeof *h->x);
	}
	if (token) {
		h->token = xalloc(rows, sizeof *h->token);
		memcpy(h->token, token, rows * sizeof *h->token);
	}
}

void cross_hold(struct cross *c, size_t i, size_t rows, const int32_t token[], const float *x)
{
	hold(&c->held[i], c->input[i].in, rows, token, x);
}

void cross_hold_extra(struct cross *c, size_t i, size_t rows, const float *x)
{
	hold(&c->held_extra[i], c->extra[i].in, rows, NULL, x);
}

static void on_input(void *arg, size_t block, enum projection_name p, const struct batch *batch, size_t first,
	size_t rows, size_t in, const float *z)
{
	struct cross *c = arg;
	const size_t i = config_input(c->config, block, p, 0);

	(void)first, (void)rows, (void)in;	/* whole batches */
	if (c->held[i].x)
		sums_add_cross(&c->input[i], c->type, batch, z, c->held[i].x);
	drop(&c->held[i]);
}

static size_t extra_tokens(void *arg, size_t block, size_t expert, int set, const int32_t **token)
{
	const struct cross *c = arg;
	const size_t down = config_input(c->config, block, PROJECTION_EXPERT_DOWN, expert);
	const size_t gate_up = config_input(c->config, block, PROJECTION_EXPERT_GATE_UP, expert);
	/* the same tokens; a stage holds one of them */
	const struct held *h = &c->held[c->held[down].rows ? down : gate_up];

	if (set == FIRST)
		return c->held_extra[down].rows;
	*token = h->token;
	return h->rows;
}

static void on_extra_input(void *arg, size_t block, enum projection_name p, size_t expert, int set,
	size_t rows, size_t in, const float *z)
{
	struct cross *c = arg;
	const size_t i = config_input(c->config, block, p, expert);
	struct held *h = set == FIRST ? &c->held_extra[i] : &c->held[i];
	const struct sequence all = { .length = rows };
	const struct batch batch = { .rows = rows, .sequences = 1, .sequence = &all };

	(void)in;
	if (h->x)
		sums_add_cross(set == FIRST ? &c->extra[i] : &c->input[i], c->type, &batch, z, h->x);
	drop(h);
}

struct observer cross_observer(struct cross *c)
{
	return (struct observer){ .on_input = on_input, .arg = c, .extra_tokens = extra_tokens,
		.on_extra_input = on_extra_input };
}
