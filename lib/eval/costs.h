/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * costs.h -- costs of the choices of a plan: cost[u][c] of taking unit u from candidate c, a KL divergence
 *
 * They come from sensitivity_measure() (eval/sensitivity.h), or from a file.
 */
#ifndef EVAL_COSTS_H
#define EVAL_COSTS_H
#include "eval/unit.h"
#include "io/part.h"

/*
 * Costs of all candidates from those of the first one and from output errors, for units of one layer:
 *	cost[u][c] = cost[u][0] · e[u][c]/e[u][0],  e = tr(E H Eᵀ)/tr(W H Wᵀ)
 * Of the layers of experts, e is the sum. Fatal error: e[u][0] is 0, or a Hessian is missing.
 */
void costs_scale(const struct units *u, const struct part *hessian, double cost[]);

/* Reads the file of costs_write(). Fatal error if it is of other units, or if candidates have other sizes. */
void costs_read(const char *path, const struct units *u, double cost[]);
/* Writes /unit and /candidate, names; /size int64 and /kl f64 [units][candidates]. */
void costs_write(struct output *out, const struct units *u, const double cost[]);
#endif
