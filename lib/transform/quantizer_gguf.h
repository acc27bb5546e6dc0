/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantizer_gguf.h -- quantizer of codes that are blocks of a GGUF file (num/gguf_block.h): the functions
 * of its rows
 *
 * Errors are not compensated. With the sum S of second moments over n tokens, the importance of column i is
 * S_ii / n, which llama.cpp calls the importance matrix. With the same one, llama.cpp makes the same blocks.
 */
#ifndef TRANSFORM_QUANTIZER_GGUF_H
#define TRANSFORM_QUANTIZER_GGUF_H
#include "transform/quantizer.h"

/* misuse() of a method with compensation or a compute format; fatal error if a row is no multiple of a block.
 */
void gguf_blocks_check(const struct method *m, const char *file, const char *path, size_t out, size_t in);
size_t gguf_blocks_workspace(size_t n, struct quantized *const t[n]);
/* n is 1. The state of the layer is a struct solver_report. STATUS_BAD_WEIGHT and STATUS_BEYOND_HALF: row
 * `index` has a weight that is not finite, or a scale beyond the half floats. */
void gguf_blocks_make(size_t n, struct quantized *const t[n], void *workspace);
#endif
