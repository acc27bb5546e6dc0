/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_target.h -- a GGUF file, as llama.cpp loads it: the way of gguf_source.h backwards
 *
 * Tensors have the names and rows that import/gguf_table.h says. Vectors, tables of positions and
 * routers are F32. Codes become blocks (export/ggml_encode.h) that hold them exactly, or are refused; any
 * other weight is what export_dense() gives, rounded once to the dtype. A tokenizer becomes keys
 * (import/gguf_said.h), or goes along as its tokenizer.json alone.
 */
#ifndef EXPORT_GGUF_TARGET_H
#define EXPORT_GGUF_TARGET_H
#include "export/target.h"

extern const struct target gguf_target;
#endif
