/* SPDX-License-Identifier: GPL-3.0-or-later */
/* quantize_rotation.c -- which layers are rotated, and the rotation of a layer; see quantize_private.h */
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "calib/input_scale.h"
#include "transform/layers.h"
#include "transform/quantize_private.h"

bool quantize_unrotated(const struct layer_ref *layer)
{
	return layer->stack && (!layer_ref_row(layer) || layer_ref_projection(layer) == PROJECTION_ROUTER);
}

/* Whether the method of a layer is one that rotates. */
static bool asks_rotation(const struct quantize *q, const struct layer_ref *layer)
{
	const struct method *m;

	if (!selection_has(q->layers, layer->path))
		return false;
	m = plan_method(q->plan, layer->path);
	return !m->keep && m->rotates;
}

static bool is_rotated(const struct quantize *q, const struct layer_ref *layer)
{
	return !quantize_unrotated(layer) && asks_rotation(q, layer);
}

/* The layers that are known of each input: whether they are rotated. */
struct inputs {
	const struct quantize *q;
	const struct filter *f;
	struct layer_ref *first;	/* [inputs of the model] the first layer that reads it */
	char **path;			/* of that layer; NULL: none yet */
	bool asked, rotated;		/* any layer */
};

/* The input of a layer is rotated once for all layers that read it. */
static void check_same_input(void *arg, const struct layer_ref *layer, size_t in)
{
	const struct inputs *w = arg;
	const size_t i = layer_ref_input(w->f->config, layer);
	struct layer_ref *first;

	(void)in;
	if (i == SIZE_MAX)
		return;
	first = &w->first[i];
	if (!w->path[i]) {
		*first = *layer;
		first->path = w->path[i] = xformat("%s", layer->path);
	} else if (is_rotated(w->q, first) != is_rotated(w->q, layer)) {
		const bool rotated = is_rotated(w->q, layer);

		die("%s: %s: is %s, but %s, which has the same input, is %s: expected the same "
			"--layer-rotation for both", part_name(w->f->part), layer->path,
			rotated ? "rotated" : "not rotated", first->path, rotated ? "not" : "rotated");
	}
}

static void note_rotation(void *arg, const struct layer_ref *layer, size_t in)
{
	struct inputs *w = arg;

	(void)in;
	w->asked |= asks_rotation(w->q, layer);
	w->rotated |= is_rotated(w->q, layer);
}

void quantize_check_rotations(const struct quantize *q, const struct filter *f)
{
	const size_t n = config_inputs(f->config);
	struct inputs w = { q, f, xalloc(n, sizeof *w.first), xalloc(n, sizeof *w.path), false, false };

	layers_each(f, &(struct selection){ 0 }, check_same_input, &w);
	layers_each(f, q->layers, note_rotation, &w);
	if (w.asked && !w.rotated)
		warn("%s: no layer is rotated: those outside of blocks and those with the input of a router "
			"never are", input_name(f->in));
	for (size_t i = 0; i < n; i++)
		free(w.path[i]);
	free(w.first), free(w.path);
}

/* Makes the rotations of a layer that has none. */
static void make_rotation(const struct quantize *q, struct quantized *t, const struct part *part)
{
	const struct linear *l = &t->layer.linear;
	const char *path = t->layer.path;

	if (l->rotation_in.hadamard || linear_two_sided(l))
		die("%s: %s: is rotated already, expected a layer without rotations, or "
			"--layer-rotation none", part_name(part), path);
	if (l->splits)
		die("%s: %s: has split columns, expected a layer without, or --layer-rotation none",
			part_name(part), path);
	if (l->input.scale && !t->method->inputs_given)
		die("%s: %s: rounds inputs with a static scale, which is that of inputs before a rotation; "
			"expected --act-mode dynamic-token or none", part_name(part), path);
	layer_rotation_make(&t->rotation, l->out, l->in, q->seed);
}

bool quantize_reference_fits(const struct linear *reference, const struct linear *kept)
{
	const struct linear plain = { .out = kept->out, .in = kept->in };

	/* a rotation of the inputs that belongs to the basis is one of the reference, too */
	const bool separable = linear_own_rotation(&kept->rotation_in) || !kept->rotation_in.hadamard;

	return linear_splits_agree(reference, kept) && (linear_same_rotations(reference, kept) ||
		(separable && linear_same_rotations(reference, &plain)));
}

void quantize_check_signs(const struct quantize *q, const struct method *m, const struct part *part,
	const struct layer_ref *layer)
{
	struct layer outline = layer_outline(part, layer->path);
	const struct linear *l = &outline.linear;
	const char *file = part_name(part), *path = layer->path;

	if (linear_own_rotation(&l->rotation_in)) {
		if (m->act_mode == INPUT_STATIC_TENSOR)
			input_scale_refuse(part, path);
		if (quantize_corrects(q, layer))
			die("%s: %s: has input_signs, expected a layer without for --qep", file, path);
		if (l->splits)
			die("%s: %s: has input_signs and split columns, expected only one of them", file,
				path);
	}
	layer_free(&outline);
}

/* Sets the rotation of the layer: that of the file, or a new one if its method rotates. */
static void set_rotation(const struct quantize *q, struct quantized *t, const struct part *part)
{
	if (t->method->rotates && !quantize_unrotated(&t->ref)) {
		make_rotation(q, t, part);
		layer_rotation_weight(&t->rotation, t->weight);
	} else if (linear_two_sided(&t->layer.linear)) {
		layer_rotation_copy(&t->rotation, &t->layer.linear);
		if (q->reference && !linear_same_rotations(&t->reference.linear, &t->layer.linear))
			layer_rotation_weight(&t->rotation, t->weight);
	}
	if (t->rotation.weight)
		t->weight = &t->rotation.linear;
}

void quantize_rotate(const struct quantize *q, struct quantized *t, size_t n,
	struct quantized *const before[n], const struct part *part)
{
	const size_t in = t->layer.linear.in;

	set_rotation(q, t, part);
	if (!linear_own_rotation(&t->rotation.in) || !t->inputs.hessian)
		return;
	t->plain_hessian = t->inputs.hessian;
	for (size_t i = 0; i < n; i++)
		if (before[i]->plain_hessian == t->plain_hessian &&
		    linear_rotations_agree(in, &before[i]->rotation.in, &t->rotation.in)) {
			t->inputs.hessian = before[i]->inputs.hessian;
			t->inputs.cross = before[i]->inputs.cross;
			return;
		}
	t->inputs.hessian = t->rotated = layer_rotation_hessian(&t->rotation, in, t->plain_hessian);
	if (t->inputs.cross)
		t->inputs.cross = t->rotated_cross =
			layer_rotation_cross(&t->rotation, in, t->inputs.cross, t->plain_hessian, t->rotated);
}
