/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * online.h -- Hadamard matrices that inputs of layers pass, each built once
 *
 * The blocks of a model have the same few.
 */
#ifndef FORWARD_ONLINE_H
#define FORWARD_ONLINE_H
#include <stddef.h>
#include "num/hadamard.h"

/* in / order blocks, which the layer's members allow; NULL for order 0. One thread calls it at a time. */
const struct hadamard *online_hadamard(size_t in, size_t order);
#endif
