/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_source.h -- folders of compressed-tensors, as llm-compressor writes and vLLM loads them
 *
 * Integers and zero points of a checkpoint are signed. Both become uint<b> by the addition of 2^(b-1); the
 * zero points of a symmetric checkpoint become 2^(b-1). Codes of FP8, mxfp4 and nvfp4 are not changed. The
 * tensors of a layer are:
 *
 *	pack-quantized		weight_packed i32, weight_shape i64 [2], weight_scale;
 *				weight_zero_point, packed down the rows; weight_g_idx i32 [in]
 *	int-quantized		weight i8 [out, in], weight_scale; weight_zero_point i8; input_scale
 *	float-quantized		weight f8_e4m3 [out, in], weight_scale; input_scale
 *	mxfp4-pack-quantized	weight_packed u8 [out, in/2], weight_scale u8 [out, in/32]: 2^(e - 127)
 *	nvfp4-pack-quantized	weight_packed u8 [out, in/2], weight_scale f8_e4m3 [out, in/16],
 *				weight_global_scale f32 [1], which divides the scales
 *
 * Source: the package compressed-tensors 0.20, compressors/ and quantization/.
 */
#ifndef IMPORT_COMPRESSED_SOURCE_H
#define IMPORT_COMPRESSED_SOURCE_H
#include "import/packed.h"

extern const struct packed_kind compressed_source;
#endif
