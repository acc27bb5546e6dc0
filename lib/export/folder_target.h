/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * folder_target.h -- a folder as Hugging Face keeps models: config.json, safetensors and texts
 *
 * What all targets share that write one, and the one of plain weights: what layers multiply (export/dense.h),
 * rounded once to the dtype. Another target has a weight() of its own that puts packed tensors, or calls
 * folder_weight() for layers that are not quantized, and says at the end how they are meant.
 */
#ifndef EXPORT_FOLDER_TARGET_H
#define EXPORT_FOLDER_TARGET_H
#include <jansson.h>
#include "export/safetensors_output.h"
#include "export/target.h"

/* Makes e->folder: the folder and its files of weights. */
void folder_begin(struct export *e);
void folder_weight(struct export *e, const struct export_weight *w);
void folder_tensor(struct export *e, const char *name, const struct tensor *t);
/* Writes the rest and gives the folder its name. quantization: the member quantization_config of config.json,
 * which it frees; NULL: there is none. */
void folder_end(struct export *e, json_t *quantization);

/* A tensor as it is, "NAME.MEMBER". */
void folder_put(struct export *e, const char *name, const char *member, struct safetensors_data t);
/* A further text, as a file of the folder. */
void folder_put_text(struct export *e, const char *file, const char *text);
/* Numbers, rounded to the dtype; dies where one is beyond it. */
void folder_put_plain(struct export *e, const char *name, int rank, const size_t dim[], float *x);
/* The same into files of another folder. */
void folder_add_plain(const struct export *e, struct safetensors_output *out, const char *name, int rank,
	const size_t dim[], float *x);
/* n numbers in the dtype: x, or new memory; dies where one is beyond it. */
void *folder_narrow(const struct export *e, const char *name, enum half_type dtype, size_t n, float *x);
/* Dies if a layer rounds its inputs, which this target does not write, unless that is to be left out. */
void folder_check_inputs(const struct export *e, const struct export_weight *w);

extern const struct target hf_target;
#endif
