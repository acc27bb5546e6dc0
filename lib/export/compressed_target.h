/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_target.h -- a folder of packed weights in the format of compressed-tensors, for vLLM and
 * transformers
 *
 * This is a folder of plain weights (export/folder_target.h) with two differences. LAYER.weight of a
 * quantized layer is replaced by the tensors of its scheme (import/compressed_scheme.h), and config.json has
 * a `quantization_config`. Codes and parameters are those of the model. A layer with a compute format is
 * written as its FP8 numbers.
 *	pack-quantized   weight_packed i32 [out, ceil(in·b/32)]: signed values + 2^(b-1), b bits each,
 *	                 one after the other from the lowest bit, across words; weight_scale [out, groups];
 *	                 weight_shape i64 [2]; weight_zero_point i32 [ceil(out·b/32), groups], packed
 *	                 the same way along the rows
 *	int-quantized    weight i8; weight_scale [out, groups] or [1]; input_scale [1] if it is static
 *	float-quantized  weight e4m3fn; scales as in int-quantized
 *	mxfp4-           weight_packed u8 [out, in/2], the even column low; weight_scale u8 [out, in/32]:
 *	                 exponent + 127
 *	nvfp4-           weight_packed as in mxfp4; weight_scale e4m3fn [out, in/16]; weight_global_scale
 *	                 f32 [1] divides the scales
 * Scales of int8 and e4m3fn weights are f32, other scales have the dtype of plain weights. A scale that would
 * be rounded is refused, or reported with allow_rounding.
 *
 * Source: compressed-tensors 0.20, compressors/pack_quantized, naive_quantized, nvfp4, mxfp4.
 */
#ifndef EXPORT_COMPRESSED_TARGET_H
#define EXPORT_COMPRESSED_TARGET_H
#include "export/target.h"

extern const struct target compressed_target;
#endif
