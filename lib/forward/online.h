/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * online.h -- rotations at run time: of the inputs and outputs of products, of queries and keys
 */
#ifndef FORWARD_ONLINE_H
#define FORWARD_ONLINE_H
#include <stdbool.h>
#include <stddef.h>
#include "device/device.h"
#include "num/hadamard.h"
#include "quant/linear.h"

/* A Hadamard matrix, and signs that precede it. Zero it before the first use. */
struct online {
	struct hadamard h;		/* n = 0: none */
	void *memory;			/* of its matrices */
	const int8_t *signs;		/* [n] factors before the matrix; NULL: none; not owned */
};

/* Sets a matrix of in / order blocks of this order; order 0: none. An unchanged matrix is not built again. An
 * order without a known matrix is a fatal error. */
void online_set(struct online *o, size_t in, size_t order);
/* Sets the rotation of a layer's n inputs or outputs: matrix and signs. The signs must outlive the use of o.
 */
void online_rotation(struct online *o, size_t n, const struct linear_rotation *r);
/* Whether o is not the identity. */
bool online_rotates(const struct online *o);
/* Rotates m rows x[m][n]; online_undo() applies the inverse. */
void online_apply(const struct online *o, size_t n, size_t m, float x[m][n]);
void online_undo(const struct online *o, size_t n, size_t m, float x[m][n]);
void online_free(struct online *o);

/* A rotation, or its inverse, on a device, for rotate() of device/device.h. Zero it before the first use. */
struct device_rotation {
	size_t order;			/* 0: without a matrix */
	float *matrix;			/* [order][order] a block of the matrix; NULL: Sylvester's */
	int8_t *signs;			/* [n] or NULL */
};
/* Uploads the rotation of n inputs or outputs, or its inverse (undo). A matrix of the same order is kept. */
void online_upload(const struct online *o, const struct device *d, size_t n, bool undo,
	struct device_rotation *r);
void online_release(struct device_rotation *r, const struct device *d);
#endif
