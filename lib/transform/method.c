/* SPDX-License-Identifier: GPL-3.0-or-later */
/* method.c -- see method.h */
#include "transform/method.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/report.h"
#include "num/code_form.h"
#include "transform/quantizer.h"

const char *const method_yes_no[] = { "no", "yes", NULL };
const char *const method_rotations[] = { "none", "two-sided", NULL };
const char *const method_solvers[] = { "gptq", "qronos", NULL };
const char *const method_scale8s[] = { "tensor", "channel", NULL };
const char *const method_act_modes[] = {
	[INPUT_AS_IS] = "none", [INPUT_STATIC_TENSOR] = "static-tensor",
	[INPUT_DYNAMIC_TOKEN] = "dynamic-token", NULL
};

void method_check_rounded(const struct format *f, const char *option)
{
	if (f->asymmetric)
		misuse("--%s: %s has a zero point, expected a format without one", option, f->name);
	if (f->group)
		misuse("--%s: %s has scales of groups, expected a format without, such as e2m1", option,
			f->name);
}

static void decide_scales(struct solver *s, bool type_given, enum scale_type type, size_t bits,
	bool group_given)
{
	const enum scale_type own = s->storage.scales;

	const bool own_scales = code_has_scales(&s->storage);

	if (type_given && !own_scales && !format_scales(&s->storage, type))
		misuse("--scale-dtype: %s has scales in %s, not in %s; e2m1 has the same values under any",
			s->storage.name, scale_types[own], scale_types[type]);
	if (scale_kinds[s->storage.scales].units && !s->compute.kind)
		misuse("--scale-dtype: scales in %s multiply the second scale of a layer (scale8), which "
			"only a layer with a compute format has", scale_types[s->storage.scales]);
	s->storage.scale_bits = (int)bits;
	if (s->storage.group && (!group_given || own_scales))
		s->group = s->storage.group;
}

/* A value of --top or --saturate, from 1 to the maximum of the compute format. Without one: the default. */
static float max_of(const struct solver *s, const char *option, double value, float default_value)
{
	if (!s->compute.kind)
		return default_value;
	if (!(value >= 1 && value <= (double)s->compute.max))
		misuse("--%s: %g is not a number from 1 to %g, the largest value of %s", option, value,
			(double)s->compute.max, s->compute.name);
	return (float)value;
}

/* Completes how inputs are rounded. */
static void decide_inputs(struct method *m, double act_clip)
{
	const struct solver *s = &m->solver;

	method_check_rounded(&s->compute, "compute");
	if (!m->act_format.kind || (m->inputs_given && m->act_mode == INPUT_AS_IS))
		m->act_format = s->compute;
	else
		method_check_rounded(&m->act_format, "act-format");
	m->act_max = s->z_max;
	if (strcmp(m->act_format.name, s->compute.name))
		m->act_max = m->act_format.max;
	else
		m->act_pow2 = s->pow2_scale;
	if (m->inputs_given && m->act_mode != INPUT_AS_IS && !m->act_format.kind)
		misuse("--act-mode needs a format, from --act-format or --compute");
	if (!m->inputs_given)
		m->act_mode = m->act_format.kind ? INPUT_STATIC_TENSOR : INPUT_AS_IS;
	m->inputs_given |= m->act_format.kind != NULL;
	m->act_clip = m->act_mode == INPUT_DYNAMIC_TOKEN && act_clip < 1 ? (float)act_clip : 0;
}

/* The row of the options --solver, --compensate and --storage; NULL: none. */
static const struct quantizer *quantizer_of_options(const struct method_options *o)
{
	const struct solver *s = &o->method.solver;
	const struct quantizer *y = quantizer_named(method_solvers[o->solver]);

	return o->solver && s->compensate != COMPENSATE_NONE ? y->form == s->storage.form ? y : NULL :
		quantizer_of(s);
}

struct method method_make(const struct method_options *o, bool (*given)(const void *arg, const char *option),
	const void *arg)
{
	struct method m = o->method;
	struct solver *s = &m.solver;

	format_ties(&s->storage, o->ties_away);
	decide_scales(s, given(arg, "scale-dtype"), o->scales, o->scale_bits, given(arg, "group"));
	solver_recipe(s, o->recipe);
	if (given(arg, "scale-search"))
		s->search = o->method.solver.search;
	if (!code_is_single(&s->storage)) {	/* without effect: method_without_effect() */
		s->search = SEARCH_MINMAX;
		s->turns = 0;
	}
	if (search_reads_hessian(s->search) && s->group < 0)
		misuse("--scale-search %s: finds scales of groups and channels, not of a tensor; "
			"--scale-search mse does", searches[s->search]);
	if (given(arg, "round-first"))
		s->round_first = o->method.solver.round_first;
	if (given(arg, "group-view"))
		s->group_view = o->method.solver.group_view;
	if (given(arg, "pow2-scale"))
		s->pow2_scale = m.act_pow2 = o->method.solver.pow2_scale;
	if (given(arg, "top"))
		s->z_max = max_of(s, "top", o->max, s->z_max);
	if (given(arg, "saturate"))
		s->saturate = max_of(s, "saturate", o->saturate, s->saturate);
	if (s->paths & (s->paths - 1))
		misuse("--paths: %zu is not a power of two, expected 1, 2, 4, 8 or 16", s->paths);
	if (s->turns && s->group < 0)
		misuse("--turns: finds scales of groups and channels, not of a tensor");
	m.inputs_given = given(arg, "act-mode");
	m.inputs_follow = !m.inputs_given && !given(arg, "act-format");
	decide_inputs(&m, o->act_clip);
	s->no_error = o->no_error;
	if (!m.quantizer)
		m.quantizer = quantizer_of_options(o);
	if (!m.quantizer)
		misuse("--storage: no quantizer makes codes of %s under --compensate %s%s%s%s",
			s->storage.name, compensates[s->compensate], o->solver ? " --solver " : "",
			o->solver ? method_solvers[o->solver] : "",
			o->solver && quantizer_of(s) ? "; --solver gptq does" : "");
	m.rotates = given(arg, "layer-rotation") ? o->two_sided : m.quantizer->rotates;
	if (m.qep > 0 && m.quantizer->needs_cross)
		misuse("--qep: --solver %s compensates the error of inputs too, expected one of both",
			m.quantizer->name);
	if (m.rotates && m.act_mode == INPUT_STATIC_TENSOR)
		misuse("--layer-rotation two-sided: static scales are those of inputs before the rotation; "
			"expected --act-mode dynamic-token or none, or --layer-rotation none");
	return m;
}

bool method_storage_given(const void *unused, const char *option)
{
	(void)unused;
	return (!strcmp(option, "group") || !strcmp(option, "scale-dtype")) && option_has_effect(option);
}

void method_check(const struct method_options *o)
{
	if (option_given("top"))
		max_of(&o->method.solver, "top", o->max, 0);
	if (option_given("saturate"))
		max_of(&o->method.solver, "saturate", o->saturate, 0);
}

void method_hint(const struct option_row *o)
{
	if (o->type == OPTION_PARSED && (o->parse == setting_format || o->parse == setting_storage ||
		o->parse == setting_format_or_none))
		setting_hint(o->var.parsed, o->name);
}

/* Whether --scale-bits gives scales fewer bits than their type has. */
static bool is_coarser(const struct method_options *o)
{
	const enum scale_type own = o->method.solver.storage.scales, type = own ? own : o->scales;

	return scale_kind_of(type, (int)o->scale_bits).step > scale_kinds[type].step;
}

void method_without_effect(const struct method_options *o, bool act_mode,
	struct option_without_effect row[METHOD_WITHOUT_EFFECT])
{
	const struct method *m = &o->method;
	const struct solver *s = &m->solver;
	const struct quantizer *z = m->quantizer ? m->quantizer : quantizer_of_options(o);
	const struct option_without_effect none = { 0 };
	const bool fp8 = s->compute.kind;
	const bool as_is = act_mode && m->act_mode == INPUT_AS_IS;
	const bool scales = act_mode ? m->act_mode == INPUT_STATIC_TENSOR : fp8 || m->act_format.kind;
	const struct option_without_effect rows[METHOD_WITHOUT_EFFECT] = {
		z ? z->without_effect : none,
		{ s->group <= 0, "static-groups group-view", "one group per row" },
		{ s->static_groups, "group-view", "--static-groups" },
		{ s->compensate == COMPENSATE_STORAGE && !fp8, "compensate", "--compute none" },
		{ !fp8, "round-first scale8 top saturate", "--compute none" },
		{ !fp8 && !scales, "pow2-scale", "no FP8 scale and no static scale" },
		{ as_is, "act-format", "--act-mode none" },
		{ !act_mode || m->act_mode != INPUT_DYNAMIC_TOKEN, "act-clip", "no scale of each token" },
		{ s->storage.scales, "scale-dtype", "a storage with its own" },
		{ !is_coarser(o), "scale-bits", "scales have no more" },
		{ !(m->qep > 0), "qep-damp", "no --qep" },
	};

	memcpy(row, rows, sizeof rows);
}

bool method_needs_hessian(const struct method *m)
{
	return m->quantizer->needs_hessian || m->qep > 0 || m->act_mode == INPUT_STATIC_TENSOR ||
		search_reads_hessian(m->solver.search);
}

bool method_reads_hessian(const struct method *m)
{
	return m->quantizer->reads_hessian || method_needs_hessian(m);
}

static const struct { const char *name; enum half_type type; } types[] = {
	{ "f32", HALF_NONE }, { "f16", HALF_F16 }, { "bf16", HALF_BF16 },
};
enum { TYPES = sizeof types / sizeof *types };

void method_branch_format(void *format, const char *option, const char *text)
{
	struct branch_format *f = format;
	const size_t n = strcspn(text, ":");
	char *name = xformat("%.*s", (int)n, text);

	*f = (struct branch_format){ .group = 0 };
	for (size_t i = 0; i < TYPES; i++)
		if (!strcmp(types[i].name, text)) {
			f->type = types[i].type;
			free(name);
			return;
		}
	setting_format(&f->format, option, name);
	free(name);
	f->group = (long)f->format.group;
	if (text[n])
		setting_group(&f->group, option, text + n + 1);
}

char *method_branch_form(const void *format)
{
	const struct branch_format *f = format;

	if (!f->format.kind)
		return xformat("%s", types[f->type].name);
	return f->group > 0 ? xformat("%s:%ld", f->format.name, f->group) :
		xformat("%s%s", f->format.name, f->group ? ":tensor" : "");
}
