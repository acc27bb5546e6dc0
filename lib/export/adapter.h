/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * adapter.h -- low-rank branches as a LoRA adapter, a folder that PEFT and vLLM load with a model's weights
 *
 *	struct adapter *a = adapter_open(&e, "folder");
 *
 *	adapter_add(a, &e, &w);		for each weight, with or without a branch
 *	...
 *	adapter_finish(a, &e);
 *	adapter_close(a);		after the folder of the model has its name
 *
 * adapter_model.safetensors has NAME.lora_A.weight [r, in] and NAME.lora_B.weight [out, r] with NAME
 * "base_model.model.LAYER", in the dtype of plain weights. adapter_config.json has lora_alpha = r, so that
 * B (A x) is added without a factor. If several layers are one tensor of the checkpoint, their branches are
 * concatenated: rows of A, columns of B.
 *
 * Errors are fatal.
 *
 * Source: PEFT 0.21, the checkpoint format of LoRA.
 */
#ifndef EXPORT_ADAPTER_H
#define EXPORT_ADAPTER_H
#include "export/target.h"

struct adapter;

/* A vision-language model is an error: its modules have other names than the tensors of checkpoints. */
struct adapter *adapter_open(const struct export *e, const char *path);
/* It is an error if the branch is between rotations, or rounds its inputs (unless weights_only is set). */
void adapter_add(struct adapter *a, const struct export *e, const struct export_weight *w);
/* Writes the rest. It is an error if no layer had a branch. */
void adapter_finish(struct adapter *a, const struct export *e);
/* Renames the folder to its name and frees a. Called after the model has its name, since both writes may fail
 * before. */
void adapter_close(struct adapter *a);
#endif
