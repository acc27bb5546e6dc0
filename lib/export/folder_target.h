/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * folder_target.h -- a Hugging Face folder of a model: config.json, safetensors and texts
 *
 * Functions for all targets that write such a folder, and the target of plain weights: effective weights
 * (model/dense.h), rounded once to the dtype. A target of packed weights has another weight(), which writes
 * packed tensors by folder_put() and calls folder_weight() for layers that are not quantized. Its end()
 * passes the quantization_config to folder_end().
 *
 *	folder_begin(e);
 *	folder_weight(e, w), folder_tensor(e, name, t), folder_put(...), ...	for each tensor
 *	folder_end(e, quantization);
 */
#ifndef EXPORT_FOLDER_TARGET_H
#define EXPORT_FOLDER_TARGET_H
#include <jansson.h>
#include "export/safetensors_output.h"
#include "export/target.h"

/* Creates e->folder: the folder and its files of weights. */
void folder_begin(struct export *e);
void folder_weight(struct export *e, const struct export_weight *w);
void folder_tensor(struct export *e, const char *name, const struct tensor *t);
/* Writes the rest and renames the folder to its name. quantization: the member quantization_config of
 * config.json, which is freed; NULL: none. */
void folder_end(struct export *e, json_t *quantization);

/* Writes the tensor "NAME.MEMBER" unchanged. */
void folder_put(struct export *e, const char *name, const char *member, struct safetensors_data t);
/* Writes a further text as a file of the folder. */
void folder_put_text(struct export *e, const char *file, const char *text);
/* Writes numbers rounded to the dtype. A number beyond the range of the dtype is a fatal error. */
void folder_put_plain(struct export *e, const char *name, int rank, const size_t dim[], float *x);
/* As folder_put_plain(), into files of another folder. */
void folder_add_plain(const struct export *e, struct safetensors_output *out, const char *name, int rank,
	const size_t dim[], float *x);
/* n numbers in the dtype: x, or new memory. A number beyond the range of the dtype is a fatal error. */
void *folder_narrow(const struct export *e, const char *name, enum half_type dtype, size_t n, float *x);
/* Rounding of inputs, which the target does not write, is a fatal error, unless weights_only is set. */
void folder_check_inputs(const struct export *e, const struct export_weight *w);

extern const struct target hf_target;
#endif
