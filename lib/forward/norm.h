/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * norm.h -- RMS norms and LayerNorms of rows
 *
 *	rms	x / √(mean x² + eps) · gain
 *	layer	(x - mean) / √(variance + eps) · gain + shift
 */
#ifndef FORWARD_NORM_H
#define FORWARD_NORM_H
#include <stddef.h>
#include "device/device.h"
#include "io/part.h"
#include "model/config.h"

struct norm {
	enum norm_kind kind;		/* attribute `norm` of the group, else the architecture's */
	size_t n;
	double eps;
	float *gain, *shift;		/* gain: with the architecture's offset; shift may be NULL */
	const struct device *device;	/* whose memory gain and shift are in; NULL: the processor's */
};
/* Reads the norm `path` of `width` channels. A missing gain is a fatal error, and so is a missing shift if
 * the norm is a LayerNorm by the architecture, without an attribute. */
struct norm norm_read(const struct part *part, const char *path, const struct stack *s, size_t width);
void norm_free(struct norm *n);
/* Moves the norm to the device d. Nothing happens if d is NULL. */
void norm_move(struct norm *n, const struct device *d);
/* y = the norm of m rows x; y may be x. For a norm on a device, these are in its memory. */
void norm_apply(const struct norm *n, size_t m, float y[m][n->n], const float x[m][n->n]);
/* The norm of vectors on its device. */
void norm_vectors(const struct norm *n, struct device_rows r, float *y, const float *x);
#endif
