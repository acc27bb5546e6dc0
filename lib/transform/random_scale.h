/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * random_scale.h -- random factors of channels, which change weights but not the outputs of a model
 *
 *	s_j = 2^(u_j / 2), u_j uniform in [0, 1):	X ← X / s, W ← W diag(s)
 *
 * for the outputs of norms, of values and of up projections, and the layers that read them. Dequantized
 * weights are on the grids of their quantization. Each column of a group gets another factor, so that the
 * result is on no grid. With factors up to √2 the largest weight of a group changes by less than half a bit.
 *
 * Columns keep the factor 1 if their input is not proportional to an output: those of down projections after
 * a GELU without a gate, or after an online Hadamard; of the head; of layers that read no norm.
 */
#ifndef TRANSFORM_RANDOM_SCALE_H
#define TRANSFORM_RANDOM_SCALE_H
#include <stddef.h>
#include "base/report.h"
#include "io/part.h"
#include "transform/rewrite.h"

struct random_scale {
	size_t seed;
	struct report *report;	/* a row per norm and per layer with a source: the range of its factors */
};

/* norm() and source() of struct rewrite. The factors depend on the seed, on the path of the norm or layer and
 * on the channel. */
void random_scale_norm(void *random_scale, const struct part *part, const struct residual *here, size_t i,
	struct wide_norm *norm);
double *random_scale_source(void *random_scale, const struct part *part, const struct residual *here,
	size_t i);
#endif
