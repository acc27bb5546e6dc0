/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * batch.h -- sequences of rows of activations, and the position of each row
 *
 * Every matrix of activations is passed with a batch. Images, reordered tokens (AIFS), choices with a common
 * context and sliding windows differ in the batch only, not in the forward pass. Row p attends to row q, of
 * its sequence or of the past of the sequence, if index(q) ≤ index(p).
 */
#ifndef FORWARD_BATCH_H
#define FORWARD_BATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sequence {
	size_t first, length;		/* rows first .. first + length - 1 */
	size_t past;			/* earlier tokens that they attend to: in the cache, or without one */
	size_t prefix;			/* rows prefix .. prefix + past - 1, which sequences may share */
};

struct batch {
	size_t rows, sequences;
	const struct sequence *sequence;	/* [sequences], in the order of their rows */
	/* [rows], or NULL for the default, which costs nothing: */
	const int32_t *position;	/* [rows][axes]; default: past + row in the sequence */
	size_t axes;			/* numbers of a position; 0: 1 */
	const int32_t *index;		/* for the mask; default: past + row in the sequence */
	const uint8_t *modality;	/* selects the static scale of inputs (quant/linear.h); default: 0 */
	bool apart;			/* the bits of a row's outputs do not depend on the other rows: */
					/* products have PRODUCT_APART to PRODUCT_FEW rows */
};

/* The position of every row: b->position, or the default, written to `own`. */
const int32_t *batch_positions(const struct batch *b, int32_t own[b->rows]);
#endif
