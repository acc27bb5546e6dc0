/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gptq_source.h -- folders of GPTQ (AutoGPTQ, GPTQModel) and of AWQ (AutoAWQ, version gemm)
 *
 * Both have unsigned codes q, and zero points z and scales s of groups of columns: w = s (q - z). Codes
 * become uint<b> with equal values.
 *
 *	GPTQ	qweight i32 [in·b/32, out]: codes of b bits (2, 3, 4 or 8) along the inputs, across words
 *		qzeros  i32 [groups, out·b/32], along the outputs: z - 1, with checkpoint_format gptq_v2 z
 *		scales  [groups, out]
 *		g_idx   i32 [in]: the group of each column; default column / group_size
 *	AWQ	qweight i32 [in, out/8]: codes of 4 bits along the outputs, in the order 0 2 4 6 1 3 5 7
 *		qzeros  i32 [groups, out/8], in the same order
 *		scales  [groups, out]
 *
 * group_size -1 means whole rows. A zero point beyond the codes is refused. If the configuration specifies
 * symmetric codes, a zero point other than 2^(b-1) is refused too. The message names the label that would
 * fit. There is no other way to detect a GPTQ file with the label of the other GPTQ format.
 *
 * Source: GPTQModel 7.7, nn_modules/qlinear and quantization/awq; the checkpoints of AutoGPTQ and AutoAWQ.
 */
#ifndef IMPORT_GPTQ_SOURCE_H
#define IMPORT_GPTQ_SOURCE_H
#include "import/packed.h"

extern const struct packed_kind gptq_source, awq_gemm_source;
#endif
