/* SPDX-License-Identifier: GPL-3.0-or-later */
/* logits_private.h -- logits_tiles() on a device */
#ifndef FORWARD_LOGITS_PRIVATE_H
#define FORWARD_LOGITS_PRIVATE_H
#include "forward/logits.h"

/* The final norms are done. Tiles have all entries of the vocabulary. */
void logits_device_tiles(size_t models, struct forward *const f[models], const struct head *const h[models],
	logits_visit *visit, void *arg);
#endif
