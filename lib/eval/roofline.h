/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * roofline.h -- tokens a second that a model's shape, a format and an accelerator allow (DPQ figure 4)
 *
 * A model of L blocks with P weights in their linear layers, of which a token passes P' (fewer in a
 * mixture of experts; a step reads them all, since some token of a batch passes each), attention of width
 * w = heads · head_dim, keys and values of width k = kv_heads · head_dim, a head of E weights and
 * embeddings of D more (0: tied), the last two at 16 bits. A format of b bits a weight, scales and zero
 * points counted, arithmetic of rate R, keys and values of a bits. An accelerator of M bytes that are read
 * at W bytes/s, BF16 arithmetic of rate T. For sequences of n ids of prompt, and m that are generated:
 *
 *	read	= P b / 8 + 2 E			bytes of weights for each step
 *	stored	= read + 2 D
 *	kv	= 2 L k a / 8			bytes a token
 *	batch	= ⌊(M - stored) / (kv (n + m))⌋	what memory leaves
 *	prefill	= max(batch (2 P' n + 2 L w n (n + 1)) / R + 2 batch E / T, (read + batch n kv) / W)
 *	step(c)	= max(batch (2 P' + 4 L w c) / R + 2 batch E / T, (read + batch c kv) / W)
 *	decode	= Σ step(c), c = n + 1 .. n + m - 1; the prefill gives the first token
 *	rate	= batch m / (prefill + decode)	tokens a second
 *
 * So products run at the peak of their arithmetic or weights and cache come at full bandwidth, whichever
 * takes longer; activations, norms, conversions of codes and everything between two steps take no time and
 * no memory.
 */
#ifndef EVAL_ROOFLINE_H
#define EVAL_ROOFLINE_H
#include <stdbool.h>
#include <stddef.h>
#include "io/table.h"

struct shape {
	double blocks, linear, active;	/* L, P, P' */
	double attention, kv;		/* w, k */
	double head, embedding;		/* E, D */
};

struct accelerator {
	const char *name;
	double memory, bandwidth;	/* bytes, bytes/s */
	double bf16, fp8;		/* operations a second, dense; a product and a sum are two */
};

struct arithmetic {
	double weight_bits;		/* b */
	double kv_bits;			/* a */
	bool fp8;			/* R is that of FP8, otherwise of BF16 */
};

struct throughput {
	double stored;			/* bytes */
	double batch;			/* 0: the weights and one sequence do not fit; then the rest is 0 */
	double prefill, decode;		/* seconds */
	double memory_bound;		/* share of the decode's steps that wait for memory */
	double rate;			/* tokens a second */
};

/* n ≥ 1 ids of prompt, m ≥ 1 generated. */
struct throughput roofline_throughput(const struct shape *s, const struct arithmetic *a,
	const struct accelerator *h, size_t n, size_t m);

/*
 * W<bits>A<bits>, "W4A8": weights of 1 to 16 bits, activations of 8 (FP8) or 16 (BF16). Weights of less
 * than 8 bits have a 16-bit scale and a zero point of their width for each `group` of them. kv_bits 0: as
 * activations. Returns whether the name is one.
 */
bool roofline_arithmetic(const char *name, size_t group, size_t kv_bits, struct arithmetic *a);
/* Rows of tables; NULL: no such name. Both end with a row whose name is NULL. */
struct shape_row {
	const char *name;
	size_t blocks, hidden, heads, kv_heads, head_dim, inner, vocab;
	bool tied;
};
extern const struct shape_row roofline_shapes[];
extern const struct accelerator roofline_accelerators[];
const struct accelerator *roofline_accelerator(const char *name);
/* A row of roofline_shapes, else a Hugging Face folder or a model file, of which only the config is read. */
struct shape roofline_shape(const char *name);

/* The values of options, lists with commas between them. */
struct roofline {
	const char *models, *accelerators, *formats, *prompts, *generates;
	size_t group, kv_bits;
};
/*
 * A row for each combination: model, hardware, format, prompt, generate, batch, weight_gb, prefill_s,
 * decode_s, memory_bound, tokens_per_second, speedup over the first format (NaN where that does not fit).
 * Wrong usage for lists that hold what is not known.
 */
struct table roofline_table(const struct roofline *r);
#endif
