/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_source.h -- a GGUF file as a source of a model
 *
 * Names and rows are put back to those of transformers (gguf_table.h). F32, F16 and BF16 keep their
 * type, quantized tensors become F32 (import/ggml.h). A tensor that the row has no name for keeps its own.
 */
#ifndef IMPORT_GGUF_SOURCE_H
#define IMPORT_GGUF_SOURCE_H
#include "import/source.h"

extern const struct source_kind gguf_source;
#endif
