/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ldlq.h -- quantization of linear layers in formats with a code for several weights (BlockLDLQ)
 *
 * Blocks of columns, as wide as a code, are quantized one by one. With E = W - Ŵ and the factor R of the
 * second moments of the inputs (solver/factor.h), block k is
 *	Ŵ_k = Q( W_k + Σ_{i<k} E_i R_ik R_kk⁻¹ ),
 * where Q is the nearest code. This is GPTQ by blocks: after each block W_{>k} -= (W_k - Ŵ_k) U_kk⁻¹ U_k,>k,
 * with U = R⁻¹. Without compensation Ŵ_k = Q(W_k).
 *
 * A scale is the root mean square of its weights, before compensation, divided by a constant of the format.
 * Columns stay in storage order. Dead channels are quantized like others.
 *
 * Calling sequence: that of solver.h, with ldlq_workspace() and ldlq_run(), for one layer.
 *
 * Source: QuIP# (Tseng et al., 2024), section 4.1.
 */
#ifndef SOLVER_LDLQ_H
#define SOLVER_LDLQ_H
#include <stdbool.h>
#include <stddef.h>
#include "solver/solver.h"

/* Whether the columns of each code have one scale under this group: channel, tensor, or a multiple of the
 * columns of a code. */
bool ldlq_group_fits(const struct format *f, long group);
/* Bytes for the current number of `threads`. */
size_t ldlq_workspace(const struct solver_layer *layer);
/* Sets codes and report. Of the settings it reads storage, group, compensate, damp and no_error. The result
 * does not depend on `threads`. BLAS must use one thread (linalg_init()). */
void ldlq_run(struct solver_layer *layer, void *workspace);
#endif
