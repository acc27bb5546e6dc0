/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * adapter.h -- low-rank branches as a LoRA adapter, a folder that PEFT and vLLM load with a model's weights
 *
 *	struct adapter *a = adapter_open(&e, "folder");
 *
 *	adapter_add(a, &e, &w);		of each weight, which may have no branch
 *	...
 *	adapter_finish(a, &e);
 *	adapter_close(a);
 *
 * adapter_model.safetensors has NAME.lora_A.weight [r, in] and NAME.lora_B.weight [out, r] with NAME
 * "base_model.model.LAYER", in the dtype of plain weights; adapter_config.json says lora_alpha = r, so that
 * B (A x) is added as it is. Layers of one tensor follow each other as rows of A and columns of B.
 *
 * Source: PEFT 0.21, the checkpoint format of LoRA.
 */
#ifndef EXPORT_ADAPTER_H
#define EXPORT_ADAPTER_H
#include "export/target.h"

struct adapter;

/* Dies where classes call modules otherwise than checkpoints do, that is, of models that see images. */
struct adapter *adapter_open(const struct export *e, const char *path);
/* Dies where the branch is between rotations, or rounds its inputs and that is not to be left out. */
void adapter_add(struct adapter *a, const struct export *e, const struct export_weight *w);
/* Writes what is left; dies if no layer had a branch. */
void adapter_finish(struct adapter *a, const struct export *e);
/* Gives the folder its name, once the model has its own: till then both can fail. Frees a. */
void adapter_close(struct adapter *a);
#endif
