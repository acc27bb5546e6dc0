/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sensitivity.h -- KL divergence of a model from itself with some layers quantized
 *
 * For each unit u and candidate c (eval/unit.h)
 *	kl[u][c] = mean over targets of KL(model || model whose layers of u are those of c)
 *
 * The model runs once, block by block. At the block of a unit, each candidate's layers take the place of the
 * model's, and the hidden states after the block are kept. They pass all later blocks unchanged. So the
 * time is that of about n c/2 models for n units and c candidates, and the files are read once.
 * A single layer that is rotated, while others with its input are not, is measured as its effective weight,
 * rotated back (model/dense.h).
 *
 * Calling sequence: sensitivity_open(); sensitivity_measure(), sensitivity_of_plan(), or both;
 * sensitivity_close(). Bad data is a fatal error.
 */
#ifndef EVAL_SENSITIVITY_H
#define EVAL_SENSITIVITY_H
#include <stddef.h>
#include "eval/unit.h"
#include "forward/execution.h"
#include "forward/forward.h"
#include "forward/head.h"
#include "forward/windows.h"

struct sensitivity {
	const struct units *units;
	const struct config *config;
	const struct windows *windows;
	size_t memory;			/* bytes of hidden states that are kept in memory */
	struct execution execution;
	struct forward *model;		/* hidden states of the model; after a measurement, its outputs */
	struct head head;
	struct layer *layer;		/* [layers] of a candidate in the current block */
	float **dense;			/* NULL, or the weight of such a layer, rotated back */
	size_t layers;
};

/* All arguments must outlive the result. */
struct sensitivity sensitivity_open(const struct units *u, const struct config *c, const struct execution *e,
	const struct windows *w, size_t memory);
void sensitivity_close(struct sensitivity *s);

/* kl[u][k] of the first `candidates` candidates; 0 for layers that are not quantized. */
void sensitivity_measure(struct sensitivity *s, size_t candidates,
	double kl[s->units->n][s->units->candidates]);
/* The mean KL of the model whose units are of these candidates. se: its standard error over windows. */
double sensitivity_of_plan(struct sensitivity *s, const size_t candidate[s->units->n], double *se);
#endif
