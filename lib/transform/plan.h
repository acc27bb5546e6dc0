/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plan.h -- the method of each layer: the options, overridden by the lines of a plan
 *
 * A plan is a text. A line is a glob of layers, followed by option=value pairs with the names of options; #
 * begins a comment. A later line overrides earlier ones for the layers that it matches. `keep` instead of the
 * pairs leaves a layer unchanged, unless a later line matches it.
 *
 *	*		storage=uint4 group=64
 *	*down_proj	storage=uint8 group=channel
 *
 * Calling sequence: plan_read() or plan_single(); plan_note() for each layer; plan_check(); plan_warn();
 * plan_method() for each layer; plan_end(); plan_free().
 */
#ifndef TRANSFORM_PLAN_H
#define TRANSFORM_PLAN_H
#include "base/option.h"
#include "model/layer_ref.h"
#include "transform/method.h"

struct plan {
	const char *name;			/* of the file; NULL: options only */
	const struct method_options *options;	/* of the command line */
	size_t n;
	struct plan_line *line;			/* [n] */
	size_t methods;
	struct plan_method *method;		/* [methods] of layers so far */
};

/*
 * Reads a plan. path NULL: no plan. rows: the tool's options, after parsing; rows whose variable is a member
 * of *options are the options of a layer. Lines are applied to copies of *options, which must not change and
 * must outlive the plan. A line that cannot be parsed, or that has an invalid value of an option, is a
 * misuse(), which names the line.
 */
struct plan plan_read(const char *path, const struct option_row *rows, const struct method_options *options);
/* A plan with this method for all layers. */
struct plan plan_single(const struct method *m);
/* The method of a layer; the same pointer for layers that the same lines match. It also notes the layer.
 * Without lines it is the method of the options, and layer may be NULL. */
const struct method *plan_method(struct plan *p, const char *layer);
/* Notes a layer for plan_check(); a visit() of layer_each(). */
void plan_note(void *plan, const struct layer_ref *layer, size_t in);
/* Fatal error if a pattern matches no noted layer. Call it after all layers of the file `name` are noted. */
void plan_check(const struct plan *p, const char *name);
/*
 * Warns of options of the command line without effect. known: plan_method() was called for all layers, and an
 * option has no effect if it has none under all these methods. Otherwise it has none if it has none under
 * each line by itself. Call it before the history is written.
 */
void plan_warn(struct plan *p, bool known);
void plan_free(struct plan *p);
/* Warns of settings of lines without effect. Call it after plan_method() of all layers. */
void plan_end(struct plan *p);
#endif
