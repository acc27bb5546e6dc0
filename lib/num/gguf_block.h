/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_block.h -- codes that are blocks of a GGUF file: neighbouring weights of a row with their scales
 *
 *	q4_k	256 weights in 144 bytes, 4.5 bits: w = d s q - m b, q of 4 bits, s, b of 6 bits for 32
 *	q5_k	256 weights in 176 bytes, 5.5 bits: the same, q of 5 bits
 *	q6_k	256 weights in 210 bytes, 6.5625 bits: w = d s (q - 32), q of 6 bits, s of 8 bits for 16
 *	iq4_nl	32 weights in 18 bytes, 4.5 bits: w = d v(q), q of 4 bits, v a list of 16 numbers
 *
 * d and m are half floats, one for a block, so that a layer has no other scales. Every product has at most 24
 * significant bits, so it is exact. The difference rounds once. docs/format.md has the order of the bytes.
 *
 * Types of blocks are rows of a table in gguf_block.c. Their layouts and searches are in gguf_block_offset.c
 * (q4_k, q5_k) and gguf_block_scale.c (q6_k, iq4_nl).
 *
 * gguf_block_encode() finds the blocks that llama.cpp finds, bit for bit: its searches are in float with sums
 * in the order of the columns, and so are these. The importance c_i of column i is the mean square of its
 * inputs. With σ² twice the mean square of the weights of a block, the squared error of a weight x counts
 *	c_i √(σ² + x²)		q4_k, q5_k, iq4_nl
 *	c_i			q6_k
 * times, and without importance √(mean x² of 32) + |x| times for q4_k and q5_k, x² times for the others.
 *
 * Sources: https://github.com/ggml-org/llama.cpp, ggml/src/ggml-common.h (order of the bytes) and
 * ggml-quants.c (searches).
 */
#ifndef NUM_GGUF_BLOCK_H
#define NUM_GGUF_BLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "num/code_form.h"
#include "num/format.h"

/* Codes of q4_k, q5_k and q6_k, and those of iq4_nl: blocks of 256 and of 32 weights. */
extern const struct code_form gguf_block_256_form, gguf_block_32_form;
/* Sets the bits of the format of this name. False: no such blocks. */
bool gguf_block_fill(struct format *f);

/* n blocks as n times 256 or 32 numbers. */
void q4_k_decode(size_t n, float y[], const uint8_t block[]);
void q5_k_decode(size_t n, float y[], const uint8_t block[]);
void q6_k_decode(size_t n, float y[], const uint8_t block[]);
void iq4_nl_decode(size_t n, float y[], const uint8_t block[]);

/*
 * The blocks of a row of n finite weights, n a multiple of the columns of a block. importance: [n] from 0 on,
 * or NULL. If a d or m is beyond the half floats, it becomes infinite, and the block is not valid
 * (code_first_invalid()).
 * Weights of columns with importance 0 may become any number; a block of such columns becomes 0.
 */
void gguf_block_encode(const struct format *f, size_t n, uint8_t code[], const float x[n],
	const float *importance);
#endif
