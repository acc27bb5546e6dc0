/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unit_kl.h -- kl[u][c] of units and candidates: from output errors, or in a file
 *
 * kl[u][c] is the KL of the model whose layers of unit u are those of candidate c. sensitivity_measure()
 * (eval/sensitivity.h) measures it.
 */
#ifndef EVAL_UNIT_KL_H
#define EVAL_UNIT_KL_H
#include "eval/unit.h"
#include "io/part.h"

/*
 * The KL of all candidates from that of the first one and from output errors, for units of one layer:
 *	kl[u][c] = kl[u][0] · e[u][c]/e[u][0],  e = tr(E H Eᵀ)/tr(W H Wᵀ)
 * Of the layers of experts, e is the sum. Fatal error: e[u][0] is 0, or a Hessian is missing.
 */
void unit_kl_scale(const struct units *u, const struct part *hessian, double kl[]);

/* Reads the file of unit_kl_write(), of these candidates and others, in any order. Fatal error if it is of
 * other units, a candidate has other sizes or formats than all of the file, or several of the file have those
 * of a candidate and none was made by the same commands. A warning if only one has, and other commands made
 * it. */
void unit_kl_read(const struct part *file, const struct units *u, double kl[]);
/* Writes /unit and /candidate, names; /commands_sha256, the digest of the histories of each candidate; /size
 * int64 and /kl f64 [units][candidates]; /lines, unit_lines() of each unit and candidate, an empty line after
 * each. Closes the file. */
void unit_kl_write(struct output *out, const struct units *u, const double kl[]);
#endif
