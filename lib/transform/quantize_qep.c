/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize_qep.c -- corrects weights for the error of their inputs before they are quantized; see
 * quantize_private.h */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/option.h"
#include "transform/corrected.h"
#include "transform/layers.h"
#include "transform/qep.h"
#include "transform/quantize_private.h"

static bool is_corrected(const struct quantize *q, const struct method *m, const struct layer_ref *layer)
{
	return !m->keep && m->qep > 0 && !qep_skips(q->qep_skip, layer);
}

struct skip_search {
	const struct quantize *q;
	bool matched;			/* --qep-skip matches a layer */
	bool asked, corrected;		/* the method of a layer has QEP; it is not skipped */
};

static void look_for_skipped(void *arg, const struct layer_ref *layer, size_t in)
{
	struct skip_search *w = arg;
	const struct method *m = plan_method(w->q->plan, layer->path);

	(void)in;
	w->matched |= selection_names(w->q->qep_skip, layer->path);
	w->asked |= !m->keep && m->qep > 0;
	w->corrected |= is_corrected(w->q, m, layer);
}

void quantize_check_skip(const struct quantize *q, const struct filter *f)
{
	const struct selection *skip = q->qep_skip;
	struct skip_search w = { .q = q };

	if (!skip)
		return;
	layers_each(f, q->layers, look_for_skipped, &w);
	if (w.asked && !w.corrected)
		warn("%s: no layer is corrected: --qep-skip leaves out all that have --qep%s",
			input_name(f->in), skip->n ? "" : " (default: down projections)");
	else if (option_has_effect("qep-skip") && strcmp(skip->pattern->text, "none") && !w.matched)
		warn("%s: --qep-skip matches no layer%s", input_name(f->in), selection_text(q->layers));
}

bool quantize_corrects(const struct quantize *q, const struct layer_ref *layer)
{
	return is_corrected(q, quantize_method(q, layer->path), layer);
}

bool quantize_needs_cross(const struct quantize *q, const struct layer_ref *layer)
{
	const struct method *m = quantize_method(q, layer->path);

	return !m->keep && (m->quantizer->needs_cross || is_corrected(q, m, layer));
}

/* Corrects the n layers with the inputs and the method of t[0]. */
static void correct_same(const struct quantize *q, size_t n, struct quantized *const t[n],
	const struct part *part)
{
	const struct second_moments *m = &t[0]->inputs;
	const size_t in = t[0]->weight->in;
	struct correction c = { .n = in, .h = m->hessian, .cross = m->cross, .damp = t[0]->method->qep_damp,
		.alone = in };
	void *workspace = xalloc(correct_workspace(in), 1);
	size_t index = 0;
	const enum status status = correct_make(&c, workspace, &index);

	if (status != STATUS_DONE)
		layers_fail(status, index, t[0]->layer.path, part, &q->source);
	for (size_t i = 0; i < n; i++)
		if (t[i]->inputs.hessian == m->hessian && t[i]->method == t[0]->method &&
		    is_corrected(q, t[i]->method, &t[i]->ref)) {
			t[i]->corrected = corrected_layer(&c, t[i]->method->qep, t[i]->weight,
				&t[i]->corrected_linear);
			t[i]->weight = &t[i]->corrected_linear;
		}
	free(workspace);
}

void quantize_correct(const struct quantize *q, size_t n, struct quantized *const t[n],
	const struct part *part)
{
	for (size_t i = 0; i < n; i++)
		if (is_corrected(q, t[i]->method, &t[i]->ref) && !t[i]->corrected)
			correct_same(q, n - i, t + i, part);
}
