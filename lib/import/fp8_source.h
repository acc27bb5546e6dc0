/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fp8_source.h -- folders of FP8 weights whose quant_method is fp8: DeepSeek's, transformers', vLLM's
 *
 *	weight			f8_e4m3 [out, in]
 *	weight_scale_inv	[⌈out/r⌉, ⌈in/c⌉], which multiplies blocks of r x c (weight_block_size;
 *				absent: 128 x 128), or one number for the tensor
 *	weight_scale		one number for the tensor, instead of weight_scale_inv
 *	input_scale		one number, where activation_scheme is static; transformers calls it
 *				activation_scale
 *
 * Inputs that are rounded in groups, or under one scale that is found for all tokens, have no form here.
 *
 * Source: transformers 5, integrations/finegrained_fp8.py; DeepSeek-V3, inference/kernel.py.
 */
#ifndef IMPORT_FP8_SOURCE_H
#define IMPORT_FP8_SOURCE_H
#include "import/packed.h"

extern const struct packed_kind fp8_source;
#endif
