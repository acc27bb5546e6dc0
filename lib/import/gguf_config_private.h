/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_config_private.h -- config.json from the metadata of a GGUF file */
#ifndef IMPORT_GGUF_CONFIG_PRIVATE_H
#define IMPORT_GGUF_CONFIG_PRIVATE_H
#include <stdbool.h>
#include "import/gguf.h"
#include "import/gguf_table.h"

/* The row of a file's architecture. Fatal errors: an architecture that is not supported (the message lists
 * those that are), and files without a whole model: one of several parts, an adapter, a projector. */
const struct gguf_row *gguf_row_of(const struct gguf *g, const char *path);

/* Whether the tensor belongs to the configuration, not to the model: factors of rotary frequencies. */
bool gguf_config_takes(const char *tensor);

/*
 * The text; free() it. path is for messages.
 *
 * A float32 of the file becomes the shortest decimal that rounds to it: 1e-05, not 9.99999974737875e-06. The
 * embedding is tied if output.weight is absent.
 *
 * Rotary scaling: linear comes from its key. Llama 3's comes from rope_freqs.weight, the divisors of the
 * frequencies, which must fit low_freq_factor 1, high_freq_factor 4 and some original context. longrope comes
 * from its two tensors, if the class supports it.
 *
 * Fatal errors: a required key is missing, or config.json cannot express a value.
 */
char *gguf_config(const struct gguf *g, const char *path, const struct gguf_row *row,
	struct gguf_sizes *sizes);
#endif
