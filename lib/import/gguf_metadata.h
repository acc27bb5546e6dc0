/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gguf_metadata.h -- a model's configuration as the metadata of a GGUF file: the way of
 * gguf_config_private.h backwards
 *
 *	const struct gguf_row *row = gguf_row_for(config, from);
 *
 *	gguf_put_config(o, row, config);
 *	gguf_room(o, bytes);
 *	gguf_put_rope(o, row, config);
 *	gguf_check_config(o, row, config, from);
 */
#ifndef IMPORT_GGUF_METADATA_H
#define IMPORT_GGUF_METADATA_H
#include "import/gguf_output.h"
#include "import/gguf_table.h"
#include "model/config.h"

/* The row of the model's class; from: the model, for messages. Dies where GGUF has no such class. */
const struct gguf_row *gguf_row_for(const struct config *c, const char *from);
/* Sizes, heads, positions, windows, soft-caps, the ids that begin and end a text. */
void gguf_put_config(struct gguf_output *o, const struct gguf_row *row, const struct config *c);
/* Tensors that are part of the configuration: divisors of rotary frequencies. */
void gguf_put_rope(struct gguf_output *o, const struct gguf_row *row, const struct config *c);
enum { GGUF_ROPE_TENSORS = 2 };	/* of them, at most */
/* Dies, naming it, where something of the configuration is another when the metadata are read back. */
void gguf_check_config(struct gguf_output *o, const struct gguf_row *row, const struct config *c,
	const char *from);
#endif
