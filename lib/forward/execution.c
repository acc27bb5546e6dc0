/* SPDX-License-Identifier: GPL-3.0-or-later */
/* execution.c -- see execution.h */
#include "forward/execution.h"
#include "base/error.h"

static void check_device(const struct device *d, const char *part, const struct layer *l)
{
	const struct input_scale *input = &l->linear.input;

	if (l->linear.splits)
		die("%s: %s: split columns run on the processor only (--device cpu), not on %s", part,
			l->path, d->name);
	if (input->mode == INPUT_STATIC_MODALITY && input->modalities > 1)
		die("%s: %s: input scales of several modalities run on the processor only (--device cpu), "
			"not on %s", part, l->path, d->name);
}

void execution_layer(const struct execution *e, const struct part *part, struct layer *l, bool visual)
{
	struct input_scale *input = &l->linear.input;

	if (e->exact_inputs)
		*input = (struct input_scale){ 0 };
	if (input->mode == INPUT_STATIC_MODALITY && input->modalities < e->modalities && !visual)
		die("%s: %s: has input scales for %zu modalities, the tokens have %zu",
			part_name(part), l->path, input->modalities, e->modalities);
	if (e->device)
		check_device(e->device, part_name(part), l);
}
