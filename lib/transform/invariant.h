/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invariant.h -- changes of weights that do not change the function of a model, in double
 *
 *	fold	moves a norm's gain α and shift β into the layers that read through it:
 *		W ← W diag(α), b ← b + W β; then the norm has gain 1 and no shift
 *
 *	centre	LayerNorm(x) = RMSNorm(M x) diag(α) + β, M = I - 11ᵀ/D (MQuant eq. 10). M is applied to
 *		everything that is added to the residual stream: W ← M W, b ← M b, rows e of embeddings
 *		← e M. With a norm after the residual branch, x + LayerNorm(f(x)), M is applied to the
 *		last layer of f. If norms also read the sum, M is applied to the shift too, and the gain
 *		must be one number. The norms become RMS norms.
 *
 *	rotate	x ← x Q. Columns of layers that read x, and rows of tables: W ← W Q. Rows of layers that
 *		compute x: W ← Qᵀ W, b ← b Q. x is the residual stream, with one Q; its norms must be
 *		folded RMS norms, and a norm after a residual branch must have one gain. Or x is the
 *		values of each head, or the inputs of a down projection, which pass the same Hadamard
 *		in the forward pass (QuaRot).
 *
 *	scale	a norm's gain and shift are divided by s, columns of the layers that read through it are
 *		multiplied by s (SmoothQuant); or rows and bias of a layer are divided by s, columns of
 *		the layer that it is the source of are multiplied by s (AWQ)
 *
 * model/residual.h determines these layers; this module has no knowledge of architectures. Weights are passed
 * and returned in double; nothing is rounded.
 */
#ifndef TRANSFORM_INVARIANT_H
#define TRANSFORM_INVARIANT_H
#include <stdbool.h>
#include <stddef.h>
#include "model/residual.h"
#include "transform/rotation.h"

struct invariant {
	bool fold, centre;
	bool unchanged[STACKS];		/* streams that are not changed, nor the insides of their blocks */
	const struct rotations *rotations;	/* NULL: none */
};

/* A norm in double; the architecture's offset is in the gain. */
struct wide_norm {
	enum norm_kind kind;
	size_t n;
	double *gain, *shift;		/* [n]; shift NULL: none */
	double *factor;			/* [n] s, of `scale`; NULL: none */
};

/* Why a norm, or a layer without a norm, makes the change impossible, and what is expected; NULL: it does
 * not. */
const char *invariant_refusal(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm);
const char *invariant_layer_refusal(const struct invariant *t, const struct residual_layer *l);

/* Whether the layer reads the residual stream. */
bool invariant_reads(const struct residual_layer *l);
/* Whether a layer, or a norm, is changed. norm: the layer's own, or NULL. */
bool invariant_changes(const struct invariant *t, const struct residual_layer *l,
	const struct wide_norm *norm);
bool invariant_changes_norm(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm);
/* Whether the layer has a bias after the change because of its norm's shift. norm: its own, or NULL. */
bool invariant_biased(const struct invariant *t, const struct residual_layer *l,
	const struct wide_norm *norm);
/* Whether invariant_layer() can be called with some of the layer's rows at a time. */
bool invariant_by_rows(const struct residual_layer *l);
/* Changes m rows w of the layer, and their biases. bias NULL: no bias; then invariant_biased() must be false.
 */
void invariant_layer(const struct invariant *t, const struct residual_layer *l, const struct wide_norm *norm,
	size_t m, double w[m][l->in], double *bias);
/* Multiplies columns by `columns`, the divisors of the layer's inputs. Divides rows and biases by `rows`, the
 * divisors of its outputs. NULL: all 1. */
void invariant_scale(const double columns[], const double rows[], size_t m, size_t n, double w[m][n],
	double *bias);
/* The order of the online Hadamard of the layer's inputs after the change; 0: none. */
size_t invariant_online(const struct invariant *t, const struct residual_layer *l);
/* Changes the norm. Call it after invariant_layer() on all layers that read through it. */
void invariant_norm(const struct invariant *t, const struct residual_norm *at, struct wide_norm *norm);
#endif
