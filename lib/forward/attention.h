/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention.h -- causal attention of grouped heads, and rotary positions
 *
 *	y_p = Σ_q softmax_q(cap(scale · x_p · k_q)) v_q,
 *		index(q) ≤ index(p), index(p) - index(q) < sliding window
 *	cap(s) = c tanh(s / c), or s where there is no soft-cap c
 *
 * in tiles of queries by keys with a running maximum and sum (Milakov and
 * Gimelshein 2018; Dao 2022), never a whole matrix of scores
 * (forward/attention_private.h). The same code serves whole
 * windows and new tokens behind a cache or a prefix of keys and values.
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
	size_t sliding_window;		/* tokens that a query sees, its own included; 0: all */
};

/* Rows of kv_heads · head_dim that start every `stride` floats. */
struct attention_keys {
	size_t n, stride;
	const float *k, *v;		/* [n] rows */
	const int32_t *index;		/* [n], or NULL: the usual ones (forward/batch.h) */
};

/* One sequence: a row holds all heads side by side. */
struct attention_rows {
	size_t n, y_stride, q_stride;
	float *y;			/* [n] rows of heads · head_dim */
	const float *q;			/* [n] rows of heads · head_dim */
	const int32_t *index;		/* [n], or NULL; where it is given, keys have theirs too */
	struct attention_keys keys[2];	/* all that the queries may see, in order; their own n are the last */
};
void attention(const struct attention *a, size_t sequences, const struct attention_rows rows[sequences]);

#endif
