/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * import.h -- a Hugging Face folder as a model: config.json, tokenizer.json
 * and the tensors of its safetensors, in the parts of the architecture's layout
 */
#ifndef MODEL_IMPORT_H
#define MODEL_IMPORT_H
#include "io/image.h"

/*
 * Writes every part of the model into out. Names change dots into slashes;
 * GPT-2's Conv1D weights are transposed; a tied head is written as a copy of
 * the embedding with the attribute `tied_to` (a stored head that differs from
 * the embedding stays, with a warning, as in transformers); buffers that follow
 * from the config are dropped. Biases that the class has no parameter for and
 * blocks beyond those of the config are left out with a warning. Other tensors
 * that the architecture does not know are passed on with one. Dies where a
 * tensor is missing, has another shape than the config says, or holds NaN or
 * infinite values, and where the checkpoint is stored quantized.
 */
void import_folder(struct output *out, const char *folder);
#endif
