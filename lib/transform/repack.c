/* SPDX-License-Identifier: GPL-3.0-or-later */
/* repack.c -- see repack.h */
#include "transform/repack.h"
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/progress.h"
#include "base/thread.h"
#include "model/layer.h"
#include "quant/pack.h"

static void pack_layer(struct output *out, const struct image *image, struct layer *layer)
{
	struct linear *l = &layer->linear;
	const size_t words = pack_words(l->storage.bits, l->in);
	uint32_t *packed = xalloc(l->out * words, sizeof *packed);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < l->out; i++)
		pack_row(l->storage.bits, l->in, packed + i * words, l->codes + i * l->in);
	l->packed = packed;
	l->codes = NULL;
	layer_write(out, image, layer->path, l);
	free(packed);
}

static void unpack_layer(struct output *out, const struct image *image, struct layer *layer)
{
	struct linear *l = &layer->linear;
	const size_t words = pack_words(l->storage.bits, l->in);
	uint8_t *codes = xalloc(l->out, l->in);

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < l->out; i++)
		pack_unrow(l->storage.bits, l->in, codes + i * l->in, l->packed + i * words);
	l->codes = codes;
	l->packed = NULL;
	layer_write(out, image, layer->path, l);
	free(codes);
}

void repack_part(void *arg, const struct filter *f)
{
	struct repack *r = arg;
	const struct image *image = f->image;
	struct layer_list list = layer_list(image, NULL, r->layers);	/* embeddings and heads too */
	const size_t before = r->done;

	for (size_t i = 0; i < list.n; i++) {
		struct layer layer;

		if (!layer_quantized(image, list.path[i]))
			continue;
		layer = layer_read(image, list.path[i], 0, 0);
		if (r->unpack ? layer.linear.packed != NULL : layer.linear.codes != NULL) {
			if (r->done++ == before)
				output_begin(f->out, image);
			progress(list.path[i], i, list.n);
			(r->unpack ? unpack_layer : pack_layer)(f->out, image, &layer);
		}
		layer_free(&layer);
	}
	if (r->done == before && !image_part(image))
		output_begin(f->out, image);
	if (r->done > before || !image_part(image)) {
		output_rest(f->out, image, NULL);
		output_end(f->out);
	} else
		output_pass(f->out, image);
	layer_list_free(&list);
}
