/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * run.h -- runs models over the same windows as they stream in, up to their heads
 *
 * Calling sequence: run_open() for each model; run_match() for two models; run_begin() for each;
 * run_to_heads(); logits_score() or logits_tiles() (forward/logits.h); run_close(). run_score() does the last
 * four for one model.
 *
 * The models advance alternately, by one part each. So each may come from a pipe, and only one block of each
 * is in memory. Bad data is a fatal error.
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
	struct execution execution;	/* run_begin() sets its rows and modalities */
	struct forward *forward;
	struct head head;
	bool ended;			/* the current part has the head */
	bool stored;			/* the file has hidden states in place of blocks (states.h) */
	struct output *states;		/* NULL, or receives the hidden states and the head */
};

/* Opens a model and reads its first part, with the config. path NULL or "-": standard input. kv: the option
 * of the format of keys and values. */
struct run *run_open(const char *path, enum compute_type type, const struct cache_format *kv);
/* run_open() of a model, or of a file of run_store(). */
struct run *run_open_reference(const char *path, enum compute_type type);
/* For --as-reference, before run_begin(): the run writes the hidden states of the windows and the head to
 * `out`. Fatal error if the windows have more than text. */
void run_store(struct run *r, struct output *out, const struct windows *w);
/* Fatal error unless both models have the same size of vocabulary, as logits_tiles() needs. */
void run_match(const struct run *model, const struct run *reference);
/* memory: bytes of hidden states that are kept in memory. The windows must outlive r. */
void run_begin(struct run *r, const struct windows *w, size_t memory);
/* Runs all parts up to the heads. */
void run_to_heads(size_t models, struct run *const r[models]);
/* Runs a model over the windows and closes it. nll, likeliest: as in logits_score(). */
void run_score(struct run *r, const struct windows *w, size_t memory, double nll[w->targets],
	uint8_t *likeliest);
/* Reads the rest of the input, so that a truncated stream is detected, then frees. */
void run_close(struct run *r);
#endif
