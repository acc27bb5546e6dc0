/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * method.h -- the method of a layer: quantizer, settings of the solver, and rounding of inputs, from options
 */
#ifndef TRANSFORM_METHOD_H
#define TRANSFORM_METHOD_H
#include "base/option.h"
#include "branch/branch.h"
#include "model/setting.h"
#include "solver/solver.h"

struct method {
	const struct quantizer *quantizer;	/* transform/quantizer.h; NULL with keep */
	struct solver solver;
	struct branch_settings branch;	/* of a quantizer with a branch; main: `solver`; rank 0: default */
	bool keep;			/* the layer is not changed */
	bool rotates;			/* its inputs and outputs are rotated (transform/layer_rotation.h) */
	double qep, qep_damp;		/* α and λ/mean of QEP (solver/correct.h); α = 0: none */
	bool inputs_given;		/* act_mode is set; false: the model's rounding of inputs stays */
	bool inputs_follow;		/* it is set only because a compute format is given */
	enum input_mode act_mode;
	float act_clip;			/* of scales of each token; 0: 1 */
	struct format act_format;	/* kind NULL: the compute format */
	float act_max;			/* static scales are max|X|/act_max, */
	bool act_pow2;			/* rounded up to powers of two */
};

/* Values of options, before the recipe sets the rest. */
struct method_options {
	struct method method;
	enum recipe recipe;
	enum scale_type scales;
	size_t scale_bits;		/* 0: all bits of the type */
	bool two_sided;			/* method.rotates, if it is given */
	unsigned solver;		/* of method_solvers */
	bool ties_away, no_error;	/* no_error: errors of layers are not reported */
	double max, saturate, act_clip;
};

extern const char *const method_yes_no[], *const method_rotations[], *const method_scale8s[];
extern const char *const method_act_modes[];
extern const char *const method_solvers[];	/* quantizers that compensate errors */

#define OPTION_ACT_CLIP(var) { 0, "act-clip", OPTION_REAL(var), "R", \
	"clip each token at R max|x|", .default_value = "1", \
	.min = LINEAR_CLIP_MIN, .max = 1 }
/* How a branch is stored: f32, f16, bf16, or FORMAT[:G] with a scale for G columns (without G: for a row). */
struct branch_format { struct format format; long group; enum half_type type; };
#define OPTION_BRANCH_FORMAT(var) { 0, "branch-format", \
	OPTION_PARSED(struct branch_format, var, method_branch_format), \
	"TYPE|FORMAT[:G]", "type or format of the branch", \
	.default_value = "f16", .form = method_branch_form }
void method_branch_format(void *format, const char *option, const char *text);
char *method_branch_form(const void *format);

/* Rows of the options of a layer. o: a struct method_options *. kind: OPTION_STORAGE or OPTION_FORMAT.
 * types: scale_types, or scale_types_single of a tool without compute formats. */
#define METHOD_STORAGE_OPTIONS(o, kind, types) \
	{ 0, "storage", kind(&(o)->method.solver.storage), "FORMAT", "format of the codes", \
		.default_value = "uint4" }, \
	OPTION_GROUP(&(o)->method.solver.group), \
	{ 0, "scale-dtype", OPTION_CHOICE(&(o)->scales, types), NULL, \
		"type of scales (default: that of the format)" }, \
	{ 0, "scale-bits", OPTION_SIZE(&(o)->scale_bits), "N", \
		"significant scale bits (default: all)", .min = 1, .max = 24 }
#define METHOD_OPTIONS(o) \
	METHOD_STORAGE_OPTIONS(o, OPTION_STORAGE, scale_types), \
	{ 0, "compute", OPTION_FORMAT_OR_NONE(&(o)->method.solver.compute), "none|FORMAT", \
		"compute format (FP8: DPQ)", .default_value = "none" }, \
	{ 0, "compensate", OPTION_CHOICE(&(o)->method.solver.compensate, compensates), NULL, \
		"which errors later columns compensate", .default_value = "both" }, \
	{ 0, "solver", OPTION_CHOICE(&(o)->solver, method_solvers), NULL, \
		"qronos: also compensates input errors", .default_value = "gptq" }, \
	{ 0, "qep", OPTION_REAL(&(o)->method.qep), "ALPHA", \
		"share of the correction by QEP", .default_value = "0", .max = 1 }, \
	{ 0, "qep-damp", OPTION_REAL(&(o)->method.qep_damp), "LAMBDA", \
		"QEP damping, times mean diagonal", .default_value = "1", .max = 1e6 }, \
	{ 0, "paths", OPTION_SIZE(&(o)->method.solver.paths), "K", \
		"paths kept of each row (1: GPTQ)", .default_value = "1", .min = 1, .max = SOLVER_PATHS }, \
	{ 0, "turns", OPTION_SIZE(&(o)->method.solver.turns), "N", \
		"rounds of new scales, then new codes", .default_value = "0", .max = 100 }, \
	{ 0, "layer-rotation", OPTION_EITHER(&(o)->two_sided, method_rotations), NULL, \
		"rotate each layer (default: by the storage)" }, \
	{ 0, "recipe", OPTION_CHOICE(&(o)->recipe, recipes), NULL, \
		"defaults of the options below", .default_value = "late" }, \
	{ .type = OPTION_HEADING, .help = "Options that override the recipe" }, \
	{ 0, "scale-search", OPTION_CHOICE(&(o)->method.solver.search, searches), NULL, \
		"how the scale of a group is chosen" }, \
	{ 0, "round-first", OPTION_EITHER(&(o)->method.solver.round_first, method_yes_no), NULL, \
		"round to the compute format before coding" }, \
	{ 0, "group-view", OPTION_CHOICE(&(o)->method.solver.group_view, group_views), NULL, \
		"weights that determine scales of groups" }, \
	{ 0, "static-groups", OPTION_BOOL(&(o)->method.solver.static_groups), NULL, \
		"scales of groups from uncompensated weights" }, \
	{ 0, "scale8", OPTION_EITHER(&(o)->method.solver.scale8_channel, method_scale8s), NULL, \
		"one FP8 scale per tensor or channel", .default_value = "tensor" }, \
	{ 0, "pow2-scale", OPTION_EITHER(&(o)->method.solver.pow2_scale, method_yes_no), NULL, \
		"round FP8 scales up to powers of two" }, \
	{ 0, "top", OPTION_REAL(&(o)->max), "Z", \
		"FP8 scales are max|x|/Z (default: the recipe's)" }, \
	{ 0, "saturate", OPTION_REAL(&(o)->saturate), "V", \
		"largest FP8 weight (default: the recipe's)" }, \
	{ 0, "act-format", OPTION_FORMAT(&(o)->method.act_format), "FORMAT", \
		"format of activations (default: --compute)" }, \
	{ 0, "act-mode", OPTION_CHOICE(&(o)->method.act_mode, method_act_modes), NULL, \
		"scales of activations" }, \
	OPTION_ACT_CLIP(&(o)->act_clip), \
	OPTION_TIES(&(o)->ties_away), \
	{ 0, "damp", OPTION_REAL(&(o)->method.solver.damp), "LAMBDA", \
		"damping, times mean diagonal", .default_value = "0.01", .max = 1e6 }

/*
 * The method of the options. The recipe sets the options for which given() is false. If the format of inputs
 * is not the compute format, its own maximum is used, and powers of two only if pow2-scale was given. With a
 * format of inputs, the default mode is static-tensor. A storage format with its own group has that group,
 * unless one was given. The default quantizer is quantizer_of(). Options that do not fit together are a
 * misuse().
 */
struct method method_make(const struct method_options *o, bool (*given)(const void *arg, const char *option),
	const void *arg);

/* given() of a tool that has METHOD_STORAGE_OPTIONS and no other options of a layer. */
bool method_storage_given(const void *unused, const char *option);

/* misuse() unless values can be rounded to the format without parameters: no zero point, no scales of groups.
 */
void method_check_rounded(const struct format *f, const char *option);
/* misuse() if --top or --saturate is outside the range of the compute format of the options, even if it is
 * not used. */
void method_check(const struct method_options *o);

/* Warns if the option's format is easily mistaken for FP8 of hardware. */
void method_hint(const struct option_row *o);

enum { METHOD_WITHOUT_EFFECT = 11 };
/* Options without effect under the other options; the first row is that of the quantizer.
 * act_mode: whether --act-mode was given. */
void method_without_effect(const struct method_options *o, bool act_mode,
	struct option_without_effect row[METHOD_WITHOUT_EFFECT]);

/* Whether the method needs the Hessian; and whether its result depends on a Hessian that exists. If not, the
 * Hessian is used for the report only. */
bool method_needs_hessian(const struct method *m);
bool method_reads_hessian(const struct method *m);
#endif
