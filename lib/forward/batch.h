/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * batch.h -- rows of activations, and the place of each in its sequence
 *
 * Every matrix of activations comes with one. Images, reordered tokens (AIFS),
 * choices with a common context and sliding windows are kinds of batch, not kinds
 * of forward pass. Row p sees row q of its sequence, and the tokens before it,
 * where index(q) ≤ index(p).
 */
#ifndef FORWARD_BATCH_H
#define FORWARD_BATCH_H
#include <stddef.h>
#include <stdint.h>

struct sequence {
	size_t first, length;		/* rows first .. first + length - 1 */
	size_t past;			/* tokens before them, which they see: those in the cache, */
	size_t prefix;			/* or without one rows prefix .. prefix + past - 1, may be shared */
};

struct batch {
	size_t rows, sequences;
	const struct sequence *sequence;	/* [sequences], in the order of their rows */
	/* [rows], or NULL for the usual ones, which cost nothing: */
	const int32_t *position;	/* past + place in the sequence; `axes` of each row */
	size_t axes;			/* 0: 1 */
	const int32_t *index;		/* the same, for the mask */
	const uint8_t *modality;	/* 0: which static scale inputs are rounded under (quant/linear.h) */
};

/* The position of every row: the batch's own, or the usual ones in `own`. */
const int32_t *batch_positions(const struct batch *b, int32_t own[b->rows]);
#endif
