/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_config_private.h -- the config.json that the metadata of a GGUF file stand for */
#ifndef IMPORT_GGUF_CONFIG_PRIVATE_H
#define IMPORT_GGUF_CONFIG_PRIVATE_H
#include <stdbool.h>
#include "import/gguf.h"
#include "import/gguf_table.h"

/* The row of a file's architecture. Dies, naming what is known, and on files that hold no whole model: one of
 * several parts, an adapter, a projector. */
const struct gguf_row *gguf_row_of(const struct gguf *g, const char *path);

/* Whether the tensor is part of the configuration and not of the model: factors of rotary frequencies. */
bool gguf_config_takes(const char *tensor);

/*
 * The text, free() it; path is for messages. Numbers that the file holds as float32 are the shortest
 * decimals that round to them: 1e-05, not 9.99999974737875e-06. The embedding is tied where there is no
 * output.weight. Rotary scaling: linear by its key; Llama 3's by rope_freqs.weight, the divisors of the
 * frequencies, where they are those of low_freq_factor 1 and high_freq_factor 4 and some original context;
 * longrope by its two tensors, where the class has it.
 * Dies on required keys that are missing, and on what config.json cannot say.
 */
char *gguf_config(const struct gguf *g, const char *path, const struct gguf_row *row,
	struct gguf_sizes *sizes);
#endif
