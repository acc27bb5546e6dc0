/* SPDX-License-Identifier: GPL-3.0-or-later */
/* import.c -- writes the tensors of a checkpoint as a model; see import.h */
#include "import/import.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "base/progress.h"
#include "import/adopt.h"
#include "import/checkpoint.h"
#include "import/source.h"
#include "model/basis.h"
#include "model/config.h"
#include "model/layer.h"
#include "num/half.h"

enum { BLOCK = 1 << 14 };	/* numbers that half_finite() checks with one thread */

/* First element that is NaN or infinite; n if all are finite. */
static size_t first_bad(const struct tensor *t)
{
	const enum half_type type = tensor_half(t->type);
	const size_t n = tensor_count(t), size = tensor_size(t->type);
	const char *data = t->data;
	size_t i = 0;

	for (size_t step = n; step; step = step > BLOCK ? BLOCK : step / 2)
		while (i + step <= n && half_finite(step, data + i * size, type))
			i += step;
	return i;
}

/* [m, n] to [n, m] in tiles; elements have 2 or 4 bytes. */
static void *transpose(size_t m, size_t n, const void *from, size_t size)
{
	enum { TILE = 32 };
	void *to = xalloc(m * n, size);
	uint32_t *to4 = to;
	uint16_t *to2 = to;
	const uint32_t *from4 = from;
	const uint16_t *from2 = from;

	for (size_t i0 = 0; i0 < m; i0 += TILE)
		for (size_t j0 = 0; j0 < n; j0 += TILE)
			for (size_t i = i0; i < m && i < i0 + TILE; i++)
				for (size_t j = j0; j < n && j < j0 + TILE; j++)
					if (size == 4)
						to4[j * m + i] = from4[i * n + j];
					else
						to2[j * m + i] = from2[i * n + j];
	return to;
}

/* The tensor in the form of the tree: t itself, or a tensor in new memory. */
static struct tensor as_layer(const struct entry *e, struct tensor t)
{
	const struct linear_row *row = e->row;
	const size_t size = tensor_size(t.type);

	if (e->patches) {
		t = tensor_2d(t.type, t.data, t.dim[0], tensor_count(&t) / t.dim[0]);
	} else if (row && row->fused) {
		struct row_slice p = stack_rows(e->stack, row);
		size_t bytes = tensor_count(&t) / t.dim[0] * size, group = p.rows / p.groups;
		const char *from = (const char *)t.data + p.before * bytes;
		char *to = t.data = xalloc(p.groups * p.each, bytes);

		for (size_t g = 0; g < p.groups; g++)
			memcpy(to + g * p.each * bytes, from + g * group * bytes, p.each * bytes);
		t.dim[0] = p.groups * p.each;
	} else if (row && row->order == ROWS_TRANSPOSED && t.rank == 2) {
		t = tensor_2d(t.type, transpose(t.dim[0], t.dim[1], t.data, size), t.dim[1], t.dim[0]);
	}
	return t;
}

/* Writes codes, parameters and the rounding of inputs as a layer. */
static void write_codes(struct source *s, struct output *out, const struct entry *e, const struct part *like,
	struct report *report)
{
	struct source_layer y = s->kind->codes(s, e->source->name);
	char *group = xformat("%.*s", (int)(strrchr(e->path, '/') - e->path), e->path);
	struct linear l;

	if (e->row && e->row->fused) {
		struct source_layer rows = source_layer_rows(&y, stack_rows(e->stack, e->row));

		source_layer_free(&y);
		y = rows;
	}
	source_layer_view(&y, &l);
	if (like) {
		float *w = xalloc(l.out * l.in, sizeof *w);
		const struct tensor t = tensor_2d(TENSOR_F32, w, l.out, l.in);

		linear_weight(&l, 0, l.out, (float (*)[l.in])w);
		adopt_tensor(like, e, &t, report);
		free(w);
	}
	layer_write(out, NULL, group, &l);
	source_layer_free(&y);
	free(group);
}

static void write_entry(struct source *s, struct output *out, const struct entry *e, const struct part *like,
	struct report *report)
{
	const struct source_tensor *from = e->source;
	struct tensor t = s->kind->read(s, from->name), y;
	size_t n = tensor_count(&t), bad = first_bad(&t);

	if (!n)
		die("%s: %s: has no elements", from->file, from->name);
	if (bad < n)
		die("%s: %s: element %zu is NaN or infinite, expected finite weights", from->file,
			from->name, bad);
	y = as_layer(e, t);
	if (like)
		adopt_tensor(like, e, &y, report);
	if (e->tied_to)
		output_tied(out, e->path, y, e->tied_to);
	else
		output_write(out, e->path, y);
	if (y.data != t.data)
		free(y.data);
}

/* Adds PIECES pieces of PIECE bytes at equal distances, with the first and last bytes, or all bytes if there
 * are not more than these. */
static void add_pieces(struct digest *d, const struct tensor *bytes)
{
	enum { PIECES = 64, PIECE = 1024 };
	const size_t n = tensor_count(bytes);
	const char *data = bytes->data;

	if (n <= PIECES * PIECE)
		digest_add(d, n, data);
	for (size_t i = 0; n > PIECES * PIECE && i < PIECES; i++)
		digest_add(d, PIECE, data + (n - PIECE) / (PIECES - 1) * i);
}

/* The basis of the checkpoint: from the configuration and up to 64 KiB of each tensor (docs/format.md). */
static char *own_basis(const struct checkpoint *k)
{
	struct source *s = k->source;
	struct digest *d = digest_begin();
	size_t part = 0;

	digest_add(d, strlen(s->text[TEXT_CONFIG]), s->text[TEXT_CONFIG]);
	for (const struct entry *e = k->entry; e < k->entry + k->entries; e++) {
		const struct tensor *shape = &e->source->shape;
		const char *type = e->source->packed ? "packed" : tensor_name(shape->type);
		char *line = xformat("%s %s", e->path, type);
		struct tensor bytes;

		digest_add(d, strlen(line), line);
		free(line);
		for (int i = 0; i < shape->rank; i++) {
			line = xformat(" %zu", shape->dim[i]);
			digest_add(d, strlen(line), line);
			free(line);
		}
		digest_add(d, 1, "\n");
		for (size_t i = 0; s->kind->stored(s, e->source, i, &bytes); i++)
			add_pieces(d, &bytes);
		if (e->part > part) {
			s->kind->release(s);
			part = e->part;
		}
	}
	s->kind->release(s);
	return digest_end(d);
}

/* like: the model whose basis the result gets, or NULL. */
static void write_parts(struct checkpoint *k, struct output *out, const struct part *like,
	struct report *report)
{
	struct source *s = k->source;
	char *basis = like ? basis_of(like) : own_basis(k);
	size_t i = 0;

	for (size_t part = 0; part < k->parts; part++) {
		progress("import", part, k->parts);
		output_start(out, part, k->parts);
		if (!part) {
			basis_write(out, basis);
			if (like)
				output_history(out, "basis", like);
			if (s->history)
				output_text(out, "/", "history:checkpoint", s->history);
		}
		for (int t = 0; !part && t < TEXTS; t++)
			if (s->text[t])
				output_string(out, text_rows[t].path, s->text[t]);
		for (; i < k->entries && k->entry[i].part == part; i++)
			(k->entry[i].source->packed ? write_codes : write_entry)(s, out, k->entry + i, like,
				report);
		output_end(out);
		if (like)
			part_drop(like);
		s->kind->release(s);
	}
	progress_clear();
	free(basis);
}

void import_model(struct output *out, const char *path, const char *basis, struct report *report)
{
	struct part *like;
	struct source *s = source_open(path);
	const struct config config = config_parse(s->config_name, s->text[TEXT_CONFIG]);
	struct checkpoint k;

	if (!s->text[TEXT_TOKENIZER] && config.vocab != 256)	/* bytes need no tokenizer */
		warn("%s: has no tokenizer: tokenize cannot read texts for this model", path);
	k = checkpoint_open(s, &config);
	like = basis ? adopt_open(basis, &k) : NULL;
	write_parts(&k, out, like, report);
	if (like)
		part_close(like);
	checkpoint_close(&k);
	config_free(&config);
	source_close(s);
}
