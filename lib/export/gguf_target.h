/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_target.h -- a GGUF file, as llama.cpp loads it: the inverse of gguf_source.h
 *
 * import/gguf_table.h specifies names and the order of rows. Vectors, tables of positions and routers are
 * F32. Codes become blocks (export/ggml_encode.h) that represent them exactly, or are refused. Any other
 * weight is the result of export_dense(), rounded once to the dtype. A tokenizer becomes keys
 * (import/gguf_said.h); if keys cannot express it, only its tokenizer.json is stored.
 */
#ifndef EXPORT_GGUF_TARGET_H
#define EXPORT_GGUF_TARGET_H
#include "export/target.h"

extern const struct target gguf_target;
#endif
