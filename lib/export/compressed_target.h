/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compressed_target.h -- a folder of packed weights as compressed-tensors has them, for vLLM and transformers
 *
 * A folder of plain weights (export/folder_target.h), but for LAYER.weight, which is what the layer's scheme
 * (import/compressed_scheme.h) has, and `quantization_config` in config.json. Codes and parameters are those
 * of the model; of a layer with a compute format its FP8 numbers.
 *	pack-quantized   weight_packed i32 [out, ceil(in·b/32)]: signed values + 2^(b-1), b bits each,
 *	                 one after the other from the lowest bit, across words; weight_scale [out, groups];
 *	                 weight_shape i64 [2]; weight_zero_point i32 [ceil(out·b/32), groups], packed
 *	                 the same way along the rows
 *	int-quantized    weight i8; weight_scale [out, groups] or [1]; input_scale [1] where it is static
 *	float-quantized  weight e4m3fn; the same
 *	mxfp4-           weight_packed u8 [out, in/2], the even column low; weight_scale u8 [out, in/32]:
 *	                 exponent + 127
 *	nvfp4-           the same; weight_scale e4m3fn [out, in/16]; weight_global_scale f32 [1] divides them
 * Scales of 8-bit arithmetic, int8 and e4m3fn, are f32, others in the dtype of plain weights. One that this
 * would round is refused, or reported with allow_rounding.
 *
 * Source: compressed-tensors 0.20, compressors/pack_quantized, naive_quantized, nvfp4, mxfp4.
 */
#ifndef EXPORT_COMPRESSED_TARGET_H
#define EXPORT_COMPRESSED_TARGET_H
#include "export/target.h"

extern const struct target compressed_target;
#endif
