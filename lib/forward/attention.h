/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attention.h -- causal attention of grouped heads, and rotary positions
 *
 *	y_i = Σ_j softmax_j(q_i · k_j / √head_dim) v_j,   j ≤ i, i - j < window
 *
 * in tiles of queries by keys with a running maximum and sum (Milakov and
 * Gimelshein 2018; Dao 2022), never a whole matrix of scores, and narrow ones on
 * the diagonal, where a part of each is not wanted. The same code
 * serves whole windows and new tokens behind a cache of keys and values.
 */
#ifndef FORWARD_ATTENTION_H
#define FORWARD_ATTENTION_H
#include <stddef.h>

struct attention {
	size_t heads, kv_heads, head_dim;
	size_t window;			/* positions that a query sees, its own included; 0: all */
};

/* One sequence: a row holds all heads side by side and starts every `stride` floats. */
struct attention_rows {
	float *y;			/* [n] rows of heads · head_dim */
	const float *q;			/* [n] rows of heads · head_dim */
	const float *k, *v;		/* [past + n] rows of kv_heads · head_dim */
	size_t y_stride, q_stride, kv_stride;
};

/* n queries of each sequence, at positions past .. past + n - 1. */
void attention(const struct attention *a, size_t sequences, size_t n, size_t past,
	const struct attention_rows rows[sequences]);

/* Cosines and sines of every position and frequency. */
struct rope {
	size_t positions, half;
	float *cosine, *sine;		/* [positions][half] */
};
struct rope rope_make(size_t positions, size_t half, const double frequency[half]);
void rope_free(struct rope *r);
/* Turns pairs (x_i, x_i+half) of each head by the angle of the position, as Hugging Face's rotate_half does. */
void rope_turn(const struct rope *r, size_t position, size_t heads, float x[heads][2 * r->half]);
#endif
