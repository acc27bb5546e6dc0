/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * plan.h -- the method of each layer: the options, overridden by the lines of a plan
 *
 * A plan is text, one line a pattern: a glob of layers, then option=value pairs
 * named as the options; # begins a comment. A later line overrides an earlier one
 * for the layers that it matches. `keep` in place of the pairs leaves a layer
 * alone, unless a later line matches it.
 *
 *	*		storage=uint4 group=64
 *	*down_proj	storage=uint8 group=channel
 */
#ifndef TRANSFORM_PLAN_H
#define TRANSFORM_PLAN_H
#include "base/option.h"
#include "model/layer_ref.h"
#include "transform/method.h"

struct plan {
	const char *name;			/* of the file; NULL: only the options speak */
	const struct method_options *options;	/* of the command line */
	size_t n;
	struct plan_line *line;			/* [n] */
	size_t methods;
	struct plan_method *method;		/* [methods] of layers asked for so far */
};

/*
 * path NULL: there is none. rows: the tool's, parsed; those whose variable is a member of *options are the
 * options of a layer. Lines are applied to copies of *options, which stays as the command line has set it,
 * and is needed as long as the plan. A line that cannot be read, or gives an option a value that the command
 * line could not, is a misuse, naming it.
 */
struct plan plan_read(const char *path, const struct option_row *rows, const struct method_options *options);
/* The plan under which all layers have this method. */
struct plan plan_single(const struct method *m);
/* The method of a layer, which is noted; the same one for layers that the same lines match. Without lines it
 * is that of the options, and layer may be NULL. */
const struct method *plan_method(struct plan *p, const char *layer);
/* Notes that a layer is there, for plan_check(): a visit of layer_each(). */
void plan_note(void *plan, const struct layer_ref *layer, size_t in);
/* All layers are noted: dies if a pattern matches none of them, in `name`. */
void plan_check(const struct plan *p, const char *name);
/*
 * Warns of options of the command line that change nothing: under every method asked for so far, where
 * these are known to be all of them, otherwise under each line by itself. Before the history is asked for.
 */
void plan_warn(struct plan *p, bool known);
void plan_free(struct plan *p);
/* All methods have been asked for: warns of settings that changed nothing. */
void plan_end(struct plan *p);
#endif
