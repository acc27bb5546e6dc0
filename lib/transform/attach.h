/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attach.h -- a low-rank branch beside each linear layer of a model, by a method of branch/branch.h: weight
 * and second moments in; codes, parameters and branch out
 */
#ifndef TRANSFORM_ATTACH_H
#define TRANSFORM_ATTACH_H
#include <stdbool.h>
#include <stddef.h>
#include "base/option.h"
#include "base/selection.h"
#include "branch/branch.h"
#include "calib/hessian.h"
#include "io/part.h"
#include "model/filter.h"

enum { ATTACH_SHARE = 32 };		/* the usual rank is a 32nd of a layer's inputs: 128 of 4096 */

struct attach {
	const struct branch_method *method;
	struct branch_settings settings;	/* rank 0: in/ATTACH_SHARE of each layer, at least 1 */
	const struct selection *layers;
	struct moments_source source;		/* name NULL: it knows no Hessian */
	const struct part *hessian;		/* behind it, for the history, or NULL */
	/* the weights before the input's were quantized; NULL: the input's */
	struct part *reference;
	const char *input;			/* its name, for messages */
	const struct config *config;		/* its, or NULL */
	size_t plain;				/* layers that are not quantized, beside a reference */
	size_t done, halved;
};

/* Names of the methods that go with a reference, for messages; free() it. */
char *attach_takers(void);

/* How a branch is stored: f32, f16, bf16, or FORMAT[:G], G columns under a scale, or else a row. */
struct attach_format { struct format format; long group; enum half_type type; };
#define OPTION_BRANCH_FORMAT(var) { 0, "branch-format", \
	OPTION_PARSED(struct attach_format, var, attach_format), \
	"TYPE|FORMAT[:G]", "f32, f16, bf16, or a format with a scale for G columns (default: a row)", \
	.otherwise = "f16", .form = attach_form }
void attach_format(void *format, const char *option, const char *text);
char *attach_form(const void *format);

/* Dies, before the first layer is read, if none is selected, or one lacks its Hessian, is smaller than the
 * rank or quantized already: as far as the configuration, a file, or the first part of a stream tells. */
void attach_check(struct attach *a, const struct filter *f);
/* For model_filter(): gives each selected layer of the part its branch, reports it on standard error, and
 * copies the rest; a part that has none is passed on. Dies on what does not fit, naming file and path. */
void attach_part(void *attach, const struct filter *f);
/* For the filter's finished(): reports the layers that an earlier run has made. */
void attach_finished(void *attach, const struct filter *f);
/* Dies if there was no layer in `name`. */
void attach_end(struct attach *a, const char *name);
#endif
