/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ggml.h -- the types that tensors of a GGUF file are stored in, and their values as float32
 *
 * A row of a tensor is a sequence of blocks of `length` numbers in `bytes` bytes. With d and m of 16 bits
 * (IEEE half precision), codes q and scales s and b of 6 or 8 bits, a value is
 *
 *	d q		Q4_0, Q5_0, Q8_0 (q signed), and MXFP4 (d = 2^(e - 127), q of e2m1)
 *	d q + m		Q4_1, Q5_1
 *	(d s) q		Q6_K
 *	(d s) q - (m b)	Q4_K, Q5_K
 *
 * Every product has at most 24 significant bits, so that it is exact, and the sum rounds once: values are
 * those of ggml's own reference, bit for bit, whatever the compiler contracts or reorders.
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

/* Types that are named elsewhere, by their number in a file. */
enum ggml_id {
	GGML_F32 = 0,
	GGML_F16 = 1,
	GGML_Q8_0 = 8,
	GGML_BF16 = 30
};

struct ggml_type {
	uint32_t id;		/* in a file */
	const char *name;
	size_t length, bytes;	/* of a block; 0 where it is not known here how the type is stored */
	/* n blocks as n · length numbers */
	void (*decode)(size_t n, float y[], const uint8_t x[]);
	/* How codes of a layer are written (export/ggml_encode.h): d, m, fifth bits, 4 or 8 bits of each. */
	int bits;		/* of a code; 0: none are written */
	int offset;		/* what a code is more than its number */
	float max;		/* whole numbers from -max to max are there */
	bool minimum;		/* there is m */
	bool e2m1;		/* numbers of e2m1, and an exponent for d */
};

/* Ends with a row without a name. */
extern const struct ggml_type ggml_types[];

/* NULL: there is no such type. */
const struct ggml_type *ggml_find(uint32_t id);
#endif
