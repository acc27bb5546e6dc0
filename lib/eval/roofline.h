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
#include <stddef.h>
#include "io/table.h"

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
