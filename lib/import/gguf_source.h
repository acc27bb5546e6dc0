/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_source.h -- a GGUF file as a source of a model
 *
 * Names and the order of rows become those of transformers (gguf_table.h). F32, F16 and BF16 keep their type,
 * quantized tensors become F32 (import/ggml.h). A tensor without a name in the row of the architecture keeps
 * its name.
 */
#ifndef IMPORT_GGUF_SOURCE_H
#define IMPORT_GGUF_SOURCE_H
#include "import/source.h"

extern const struct source_kind gguf_source;
#endif
