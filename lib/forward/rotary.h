/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rotary.h -- rotary positions: tables of cosines and sines, and the rotation of queries and keys
 *
 * Pair i of a head's channels at position p is rotated by the angle p · frequency[i] (model/rope.h).
 */
#ifndef FORWARD_ROTARY_H
#define FORWARD_ROTARY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "device/device.h"
#include "model/config.h"

/* Cosines and sines of every position and frequency, times `scale`. */
struct rope {
	size_t positions, half;		/* 2 · half channels of a head are rotated */
	bool interleaved;		/* pairs (x_2i, x_2i+1); else (x_i, x_i+half), as in transformers */
	float *cosine, *sine;		/* [positions][half] */
	const uint8_t *axis;		/* [half] axis of the position that each pair uses; NULL: 0 */
	const struct device *device;	/* whose memory all are in; NULL: the processor's */
};
struct rope rope_make(size_t positions, size_t half, const double frequency[half], double scale,
	bool interleaved);
void rope_free(struct rope *r);
/* Rotates the pairs of the first 2 · half channels of each head. position: one number per axis. */
void rope_rotate(const struct rope *r, const int32_t position[], size_t heads, size_t head_dim,
	float x[heads][head_dim]);

/* The tables of a stack for `positions` positions, one for each setting of RoPE. Unused ones are empty. */
struct rotary {
	const struct stack *stack;
	struct rope rope[ROPES];
};
/* d: the device for rotary_rows(); NULL: the processor. */
struct rotary rotary_make(const struct stack *s, size_t positions, const struct device *d);
void rotary_free(struct rotary *r);
/* Rotates the queries and keys of a row, which follow each other, by the setting of the block. position:
 * [axes]. With one axis, its number is used for all axes of the stack, as for text. */
void rotary_apply(const struct rotary *r, size_t block, const int32_t position[], size_t axes, float row[]);
/* The same for m rows on the device, which begin every `stride` numbers. position: [m][axes], on the device.
 */
void rotary_rows(const struct rotary *r, size_t block, const int32_t position[], size_t axes, size_t m,
	size_t stride, float *x);
#endif
