/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fp8_source.h -- folders of FP8 weights with quant_method fp8, of DeepSeek, transformers and vLLM
 *
 *	weight			f8_e4m3 [out, in]
 *	weight_scale_inv	[⌈out/r⌉, ⌈in/c⌉], the factors of blocks of r x c (weight_block_size;
 *				default 128 x 128), or one number for the tensor
 *	weight_scale		one number for the tensor, instead of weight_scale_inv
 *	input_scale		one number, if activation_scheme is static; its name in transformers is
 *				activation_scale
 *
 * Dynamic scales of inputs (of groups of inputs, or one for all tokens) are not supported: inputs are not
 * rounded, with a warning.
 *
 * Source: transformers 5, integrations/finegrained_fp8.py; DeepSeek-V3, inference/kernel.py.
 */
#ifndef IMPORT_FP8_SOURCE_H
#define IMPORT_FP8_SOURCE_H
#include "import/packed.h"

extern const struct packed_kind fp8_source;
#endif
