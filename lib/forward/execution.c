/* SPDX-License-Identifier: GPL-3.0-or-later */
/* execution.c -- see execution.h */
#include "forward/execution.h"
#include "base/error.h"

void execution_layer(const struct execution *e, const struct part *part, struct layer *l, bool visual)
{
	struct input_scale *input = &l->linear.input;

	if (e->exact_inputs)
		*input = (struct input_scale){ 0 };
	if (input->mode == INPUT_STATIC_MODALITY && input->modalities < e->modalities && !visual)
		die("%s: %s: has input scales for %zu modalities, the tokens have %zu",
			part_name(part), l->path, input->modalities, e->modalities);
}
