/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ggml.h -- storage types of tensors in a GGUF file, decoded to float32
 *
 * A row of a tensor is a sequence of blocks of `length` numbers in `bytes` bytes. With d and m of 16 bits
 * (IEEE half precision), codes q and scales s and b of 6 or 8 bits, a value is
 *
 *	d q		Q4_0, Q5_0, Q8_0 (q signed), and MXFP4 (d = 2^(e - 127), q of e2m1)
 *	d q + m		Q4_1, Q5_1
 *	d v(q)		IQ4_NL, v a list of numbers (num/gguf_block.h)
 *	(d s) q		Q6_K
 *	(d s) q - (m b)	Q4_K, Q5_K
 *
 * Every product has at most 24 significant bits, so it is exact. The sum rounds once. Therefore values equal
 * those of ggml's reference bit for bit, even if the compiler contracts or reorders operations.
 *
 * Source: https://github.com/ggml-org/llama.cpp, ggml/src/ggml-common.h (layout of the blocks) and
 * ggml-quants.c (dequantize_row_*); the OCP Microscaling Formats specification, version 1.0.
 */
#ifndef IMPORT_GGML_H
#define IMPORT_GGML_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGML_LENGTH = 256 };	/* of the longest block */

/* Types that other files of this project name, by their number in a GGUF file. */
enum ggml_id {
	GGML_F32 = 0,
	GGML_F16 = 1,
	GGML_Q8_0 = 8,
	GGML_BF16 = 30
};

struct ggml_type {
	uint32_t id;		/* in a file */
	const char *name;
	size_t length, bytes;	/* of a block; 0: the type is not supported */
	/* n blocks as n · length numbers; NULL: the type is not supported */
	void (*decode)(size_t n, float y[], const uint8_t x[]);
	/* For export of codes (export/ggml_encode.h); order in a block: d, m, fifth bits, 4 or 8 bits. */
	int bits;		/* of a code; 0: the type is not written */
	int offset;		/* code = number + offset */
	float max;		/* numbers are the integers from -max to max */
	bool minimum;		/* the block has m */
	bool e2m1;		/* numbers are e2m1, d is an exponent */
	const char *storage;	/* the format whose codes are its blocks, or NULL */
};

/* Ends with a row without a name. */
extern const struct ggml_type ggml_types[];

/* NULL: no such type. */
const struct ggml_type *ggml_find(uint32_t id);
#endif
