/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * quantize.h -- quantizes the layers of a file, each by its method (transform/plan.h, transform/quantizer.h)
 *
 * Calling sequence: quantize_check(); quantize_check_layers(); quantize_part() for each part
 * (model_filter()); quantize_end(). Bad data, and inputs that do not fit, are fatal errors, which name file
 * and path.
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
	struct moments_source source;	/* name, order_name NULL: no Hessian, no order */
	struct moments_files files;	/* files of the source, for the history; NULL: none */
	const struct part *tokens;	/* tokens of a source in memory, for the history */
	const char *calibration;	/* their line of the attribute (model/calibrated.h) */
	struct part *reference;		/* model with the weights before quantization; NULL: the input */
	const struct selection *qep_skip;	/* layers that QEP leaves as they are (transform/qep.h) */
	enum order_kind reorder;	/* computed from Hessian and group, if the source has no order */
	enum order_key key;
	size_t seed;			/* of the signs of rotated layers */
	const struct device *device;	/* NULL: the processor */
	const struct cache_format *kv;	/* of the result; NULL or not given: as in the model */
	/* Calls quantize_layers() for the layers of a part, which may be none. NULL: all layers of the list
	 * are quantized in order, and each result is released after it is written. */
	void (*walk)(void *arg, const struct filter *f, const struct layer_list *list);
	void (*pass)(void *arg, const struct filter *f);	/* for a part finished by an earlier run */
	void *arg;
	size_t done;
	bool reads_hessian;		/* by the method of a layer; set by quantize_check_layers() */
	/* Each warning is printed once. */
	bool warned_plain, warned_inputs, warned_moments, warned_device, warned_result, warned_order,
		warned_tied;
	size_t made;
	struct quantized **layer;	/* [made] until quantize_release() */
};

/* Whether the method uses an order of the columns. Without compensation an order sets only which columns
 * share a group, and a group-aware one leaves the groups as they are. */
bool quantize_takes_order(const struct quantize *q, const struct method *m);
/* Fatal error or misuse() unless the options fit the files. With a plan, each layer is checked later instead.
 */
void quantize_check(struct quantize *q);

/*
 * Checks the layers before the first is quantized. Fatal errors: no layer is selected; a line of the plan
 * matches no layer; a layer has no Hessian or order, or does not fit its quantizer. Layers are checked as far
 * as the first part, which must have been read, determines them.
 */
void quantize_check_layers(struct quantize *q, const struct filter *f);

/*
 * Quantizes the selected layers of a part, reports each on standard error, and copies the rest. A part
 * without selected layers is passed on unchanged. Static activation scales are max|X|/Z over the calibration
 * tokens (DPQ eq. 13). With a reference, layers of the input that are not quantized are not changed.
 */
void quantize_part(void *quantize, const struct filter *f);
/* Quantizes n layers of the current part, except for kept ones. With a walk(), appends the results to
 * q->layer. */
void quantize_layers(struct quantize *q, const struct filter *f, size_t n,
	const struct layer_ref layer[n]);
void quantize_release(struct quantize *q);
bool quantize_keeps(const struct quantize *q, const char *layer);
/* Whether the method of the layer reads cross moments of its inputs. */
bool quantize_needs_cross(const struct quantize *q, const struct layer_ref *layer);
/* finished() of the filter: reports the layers that an earlier run has quantized, as that run did. */
void quantize_finished(void *quantize, const struct filter *f);
/* Fatal error if the file `name` had no layer. Warns of settings of the plan without effect. */
void quantize_end(struct quantize *q, const char *name);
#endif
