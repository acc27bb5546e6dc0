/* SPDX-License-Identifier: GPL-3.0-or-later */
/* block_private.h -- attention of a block on a device */
#ifndef FORWARD_BLOCK_PRIVATE_H
#define FORWARD_BLOCK_PRIVATE_H
#include "forward/block.h"

/* Norms, places and attends as the processor does: w->wide has queries, keys and values, w->middle becomes
 * the output of attention. The batch has no past. */
void block_device_attend(const struct block *b, struct work *w, const struct batch *batch);
#endif
