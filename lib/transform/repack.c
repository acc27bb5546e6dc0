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

static void repack_layer(const struct repack *r, struct output *out, const struct image *image,
	struct layer *layer)
{
	struct linear *l = &layer->linear;
	const int bits = l->storage.bits;
	const size_t words = pack_words(bits, l->in);
	uint32_t *packed = r->unpack ? NULL : xalloc(l->out * words, sizeof *packed);
	uint8_t *codes = r->unpack ? xalloc(l->out, l->in) : NULL;

	#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < l->out; i++)
		if (r->unpack)
			pack_unrow(bits, l->in, codes + i * l->in, l->packed + i * words);
		else
			pack_row(bits, l->in, packed + i * words, l->codes + i * l->in);
	l->packed = packed;
	l->codes = codes;
	layer_write(out, image, layer->path, l);
	free(packed), free(codes);
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
			progress_part(list.path[i], image_part(image), image_parts(image), i, list.n);
			repack_layer(r, f->out, image, &layer);
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
