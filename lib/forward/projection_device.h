/* SPDX-License-Identifier: GPL-3.0-or-later */
/* projection_device.h -- projections on a device: struct projection with a member `device` */
#ifndef FORWARD_PROJECTION_DEVICE_H
#define FORWARD_PROJECTION_DEVICE_H
#include "forward/projection.h"

/* Uploads layers first .. first + n - 1, in the type that the model computes in. A layer that a device does
 * not multiply is a fatal error. */
void projection_upload(struct projection *s, size_t first, size_t n);
/* Frees what the layers have on the device, except the memory of weights (all: that too). */
void projection_drop(struct projection *s, bool all);
/* x rotated as the layers specify, in the workspace; x itself without a rotation. */
const float *projection_device_rotate(const struct projection *s, size_t m, const float *x,
	struct workspace *workspace);
/* Calls the observer with x, the inputs of rows first .. first + m - 1 as projection_observed() returns them:
 * a copy here, unless it accepts memory of the device. */
void projection_device_observe(const struct projection *s, const struct batch *batch, size_t first, size_t m,
	const float *x, const struct observer *observer);
/* projection_apply() without an observer; x is already rotated. */
void projection_device_apply(const struct projection *s, size_t m, size_t stride, float *y, const float *x,
	bool add);
#endif
