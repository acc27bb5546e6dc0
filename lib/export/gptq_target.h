/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gptq_target.h -- a folder of weights in the format of GPTQ checkpoints, for GPTQModel, vLLM and
 * transformers
 *
 * This is a folder of plain weights (export/folder_target.h) with two differences. config.json has a
 * `quantization_config`, which is also written as quantize_config.json. LAYER.weight of the linear layers of
 * blocks, and of a quantized head, is replaced by these tensors:
 *	qweight  i32 [in·b/32, out]: codes of b bits, from the lowest bit, along the inputs, across words
 *	qzeros   i32 [groups, out·b/32]: zero points, along the outputs
 *	scales   f16 [groups, out]
 *	g_idx    i32 [in]: the group of each column
 * b is 2, 3, 4 or 8, the same for all layers. All layers have the same number of columns per group, which
 * divides the columns of each layer, or each layer has one group per row (group_size -1). Symmetric codes
 * have the zero point 2^(b-1).
 *
 * If all layers are symmetric, the checkpoint_format is gptq, which stores z - 1; else gptq_v2, which stores
 * z. This is known only after the last layer. So qzeros of symmetric layers, which are one repeated number,
 * are written last. desc_act is true if g_idx of some layer is not column / group.
 *
 * Source: GPTQModel 7.7, nn_modules/qlinear, quantization/config.py.
 */
#ifndef EXPORT_GPTQ_TARGET_H
#define EXPORT_GPTQ_TARGET_H
#include "export/target.h"

extern const struct target gptq_target;
#endif
