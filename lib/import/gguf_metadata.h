/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_metadata.h -- metadata of a GGUF file from a model's configuration: the inverse of
 * gguf_config_private.h
 *
 *	const struct gguf_row *row = gguf_row_for(config, from);
 *
 *	gguf_put_config(o, row, config);
 *	gguf_reserve_table(o, bytes);
 *	gguf_put_rope(o, row, config);
 *	gguf_check_config(o, row, config, from);
 */
#ifndef IMPORT_GGUF_METADATA_H
#define IMPORT_GGUF_METADATA_H
#include "import/gguf_output.h"
#include "import/gguf_table.h"
#include "model/config.h"

/* The row of the model's class. from: the model, for messages. A class that GGUF does not have is a fatal
 * error. */
const struct gguf_row *gguf_row_for(const struct config *c, const char *from);
/* Writes sizes, heads, positions, windows, soft-caps, and the ids of BOS and EOS. */
void gguf_put_config(struct gguf_output *o, const struct gguf_row *row, const struct config *c);
/* Writes the tensors that belong to the configuration: divisors of rotary frequencies. */
void gguf_put_rope(struct gguf_output *o, const struct gguf_row *row, const struct config *c);
enum { GGUF_ROPE_TENSORS = 2 };	/* at most so many of these tensors */
/* Reads the metadata back. A value that differs from the configuration is a fatal error, which names it. */
void gguf_check_config(struct gguf_output *o, const struct gguf_row *row, const struct config *c,
	const char *from);
#endif
