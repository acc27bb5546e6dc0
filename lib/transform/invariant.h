/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invariant.h -- changes of weights that leave a model's function as it is, layer by layer, in double
 *
 *	fold	a norm's gain α and shift β into the layers that read through it:
 *		W ← W diag(α), b ← b + W β; the norm is left with gain 1 and no shift
 *	centre	LayerNorm(x) = RMSNorm(M x) diag(α) + β, M = I - 11ᵀ/D: M into everything that is added to the
 *		residual stream, W ← M W, b ← M b, rows e of embeddings ← e M (MQuant eq. 10), or where a norm
 *		stands behind the branch, x + LayerNorm(f(x)), into the last layer of f, and if norms read
 *		the sum, into the shift, where the gain must be one number; the norms become RMS norms
 *
 *	turn	x ← x Q: columns of what reads x, and rows of tables, W ← W Q; rows of what makes x, W ← Qᵀ W,
 *		b ← b Q. The residual stream by one Q, for which its norms must be folded RMS norms (a norm
 *		behind a branch: of one gain); values of each head; what a down projection is fed, which
 *		passes the same Hadamard in the forward pass (QuaRot)
 *
 *	scale	a norm's gain and shift over s, columns of the layers that read through it times s
 *		(SmoothQuant); rows and bias of a layer over s, columns of the one that it is the source of
 *		times s (AWQ)
 *
 * Which layers these are is in model/residual.h; nothing here knows an architecture. Nothing is rounded:
 * the layer's weights come and go in double.
 */
#ifndef TRANSFORM_INVARIANT_H
#define TRANSFORM_INVARIANT_H
#include <stdbool.h>
#include <stddef.h>
#include "model/residual.h"
#include "transform/rotation.h"

struct invariant {
	bool fold, centre;
	bool leave[STACKS];		/* streams that stay, and what is within the blocks that read them */
	const struct rotations *rotations;	/* NULL: none */
};

/* A norm in double; the architecture's offset is in the gain. */
struct wide_norm {
	enum norm_kind kind;
	size_t n;
	double *gain, *shift;		/* [n]; shift NULL: none */
	double *factor;			/* [n] s, of `scale`; NULL: none */
};

/* Why the norm, or a layer without one, stands in the way, and what would be right; NULL: it does not. */
const char *invariant_refusal(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm);
const char *invariant_layer_refusal(const struct invariant *t, const struct residual_layer *l);

/* Whether the layer reads the residual stream. */
bool invariant_reads(const struct residual_layer *l);
/* Whether anything of the layer, or of the norm, is changed; norm: the layer's own, or NULL. */
bool invariant_changes(const struct invariant *t, const struct residual_layer *l,
	const struct wide_norm *norm);
bool invariant_changes_norm(const struct invariant *t, const struct residual_norm *at,
	const struct wide_norm *norm);
/* Whether the layer gets a bias, be there one before or not; norm: its own, NULL where it has none. */
bool invariant_biased(const struct invariant *t, const struct residual_layer *l,
	const struct wide_norm *norm);
/* Whether the layer's rows can go through invariant_layer() a few at a time. */
bool invariant_by_rows(const struct residual_layer *l);
/* m rows of the layer at w, and their biases; bias NULL: none, and invariant_biased() is false. */
void invariant_layer(const struct invariant *t, const struct residual_layer *l, const struct wide_norm *norm,
	size_t m, double w[m][l->in], double *bias);
/* Columns times what the layer's inputs were divided by, rows and biases over what its outputs are to be;
 * NULL: nothing. */
void invariant_scale(const double columns[], const double rows[], size_t m, size_t n, double w[m][n],
	double *bias);
/* The order of the Hadamard that the layer's inputs pass from now on; 0: none. */
size_t invariant_online(const struct invariant *t, const struct residual_layer *l);
/* The norm, behind its layers. */
void invariant_norm(const struct invariant *t, const struct residual_norm *at, struct wide_norm *norm);
#endif
