/* SPDX-License-Identifier: GPL-3.0-or-later */
/* repack.c -- see repack.h */
#include "transform/repack.h"
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/thread.h"
#include "model/layer.h"
#include "model/layer_list.h"
#include "num/code_form.h"
#include "quant/pack.h"

/* Whether the layer's codes are to be converted. */
static bool is_other(const struct repack *r, const struct linear *l)
{
	return r->unpack ? l->packed != NULL : l->codes && code_packs(&l->storage);
}

/* Converts the codes, in new memory. */
static void repack_codes(const struct repack *r, struct linear *l)
{
	const struct format *f = &l->storage;
	const size_t rows = code_rows(f, l->out), columns = code_columns(f, l->in);
	const size_t words = pack_words(f->bits, columns);
	uint32_t *packed = r->unpack ? NULL : xalloc(rows * words, sizeof *packed);
	uint8_t *codes = r->unpack ? xalloc(rows, columns) : NULL;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < rows; i++)
		if (r->unpack)
			pack_unrow(f->bits, columns, codes + i * columns, l->packed + i * words);
		else
			pack_row(f->bits, columns, packed + i * words, l->codes + i * columns);
	l->packed = packed;
	l->codes = codes;
}

/* Main path and branch of a layer, with codes converted. repack_layer() returns the number of conversions. */
struct parts { struct linear part[3]; bool is_new[3]; };

static size_t repack_layer(const struct repack *r, struct parts *y, const struct linear *l)
{
	const struct linear *const from[] = { l, l->branch_a, l->branch_b };
	size_t n = 0;

	for (size_t i = 0; i < 3; i++) {
		y->is_new[i] = from[i] && is_other(r, from[i]);
		if (from[i])
			y->part[i] = *from[i];
		if (y->is_new[i])
			repack_codes(r, &y->part[i]);
		n += y->is_new[i];
	}
	if (l->branch_a)
		y->part[0].branch_a = &y->part[1], y->part[0].branch_b = &y->part[2];
	return n;
}

static void parts_free(struct parts *y)
{
	for (size_t i = 0; i < 3; i++)
		if (y->is_new[i]) {
			free((void *)(uintptr_t)y->part[i].packed);
			free((void *)(uintptr_t)y->part[i].codes);
		}
}

void repack_part(void *arg, const struct filter *f)
{
	struct repack *r = arg;
	const struct part *part = f->part;
	struct layer_list list = layer_list(part, NULL, r->layers);	/* embeddings and heads too */
	const size_t before = r->done;

	for (size_t i = 0; i < list.n; i++) {
		struct layer layer = layer_read(part, list.layer[i].path, 0, 0);
		struct parts parts;

		if (repack_layer(r, &parts, &layer.linear)) {
			if (r->done++ == before)
				output_begin(f->out, part);
			progress_part(list.layer[i].path, part_index(part), part_count(part), i, list.n);
			layer_write(f->out, part, layer.path, &parts.part[0]);
		}
		parts_free(&parts);
		layer_free(&layer);
	}
	if (r->done == before && !part_index(part))
		output_begin(f->out, part);
	if (r->done > before || !part_index(part)) {
		output_rest(f->out, part, NULL);
		output_end(f->out);
	} else
		output_pass(f->out, part);
	layer_list_free(&list);
}
