/* SPDX-License-Identifier: GPL-3.0-or-later */
/* projection_device_private.h -- a projection in the memory of a device */
#ifndef FORWARD_PROJECTION_DEVICE_PRIVATE_H
#define FORWARD_PROJECTION_DEVICE_PRIVATE_H
#include <stdbool.h>
#include "forward/projection_device.h"

struct device_layer {
	bool words;			/* packed words are multiplied: `packed`; else weights of a type */
	struct device_packed packed;
	enum device_type type;
	size_t at;			/* byte at which its weights begin */
	void *a, *b;			/* of the branch */
	struct device_rotation after;	/* inverse of the rotation of outputs */
	struct device_format format, format_a, format_b;	/* of rounded inputs */
};

struct device_projection {
	size_t bytes;
	void *weight;			/* of all layers without packed words, in their order */
	float *bias;
	float *scale;			/* [out] of layers that are bytes */
	struct device_rotation before;	/* of inputs */
	struct device_layer layer[LINEARS];
	/* weights before their conversion; rounded inputs and their scales; A x; outputs before a rotation */
	struct workspace raw, rounded, rows, low, after;
};

/* The type of weights that are not multiplied as bytes or words, and of branches. */
static inline enum device_type plain_type(const struct projection *s)
{
	return s->type == COMPUTE_BF16 ? DEVICE_BF16 : DEVICE_F32;
}

static inline bool is_bytes(enum device_type type)
{
	return type == DEVICE_INT8 || type == DEVICE_E4M3;
}
#endif
