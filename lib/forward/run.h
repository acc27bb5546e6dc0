/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * run.h -- models run over the same windows as they stream in, up to their heads
 *
 * The models advance in step, a part of one, then a part of the next, so that
 * each may come from a pipe and only a block of each is at hand. Every function
 * dies on bad data.
 */
#ifndef FORWARD_RUN_H
#define FORWARD_RUN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "forward/execution.h"
#include "forward/forward.h"
#include "forward/head.h"
#include "io/part.h"
#include "model/config.h"

struct run {
	struct input *in;
	struct part *part;		/* the current part */
	const struct config *config;
	struct execution execution;	/* its rows and modalities by run_begin() */
	struct forward *forward;
	struct head head;
	bool ended;			/* at the head */
};

/* The first part, and so the config, is read. path NULL or "-": standard input. kv: what an option
 * says of keys and values. */
struct run *run_open(const char *path, enum compute_type type, const struct cache_format *kv);
/* Dies unless both have one size of vocabulary, as logits_tiles() expects it. */
void run_match(const struct run *model, const struct run *reference);
/* memory: bytes of hidden states that stay in memory. windows must outlive it. */
void run_begin(struct run *r, const struct windows *w, size_t memory);
/* All parts up to the heads, for logits_score() or logits_tiles(). */
void run_to_heads(size_t models, struct run *const r[models]);
/* Runs it over the windows as above, -log p of each target as logits_score(), and closes it. likeliest: as
 * there, or NULL. */
void run_score(struct run *r, const struct windows *w, size_t memory, double nll[w->targets],
	uint8_t *likeliest);
/* Reads what follows the head first: a stream that is cut short there is an error too. */
void run_close(struct run *r);
#endif
