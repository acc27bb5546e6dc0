/* SPDX-License-Identifier: GPL-3.0-or-later */
/* logits.h -- all logits of a small model */
#ifndef TESTS_LOGITS_H
#define TESTS_LOGITS_H
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "forward/forward.h"
#include "forward/head.h"

/* [rows of the windows][vocab]; free() them. memory: as in forward_open(). observer: of inputs; or NULL */
static float *logits_of(const struct part *part, const struct config *c, const struct execution *e,
	const struct windows *w, size_t memory, const struct observer *observer)
{
	struct forward *f = forward_open(c, e, w, memory);
	struct head head = head_read(part, c, e, false);
	const size_t hidden = f->hidden.width;
	float *x = xalloc(w->rows * hidden, sizeof *x), *y = xalloc(w->rows * c->vocab, sizeof *y);

	assert_true(forward_part(f, part, observer));
	memcpy(x, f->hidden.x, w->rows * hidden * sizeof *x);
	if (!f->normed)
		head_norm(&head, &(struct batch){ .rows = w->rows }, (float (*)[hidden])x,
			(const float (*)[hidden])x, NULL);
	head_forward(&head, w->rows, (float (*)[c->vocab])y, (const float (*)[hidden])x, w->modality);
	head_free(&head);
	forward_close(f);
	free(x);
	return y;
}
#endif
