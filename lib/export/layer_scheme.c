/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer_scheme.c -- see layer_scheme.h */
#include "export/layer_scheme.h"
#include <string.h>
#include "base/error.h"
#include "export/export_codes.h"

#define REFUSE(text, ...) die("%s: %s: " text, e->from, w->layer->path, __VA_ARGS__)

/* Codes of both formats are valid e4m3fn; e4m3ieee has a smaller range. */
bool layer_scheme_has(const struct format *f)
{
	return !strcmp(f->name, "e4m3fn") || !strcmp(f->name, "e4m3ieee");
}

/* written: names of formats of inputs that this target writes with the format of the weight */
static void set_inputs(const struct export *e, const struct export_weight *w, const char *written,
	struct compressed_scheme *s)
{
	const struct input_scale *in = &w->layer->linear.input;

	if (!linear_rounds(&w->layer->linear) || e->options.weights_only)
		return;
	if (strcmp(in->format.name, s->format->inputs))
		REFUSE("rounds its inputs to %s; with %s weights this target writes inputs of %s; "
			"--weights-only leaves their rounding out", in->format.name,
			w->layer->linear.storage.name, written);
	if (in->modalities > 1 || (in->clip > 0 && in->clip < 1))
		REFUSE("rounds its inputs with %s, which no scheme has; --weights-only leaves that out",
			in->modalities > 1 ? "one scale per modality" :
			"a clipped scale (act_clip)");
	s->inputs = in->mode == INPUT_DYNAMIC_TOKEN ? COMPRESSED_TOKEN : COMPRESSED_STATIC;
}

static void set_groups(const struct export *e, const struct export_weight *w, struct compressed_scheme *s)
{
	const struct linear *l = &w->layer->linear;

	s->strategy = l->group == -1 ? COMPRESSED_TENSOR : l->groups == 1 ? COMPRESSED_CHANNEL :
		COMPRESSED_GROUP;
	if (s->strategy == COMPRESSED_TENSOR &&
	    (w->n > 1 || s->format->layout == COMPRESSED_WORDS || e->options.unify_scales))
		s->strategy = COMPRESSED_CHANNEL;	/* all channels get the same scale */
	if (s->strategy != COMPRESSED_GROUP)
		return;
	s->group = (size_t)l->group;
	if (l->in % s->group)
		REFUSE("has %zu columns, not a multiple of its group of %zu; expected a divisor, or channel",
			l->in, s->group);
}

/* Whether integers are packed: with inputs that are not rounded, or FP8 inputs with scales per token
 * (W4AFP8). */
static bool is_packed(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;

	if (!linear_rounds(l) || e->options.weights_only)
		return true;
	if (strcmp(l->input.format.name, "e4m3fn"))
		return false;
	if (l->input.mode != INPUT_DYNAMIC_TOKEN)
		REFUSE("is %s and rounds its inputs to e4m3fn with one scale; this target writes such "
			"inputs with one scale per token (dpq-run --act-mode dynamic-token); --weights-only "
			"leaves their rounding out", l->storage.name);
	return true;
}

/* Signed integers, or codes with a zero point. */
static struct compressed_scheme integers(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	struct compressed_scheme s = { .bits = l->storage.bits };

	if (s.bits < 2)
		REFUSE("is %s, which no scheme has: integers have 2 to 8 bits; --to hf writes it plainly",
			l->storage.name);
	s.asymmetric = !export_is_symmetric(w);
	s.format = compressed_format(is_packed(e, w) ? "pack-quantized" : "int-quantized");
	set_inputs(e, w, "int8, or e4m3fn with one scale per token", &s);
	set_groups(e, w, &s);
	if (s.format->layout == COMPRESSED_WORDS)
		return s;
	if (s.asymmetric)
		REFUSE("has zero points and rounded inputs: no scheme has both, expected int%d", s.bits);
	if (s.bits == 4 && s.inputs == COMPRESSED_TOKEN && s.strategy == COMPRESSED_TENSOR)
		s.strategy = COMPRESSED_CHANNEL;
	if (s.bits != 8 && (s.bits != 4 || s.inputs == COMPRESSED_STATIC))
		REFUSE("is %s with inputs of int8 and %s: no scheme has both; expected int8 weights, or "
			"--weights-only", l->storage.name,
			s.inputs == COMPRESSED_STATIC ? "one scale" : "one scale per token");
	if (s.bits == 8 && s.strategy == COMPRESSED_GROUP)
		REFUSE("is %s in groups of %zu with rounded inputs: no scheme has both; expected one scale "
			"per channel, or --weights-only", l->storage.name, s.group);
	return s;
}

static struct compressed_scheme floats(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	struct compressed_scheme s = { .format = compressed_format("float-quantized") };

	s.bits = s.format->bits;
	set_inputs(e, w, s.format->inputs, &s);
	if (l->compute.kind)
		s.strategy = l->scales8 > 1 || w->n > 1 || e->options.unify_scales ? COMPRESSED_CHANNEL :
			COMPRESSED_TENSOR;
	else
		set_groups(e, w, &s);
	if (s.strategy == COMPRESSED_GROUP)
		REFUSE("is %s in groups of %zu: no scheme has both; expected one scale per channel, --to hf "
			"writes it plainly", l->storage.name, s.group);
	return s;
}

/* The format with a fixed group size that has such codes and scales; NULL: none. */
static const struct compressed_format *standard_of(const struct linear *l)
{
	for (const struct compressed_format *f = compressed_formats; f->name; f++)
		if (f->group && f->scales == l->storage.scales && !strcmp(f->codes, l->storage.name) &&
		    (l->storage.group || l->group > 0))
			return f;
	return NULL;
}

/* The scheme of a format with a fixed group size; groups of the layer are one or several groups of it. */
static struct compressed_scheme standard(const struct export *e, const struct export_weight *w,
	const struct compressed_format *f)
{
	const struct linear *l = &w->layer->linear;
	struct compressed_scheme s = { .format = f, .bits = f->bits, .strategy = COMPRESSED_GROUP,
		.group = f->group };

	if (l->compute.kind)
		REFUSE("is %s with the compute format %s, without which its second scales (scale8) cannot "
			"be stored; expected no --skip-compute", l->storage.name, l->compute.name);
	if (linear_rounds(l) && !e->options.weights_only)
		REFUSE("is %s and rounds its inputs with scales of other groups than the weight's; "
			"--weights-only leaves that out", l->storage.name);
	if (l->in % s.group || (l->group > 0 && (size_t)l->group % s.group))
		REFUSE("has %zu columns in groups of %ld, expected multiples of %zu", l->in, l->group,
			s.group);
	for (size_t i = 1; i < w->n && f->divided; i++)
		if (*w->layer[i].linear.scale_tensor != *l->scale_tensor)
			die("%s: %s: is one tensor of the checkpoint with %s, but has another scale_tensor; "
				"--to hf writes both plainly", e->from, w->layer[i].path, w->layer->path);
	return s;
}

struct compressed_scheme layer_scheme(const struct export *e, const struct export_weight *w)
{
	const struct linear *l = &w->layer->linear;
	const struct format *f = &l->storage;
	const struct compressed_format *own = standard_of(l);
	const bool computed = l->compute.kind && !e->options.skip_compute;

	if (computed && !layer_scheme_has(&l->compute))
		REFUSE("is rounded to %s, which no scheme has; expected e4m3fn, --to hf writes it plainly",
			l->compute.name);
	if (own && !computed)
		return standard(e, w, own);
	if (computed || layer_scheme_has(f))
		return floats(e, w);
	if (f->integers)
		return integers(e, w);
	REFUSE("is %s, which no scheme has; expected int2 to int8, uint2 to uint8, e4m3fn, mxfp4 or nvfp4, "
		"--to hf writes it plainly", f->name);
}

/* --- config.json --- */

static json_t *arguments(int bits, bool is_float, bool asymmetric, const char *strategy, size_t group,
	bool dynamic)
{
	return json_pack("{s:i, s:s, s:b, s:o, s:s, s:n, s:b, s:n, s:o, s:{}}", "num_bits", bits, "type",
		is_float ? "float" : "int", "symmetric", !asymmetric, "group_size",
		group ? json_integer((json_int_t)group) : json_null(),
		"strategy", strategy, "block_structure", "dynamic", dynamic, "actorder",
		"observer", dynamic ? json_null() : json_string("minmax"),
		"observer_kwargs");
}

static json_t *weights(const struct compressed_scheme *s)
{
	static const char *const strategies[] = { "tensor", "channel", "group" };
	const struct compressed_format *f = s->format;
	json_t *y = arguments(s->bits, f->codes, s->asymmetric,
		f->divided ? "tensor_group" : strategies[s->strategy], s->group, false);

	if (f->group) {
		json_object_set_new(y, "scale_dtype", json_string(f->scale_torch));
		json_object_set_new(y, "zp_dtype", json_string(f->scale_torch));
	}
	return y;
}

json_t *layer_scheme_group(const struct compressed_scheme *s, json_t *targets)
{
	const bool token = s->inputs == COMPRESSED_TOKEN;
	json_t *inputs = s->inputs == COMPRESSED_PLAIN ? json_null() :
		arguments(8, strcmp(s->format->inputs, "int8"), false, token ? "token" : "tensor", 0, token);

	return json_pack("{s:o, s:s, s:o, s:o, s:n}", "targets", targets, "format",
		s->format->name, "weights", weights(s), "input_activations", inputs,
		"output_activations");
}
