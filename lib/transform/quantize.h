/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantize.h -- layers of a file through quantizers (transform/quantizer.h), each by its method: weight,
 * second moments and order in; codes and parameters, and branches, out
 */
#ifndef TRANSFORM_QUANTIZE_H
#define TRANSFORM_QUANTIZE_H
#include "base/selection.h"
#include "calib/hessian.h"
#include "io/part.h"
#include "model/filter.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "solver/order.h"
#include "transform/plan.h"
#include "transform/quantizer.h"

struct quantize {
	struct plan *plan;
	const struct selection *layers;
	struct moments_source source;	/* name, order_name NULL: it knows no Hessian, no order */
	struct moments_files files;	/* with it, for the history; NULL: none */
	const struct part *tokens;	/* likewise, of a source in memory */
	const char *calibration;	/* and its line of model/calibrated.h */
	struct part *reference;		/* the weights before the input's were quantized; NULL: the input's */
	enum order_kind reorder;	/* where the source has no order: by Hessian and group of the layer */
	enum order_key key;
	const struct cache_format *kv;	/* of the result; not given: as the model has it; NULL: likewise */
	/* Who takes the layers of a part, of which there may be none, to quantize_layers(). NULL: all of
	 * them, in the order of the list, and what was made of them is released. */
	void (*walk)(void *arg, const struct filter *f, const struct layer_list *list);
	void (*pass)(void *arg, const struct part *result);	/* a part that an earlier run has finished */
	void *arg;
	size_t done;
	bool reads_hessian;		/* a method does, of the layers that quantize_check_layers() found */
	bool warned_plain, warned_inputs, warned_result;	/* each warning is given once */
	size_t made;
	struct quantized **layer;	/* [made] until quantize_release() */
};

/* Dies, or calls misuse(), unless the options fit the files; under a plan that is asked of each layer. */
void quantize_check(struct quantize *q);

/*
 * Dies, before the first layer is quantized, if none is selected, a line of the plan matches none, or one
 * lacks its Hessian or its order, or does not fit its quantizer: as far as the first part, which was read,
 * tells which there are.
 */
void quantize_check_layers(struct quantize *q, const struct filter *f);

/*
 * Quantizes the selected layers of a part, reports each on standard error, and
 * copies the rest; a part that has none is passed on. Activation scales are
 * max|X|/Z over the calibration tokens (DPQ eq. 13). Dies on a weight, Hessian
 * or order that does not fit, naming file and path. With a reference, layers that are not quantized stay.
 */
void quantize_part(void *quantize, const struct filter *f);
/* Quantizes n layers of the current part, which see one input or none, but for those that are kept. What was
 * made of them stays in q->layer behind what is there. */
void quantize_layers(struct quantize *q, const struct filter *f, size_t n,
	const struct layer_ref layer[n]);
void quantize_release(struct quantize *q);
bool quantize_keeps(const struct quantize *q, const char *layer);
/* For the filter's finished(): reports the layers that an earlier run has quantized, as that has. */
void quantize_finished(void *quantize, const struct filter *f);
/* Dies if there was no layer in `name`. */
void quantize_end(struct quantize *q, const char *name);
#endif
