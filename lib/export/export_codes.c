/* SPDX-License-Identifier: GPL-3.0-or-later */
/* export_codes.c -- see export_codes.h */
#include "export/export_codes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "export/checkpoint_name.h"

bool export_quantized(const struct export_weight *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->layer[i].linear.weight)
			return true;
	return false;
}

bool export_is_head(const struct export *e, const struct export_weight *w)
{
	char *head = checkpoint_name(e->config, e->config->arch->head);
	const bool is = !strcmp(w->name, head);

	free(head);
	return is;
}

bool export_neighbours(const struct linear *l)
{
	for (size_t i = 0; l->group_index && i < l->in; i++)
		if (l->group <= 0 || (size_t)l->group_index[i] != i / (size_t)l->group)
			return false;
	return true;
}

static void check_layer(const struct export *e, const struct layer *layer)
{
	const struct linear *l = &layer->linear;
	const char *extra = l->splits ? "has split columns" :
		linear_two_sided(l) ? "has a rotation at its inputs or outputs" :
		l->rotation_in.hadamard ? "has an online Hadamard" : NULL;

	if (l->rank)
		die("%s: %s: has a low-rank branch, which --to %s does not write; --adapter FOLDER "
			"writes it as an adapter, --to hf merges it into the weight", e->from, layer->path,
			e->target->name);
	if (extra)
		die("%s: %s: %s, which --to %s does not write; --to hf merges it into the weight%s", e->from,
			layer->path, extra, e->target->name,
			l->rotation_in.hadamard ? ", hadamard-rotate --offline makes none" : "");
}

static bool same_kind(const struct linear *a, const struct linear *b)
{
	return !a->weight == !b->weight && !strcmp(a->storage.name, b->storage.name) &&
		a->group == b->group && !a->compute.kind == !b->compute.kind &&
		!strcmp(a->compute.name, b->compute.name) && a->scales8 == b->scales8;
}

void export_check_codes(const struct export *e, const struct export_weight *w)
{
	const char *what = w->table ? "is an embedding" : w->rank > 2 ? "is a convolution" :
		w->transposed ? "is transposed in a checkpoint of its class (Conv1D)" : NULL;

	if (what)
		die("%s: %s: %s, for which --to %s has no codes; --to hf writes it plainly, dpq-run "
			"--layers leaves it unquantized", e->from, w->layer->path, what, e->target->name);
	for (size_t i = 0; i < w->n; i++) {
		const struct layer *l = &w->layer[i];

		check_layer(e, l);
		if (!same_kind(&l->linear, &w->layer->linear) ||
		    !linear_inputs_agree(&l->linear, &w->layer->linear))
			die("%s: %s: is one tensor of the checkpoint with %s, but of another format, group "
				"or inputs; --to hf writes both plainly", e->from, l->path, w->layer->path);
	}
}

void export_check_neighbours(const struct export *e, const struct export_weight *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!export_neighbours(&w->layer[i].linear))
			die("%s: %s: its groups are not neighbouring columns (group_index), as --to %s "
				"needs; dpq-run --reorder gar or none makes such groups, --to hf writes it "
				"plainly", e->from, w->layer[i].path, e->target->name);
}

/* --- integers --- */

static uint8_t middle_code(const struct linear *l)
{
	return (uint8_t)(1 << (l->storage.bits - 1));
}

bool export_is_centred(const struct linear *l)
{
	for (size_t k = 0; l->storage.asymmetric && k < linear_scales(l); k++)
		if (l->zero[k] != middle_code(l))
			return false;
	return true;
}

bool export_is_symmetric(const struct export_weight *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!export_is_centred(&w->layer[i].linear))
			return false;
	return true;
}

uint8_t export_code_offset(const struct linear *l)
{
	return l->storage.integers && !l->storage.asymmetric;
}

uint8_t export_zero(const struct linear *l, size_t row, size_t group)
{
	return !l->storage.asymmetric ? middle_code(l) :
		l->zero[linear_scale_at(l, row, group)];
}

void export_put_bits(uint32_t *word, size_t stride, size_t at, int bits, uint32_t v)
{
	enum { WORD = 32 };
	const int shift = (int)(at % WORD);

	word += at / WORD * stride;
	*word |= v << shift;
	if (shift + bits > WORD)
		word[stride] |= v >> (WORD - shift);
}

static bool is_scale(float x)
{
	return x > 0 && isfinite(x);
}

bool export_narrow(enum half_type dtype, size_t n, const float scale[n], float rounded[n], size_t *first)
{
	uint16_t *half;
	bool exact = true;

	if (dtype == HALF_NONE) {
		memcpy(rounded, scale, n * sizeof *scale);
		return true;
	}
	half = xalloc(n, sizeof *half);
	half_narrow(n, half, scale, dtype);
	half_widen(n, rounded, half, dtype);
	for (size_t i = 0; i < n && (exact || is_scale(rounded[*first])); i++)
		if (rounded[i] != scale[i] && (exact || !is_scale(rounded[i]))) {
			exact = false;
			*first = i;
		}
	free(half);
	return exact;
}
