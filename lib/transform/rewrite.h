/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rewrite.h -- a filter that changes the weights and norms of a model in double and rounds them once
 *
 * Calling sequence: rewrite_open(); fill a struct rewrite, with rewrite_exclude_encoder() if the tool has
 * --language; rewrite_filter(). A model without a configuration, quantized layers, and norms that make the
 * change impossible are fatal errors.
 */
#ifndef TRANSFORM_REWRITE_H
#define TRANSFORM_REWRITE_H
#include <stdbool.h>
#include "base/option.h"
#include "model/filter.h"
#include "num/half.h"
#include "transform/invariant.h"

/* Divisors of a layer's inputs, [in], and of its outputs from row `first` on; NULL: all 1. */
struct rewrite_factors { const double *columns, *rows; };

struct rewrite {
	struct invariant change;
	enum half_type dtype;		/* of weights; biases and norms are float */
	const char *rotated;		/* attribute `rotated` of the root; NULL: no rotation */
	const char *settings;		/* settings that change the layers' inputs, for the basis; NULL: the
					 * inputs do not change */
	const struct part *second;	/* second input, whose history is written; NULL: none */
	const char *second_name;	/* name of that history */
	const char *calibration;	/* line of the attribute `calibration`, or NULL */
	/* Called before a part with layers or norms is changed. NULL: no function. */
	void (*begin)(void *arg, const struct filter *f, const struct residual *here);
	/* Sets the factors of the i-th norm of a part, in addition to `change`. NULL: no function. */
	void (*norm)(void *arg, const struct part *part, const struct residual *here, size_t i,
		struct wide_norm *norm);
	/* Returns the divisors of the outputs of the source of the i-th layer, from row `first` on: [in /
	 * shared], freed by the caller, or NULL. NULL: no function. */
	double *(*source)(void *arg, const struct part *part, const struct residual *here, size_t i);
	/* Returns the divisors of the outputs of the i-th layer: [out], freed by the caller, or NULL. NULL:
	 * no function. */
	double *(*outputs)(void *arg, const struct part *part, const struct residual *here, size_t i);
	/* finish() changes a layer after `norm` and `source`, if needs_finish() returns true. It may change
	 * the function of the model. by: the factors that are in w. */
	bool (*needs_finish)(void *arg, const struct residual_layer *l);
	void (*finish)(void *arg, const struct part *part, const struct residual_layer *l,
		const struct rewrite_factors *by, double (*w)[l->in]);
	void *arg;
};
#define OPTION_LANGUAGE(var) { 0, "language", OPTION_BOOL(var), NULL, \
	"leave the vision encoder unchanged" }
#define OPTION_DTYPE(var) { 0, "dtype", OPTION_ENUM(enum half_type, var, rewrite_types), NULL, \
	"type of changed weights", .default_value = "f32" }
extern const char *const rewrite_types[];	/* "f32", "f16", "bf16", NULL */

/* Opens the filter of a model. A missing configuration is a fatal error. */
struct filter rewrite_open(const char *path, const char *output);
/* encoder (--language): the encoder's stream, the insides of its blocks, and the projector are not changed.
 */
void rewrite_exclude_encoder(struct rewrite *r, const struct filter *f, bool encoder);
/* Changes every layer and norm of the residual stream (model/residual.h) in all parts, and copies the rest.
 * Static scales of inputs are a fatal error, since they would not fit the new inputs. check: as in
 * check_filter(), but a difference is no error with 16-bit weights, which are rounded, or with finish(). */
void rewrite_filter(const struct rewrite *r, struct filter *f, bool check);
#endif
