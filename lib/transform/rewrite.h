/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rewrite.h -- the weights of a model's parts, changed in double and rounded once
 */
#ifndef TRANSFORM_REWRITE_H
#define TRANSFORM_REWRITE_H
#include <stdbool.h>
#include "base/option.h"
#include "model/filter.h"
#include "num/half.h"
#include "transform/invariant.h"

/* What a layer's inputs were divided by, [in], and its outputs from row `first` on; NULL: nothing. */
struct rewrite_factors { const double *columns, *rows; };

struct rewrite {
	struct invariant change;
	enum half_type dtype;		/* of weights; biases and norms are float */
	const char *rotated;		/* how: attribute of the root; NULL: not at all */
	const char *settings;		/* that decide the layers' inputs, for the basis */
	const struct part *second;	/* input whose history is kept, under this name; NULL: none */
	const char *second_name;
	/* What the i-th norm of a part is changed by, beside `change`; NULL: nothing. */
	void (*norm)(void *arg, const struct part *part, const struct residual *here, size_t i,
		struct wide_norm *norm);
	/* What the inputs of the i-th layer, which has a source, are divided by: [in], for rewrite to free;
	 * NULL: nothing. */
	double *(*source)(void *arg, const struct part *part, const struct residual *here, size_t i);
	/* Changes a layer once more, after `norm` and `source`, if `wants` is true; this may change what the
	 * model computes. by: the factors that w has already. */
	bool (*wants)(void *arg, const struct residual_layer *l);
	void (*finish)(void *arg, const struct part *part, const struct residual_layer *l,
		const struct rewrite_factors *by, double (*w)[l->in]);
	void *arg;
};
#define OPTION_LANGUAGE(var) { 0, "language", OPTION_BOOL(var), NULL, \
	"leave the encoder of images; the projector's last layer goes with the language model" }
#define OPTION_DTYPE(var) { 0, "dtype", OPTION_ENUM(enum half_type, var, rewrite_types), NULL, \
	"type that changed weights are rounded to", .otherwise = "f32" }
extern const char *const rewrite_types[];	/* "f32", "f16", "bf16", NULL */

/* Opens the filter of a model with a configuration; dies without one. */
struct filter rewrite_open(const char *path, const char *output);
/* With --language (encoder): the encoder's stream stays, and what is within its blocks and the projector. */
void rewrite_leave(struct rewrite *r, const struct filter *f, bool encoder);
/* A part(): every layer and norm around the residual stream (model/residual.h) is changed, the rest copied.
 * Dies on quantized layers, and on static scales of inputs, which would be of other inputs. */
void rewrite_part(void *rewrite, const struct filter *f);
/* All parts, by rewrite_part(), with `check` as check_filter(): of 16-bit weights, since these are rounded,
 * and with a `finish` it only prints. */
void rewrite_filter(const struct rewrite *r, struct filter *f, bool check);
#endif
