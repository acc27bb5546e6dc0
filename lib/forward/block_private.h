/* SPDX-License-Identifier: GPL-3.0-or-later */
/* block_private.h -- attention of a block on a device */
#ifndef FORWARD_BLOCK_PRIVATE_H
#define FORWARD_BLOCK_PRIVATE_H
#include "forward/block.h"

/* w->middle = attention of the queries, keys and values in w->wide, with their norms and rotations, as on the
 * processor. The batch has no past. */
void block_device_attend(const struct block *b, struct work *w, const struct batch *batch);
#endif
