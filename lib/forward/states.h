/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * states.h -- a model that has run up to its head, as a file
 *
 * It has what logits are computed from: the hidden states after the last block, the final norm and the
 * output layer. Logits are those of the model, bit for bit, on the same device and kind of processor. Only
 * for windows of text.
 *
 *	/config			the configuration
 *	/hidden_states		f32 [rows][hidden], attribute compute_type
 *	/row			int32 [rows][2]: the token, and its window
 *	the groups of the final norm and of the output layer, as in the model
 *
 * run.h reads and writes it.
 */
#ifndef FORWARD_STATES_H
#define FORWARD_STATES_H
#include <stdbool.h>
#include "forward/forward.h"
#include "io/part.h"

/* Whether the first part is of such a file. Fatal error if it is of another result. */
bool states_in(const struct part *first);
/* Takes the hidden states in place of running the embeddings and blocks. Fatal error if they are of other
 * tokens, windows or arithmetic. */
void states_read(struct forward *f, const struct part *first);
/* Writes /config, from the first part of the model. Fatal error if the windows have images, positions or
 * modalities. */
void states_begin(struct output *out, const struct part *first, const struct windows *w);
/* Writes the rest, from the part of the model that has its head, after all blocks and before
 * forward_head(). */
void states_write(struct output *out, const struct forward *f, const struct part *head);
#endif
