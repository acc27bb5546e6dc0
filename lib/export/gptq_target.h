/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gptq_target.h -- a folder of weights as GPTQ checkpoints have them, for GPTQModel, vLLM and transformers
 *
 * A folder of plain weights (export/folder_target.h), but for LAYER.weight of the linear layers of blocks,
 * and of the head if it is quantized; `quantization_config` in config.json, and the same as
 * quantize_config.json.
 *	qweight  i32 [in·b/32, out]: b bits a code, from the lowest bit, along the inputs, across words
 *	qzeros   i32 [groups, out·b/32]: zero points, along the outputs
 *	scales   f16 [groups, out]
 *	g_idx    i32 [in]: the group of each column
 * b is 2, 3, 4 or 8, the same for all layers. So are the columns of a group, which divide those of a layer,
 * or each layer has one group a row (group_size -1). Symmetric codes have the zero point 2^(b-1). If all
 * layers are symmetric, the checkpoint_format is gptq, which stores zero points less 1; else gptq_v2, which
 * stores them. Until the last layer is seen, that is open: qzeros of symmetric layers, which are one number,
 * are written last. desc_act says that g_idx of some layer is not column / group.
 *
 * Source: GPTQModel 7.7, nn_modules/qlinear, quantization/config.py.
 */
#ifndef EXPORT_GPTQ_TARGET_H
#define EXPORT_GPTQ_TARGET_H
#include "export/target.h"

extern const struct target gptq_target;
#endif
