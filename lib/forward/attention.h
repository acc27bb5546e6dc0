/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention.h -- causal attention of grouped heads
 *
 *	y_p = Σ_q softmax_q(cap(scale · x_p · k_q)) v_q,
 *		index(q) ≤ index(p), index(p) - index(q) < sliding window
 *	cap(s) = c tanh(s / c), or s without a soft-cap c
 *
 * x_p is the query of row p. Scores are computed in tiles of queries by keys, with a running maximum and sum
 * (Milakov and Gimelshein 2018; Dao 2022); the whole matrix of scores is never stored
 * (forward/attention_private.h). The same code serves whole windows, and new tokens that follow a cache or a
 * prefix of keys and values.
 */
#ifndef FORWARD_ATTENTION_H
#define FORWARD_ATTENTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attention {
	size_t heads, kv_heads, head_dim;
	double scale;			/* of q · k, usually 1/√head_dim */
	double cap;			/* soft-cap of scores; 0: none */
	size_t sliding_window;		/* tokens that a query attends to, with its own; 0: all */
};

/* Rows of kv_heads · head_dim floats that begin every `stride` floats. */
struct attention_keys {
	size_t n, stride;
	const float *k, *v;		/* [n] rows */
	const int32_t *index;		/* [n], or NULL: the default (forward/batch.h) */
};

/* One sequence. A row contains all heads, one after the other. */
struct attention_rows {
	size_t n, y_stride, q_stride;
	float *y;			/* [n] rows of heads · head_dim */
	const float *q;			/* [n] rows of heads · head_dim */
	const int32_t *index;		/* [n], or NULL; if present, the keys have one too */
	struct attention_keys keys[2];	/* of past tokens, then of the n tokens of the queries */
};
void attention(const struct attention *a, size_t sequences, const struct attention_rows rows[sequences]);

#endif
