/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * roofline.h -- upper bound of tokens per second by model, format and accelerator (roofline; DPQ figure 4)
 *
 * Model: L blocks; P weights in their linear layers; a token multiplies P' of them (fewer than P in a mixture
 * of experts, but a step reads all P, since each expert gets some token of a batch); attention of width w =
 * heads · head_dim; keys and values of width k = kv_heads · head_dim; a head of E weights, and embeddings of
 * D more weights (0: tied), both at 16 bits.
 *
 * Format: b bits per weight, with scales and zero points; arithmetic of rate R; keys and values of a bits.
 *
 * Accelerator: memory of M bytes with a bandwidth of W bytes/s; BF16 arithmetic of rate T.
 *
 * For sequences with a prompt of n ids and m generated ids:
 *
 *	read	= P b / 8 + 2 E			bytes of weights for each step
 *	stored	= read + 2 D
 *	kv	= 2 L k a / 8			bytes a token
 *	batch	= ⌊(M - stored) / (kv (n + m))⌋	sequences that fit into the rest of the memory
 *	prefill	= max(batch (2 P' n + 2 L w n (n + 1)) / R + 2 batch E / T, (read + batch n kv) / W)
 *	step(c)	= max(batch (2 P' + 4 L w c) / R + 2 batch E / T, (read + batch c kv) / W)
 *	decode	= Σ step(c), c = n + 1 .. n + m - 1; the prefill gives the first token
 *	rate	= batch m / (prefill + decode)	tokens a second
 *
 * So the time of a step is that of its products at peak rate, or that of reading weights and cache at full
 * bandwidth, whichever is longer. Activations, norms, conversions of codes and everything between two steps
 * take no time and no memory.
 */
#ifndef EVAL_ROOFLINE_H
#define EVAL_ROOFLINE_H
#include <stddef.h>
#include "io/table.h"

/* Values of options. Lists are separated by commas. */
struct roofline {
	const char *models, *accelerators, *formats, *prompts, *generates;
	size_t group, kv_bits;
};
/*
 * A row for each combination: model, hardware, format, prompt, generate, batch, weight_gb, prefill_s,
 * decode_s, memory_bound, tokens_per_second, and speedup over the first format (NaN if the first format does
 * not fit into memory). Unknown values in lists are a misuse().
 */
struct table roofline_table(const struct roofline *r);
#endif
