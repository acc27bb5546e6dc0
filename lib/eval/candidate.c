/* SPDX-License-Identifier: GPL-3.0-or-later */
/* candidate.c -- see candidate.h */
#include "eval/candidate.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "forward/cache.h"
#include "model/layer.h"
#include "model/shard_file.h"
#include "num/code_form.h"
#include "num/scale_type.h"

static bool same_inputs(const struct linear *a, const struct linear *b)
{
	const struct input_scale *p = &a->input, *q = &b->input;

	return p->mode == q->mode && (p->mode == INPUT_AS_IS ||
		(!strcmp(p->format.name, q->format.name) && p->clip == q->clip));
}

static bool same_rotation(const struct linear_rotation *a, const struct linear_rotation *b)
{
	return a->hadamard == b->hadamard && !a->signs == !b->signs;
}

bool candidate_same_rotation(const struct linear *a, const struct linear *b)
{
	return same_rotation(&a->rotation_in, &b->rotation_in);
}

/* " act-mode=M act-format=F act-clip=R"; "" if dpq-run leaves the model's rounding of inputs. */
static char *input_words(const struct linear *m, const struct linear *x)
{
	const struct input_scale *i = &x->input;
	char *clip, *y;

	if (!x->compute.kind && same_inputs(m, x))
		return xformat("%s", "");
	clip = i->mode == INPUT_DYNAMIC_TOKEN ? xformat(" act-clip=%.9g", i->clip > 0 ? (double)i->clip : 1) :
		xformat("%s", "");
	y = i->mode == INPUT_AS_IS ? xformat(" act-mode=none") :
		xformat(" act-mode=%s act-format=%s%s", input_modes[i->mode], i->format.name, clip);
	free(clip);
	return y;
}

/* Whether the name of the format implies the type of scales. */
static bool implies_scales(const struct linear *x)
{
	struct format plain;

	format_parse(&plain, x->storage.name);	/* without the type of scales that the file adds */
	return plain.scales;
}

/* "group=G scale-dtype=T". Codes that include scales have neither, and are made without compensation. */
static char *scale_words(const struct linear *x)
{
	const bool implied = implies_scales(x);
	char *group, *y;

	if (code_has_scales(&x->storage))
		return xformat("compensate=none");
	group = x->group > 0 ? xformat("%ld", x->group) : xformat(x->group ? "tensor" : "channel");
	y = xformat("group=%s%s%s%s", group, implied ? "" : " scale-dtype=",
		implied ? "" : scale_types[x->storage.scales],
		code_is_single(&x->storage) ? "" : " solver=gptq");	/* qronos makes none */
	free(group);
	return y;
}

static char *words(const struct linear *m, const struct linear *x)
{
	char *scales = scale_words(x), *inputs = input_words(m, x), *y;
	const bool rotated = !same_rotation(&m->rotation_in, &x->rotation_in) ||
		!same_rotation(&m->rotation_out, &x->rotation_out);

	y = xformat("storage=%s %s compute=%s%s layer-rotation=%s%s", x->storage.name, scales,
		x->compute.kind ? x->compute.name : "none",
		!x->compute.kind ? "" : x->scales8 > 1 ? " scale8=channel" : " scale8=tensor",
		rotated ? "two-sided" : "none", inputs);
	free(scales), free(inputs);
	return y;
}

char *candidate_words(const struct part *model, const struct part *candidate, const char *path)
{
	struct layer m = layer_outline(model, path), x = layer_outline(candidate, path);
	char *y = x.linear.weight ? xformat("keep") : words(&m.linear, &x.linear);

	layer_free(&m), layer_free(&x);
	return y;
}

void candidate_check(const struct part *candidate, const char *path, const struct linear *m,
	const struct linear *x)
{
	const char *file = part_name(candidate);

	if (x->weight)
		return;
	if (!x->branch_a != !m->branch_a)
		die("%s: %s: has a low-rank branch, which no plan of dpq-run makes, expected a candidate "
			"without", file, path);
	if (x->splits != m->splits)
		die("%s: %s: has other split columns than the model of --reference, and no plan of dpq-run "
			"makes them", file, path);
	if (x->input.mode == INPUT_STATIC_MODALITY && !same_inputs(m, x))
		die("%s: %s: has an input scale for each modality, which no plan of dpq-run makes, expected "
			"the same in the model of --reference, or one scale", file, path);
}

void candidate_check_file(const struct part *model, const struct part *candidate)
{
	shard_refuse(candidate);
	cache_match(2, (const struct part *const []){ model, candidate });
}

/* The layer in the model whose layers `list` are those of the candidate. */
static struct layer mixed(const struct part *model, const struct part *candidate,
	const struct layer_list *list, const char *path)
{
	return layer_outline(layer_listed(list, path) && layer_quantized(candidate, path) ? candidate : model,
		path);
}

bool candidate_shares_input(const struct layer_ref *layer)
{
	const struct linear_row *row = layer->stack->arch->linear;

	for (size_t i = 0; i < LINEARS && row[i].name; i++)
		if (i != (size_t)layer->row && row[i].projection == row[layer->row].projection)
			return true;
	return false;
}

void candidate_check_input(const struct part *model, const struct part *candidate, const struct part *other,
	const struct layer_list *list, const struct layer_ref *layer, const char *wanted)
{
	const struct linear_row *row = layer->stack->arch->linear;
	struct layer own = layer_outline(candidate, layer->path);

	for (size_t i = 0; i < LINEARS && row[i].name; i++) {
		struct layer_ref same = *layer;
		struct layer sibling;

		same.row = i;
		if (i == (size_t)layer->row || row[i].projection != row[layer->row].projection)
			continue;
		same.path = layer_ref_path(&same);
		sibling = mixed(model, other, list, same.path);
		if (!candidate_same_rotation(&own.linear, &sibling.linear))
			die("%s: %s: has another rotation than %s%s%s, which has the same input: expected %s",
				part_name(candidate), layer->path, same.path,
				other == candidate ? "" : " in ",
				other == candidate ? "" : part_name(other), wanted);
		layer_free(&sibling);
		free((char *)(uintptr_t)same.path);
	}
	layer_free(&own);
}
