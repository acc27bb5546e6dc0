/* SPDX-License-Identifier: GPL-3.0-or-later */
/* layer.c -- linear layers in a file; see layer.h */
#include "model/layer.h"
#include "base/error.h"
#include "base/thread.h"
#include "quant/pack.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const modes[] = {
	[INPUT_STATIC_TENSOR] = "static-tensor", [INPUT_STATIC_MODALITY] = "static-modality",
	[INPUT_DYNAMIC_TOKEN] = "dynamic-token",
};

/* Members that change the product and that this reader does not apply. */
static const char *const members_unknown[] = { "branch_a", "branch_b", "split_index", "split_weight" };

/* path/name in a buffer that the next call reuses */
static const char *member(const char *path, const char *name)
{
	static _Thread_local char *buffer[2];
	static _Thread_local int turn;

	turn = !turn;
	free(buffer[turn]);
	return buffer[turn] = xformat("%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", name);
}

enum half_type layer_half(const struct image *image, const char *path, enum tensor_type type)
{
	switch (type) {
	case TENSOR_F32:	return HALF_NONE;
	case TENSOR_F16:	return HALF_F16;
	case TENSOR_BF16:	return HALF_BF16;
	default:
		die("%s: %s: is %s, f32, f16 or bf16 was wanted", image_name(image), path, tensor_name(type));
	}
}

/* The largest exponent there is: all ones say infinity or NaN. */
static bool finite_chunk(size_t n, const void *x, enum half_type type)
{
	if (type == HALF_NONE) {
		const uint32_t *u = x;
		uint32_t top = 0;

		for (size_t i = 0; i < n; i++)
			top = (u[i] & 0x7fffffff) > top ? u[i] & 0x7fffffff : top;
		return top < 0x7f800000;
	} else {
		const uint16_t *u = x;
		uint16_t top = 0;

		for (size_t i = 0; i < n; i++)
			top = (u[i] & 0x7fff) > top ? u[i] & 0x7fff : top;
		return top < (type == HALF_F16 ? 0x7c00 : 0x7f80);
	}
}

static void check_finite(const struct image *image, const char *path, size_t n, const void *x, enum half_type type)
{
	enum { CHUNK = 1 << 16 };
	size_t bytes = type == HALF_NONE ? 4 : 2, chunks = (n + CHUNK - 1) / CHUNK;
	int bad = 0;

	#pragma omp parallel for num_threads(threads) schedule(static) reduction(|:bad) if (chunks > 8)
	for (size_t i = 0; i < chunks; i++) {
		size_t left = n - i * CHUNK;

		bad |= !finite_chunk(left < CHUNK ? left : CHUNK, (const char *)x + i * CHUNK * bytes, type);
	}
	if (bad)
		die("%s: %s: holds infinite or undefined numbers (NaN)", image_name(image), path);
}

float *layer_vector(const struct image *image, const char *path, size_t n)
{
	struct tensor t;
	enum half_type type;
	float *y;

	if (!image_find(image, path, TENSOR_ANY, 1, &n, &t))
		return NULL;
	type = layer_half(image, path, t.type);
	check_finite(image, path, t.dim[0], t.data, type);
	y = xalloc(t.dim[0], sizeof *y);
	half_widen(t.dim[0], y, t.data, type);
	return y;
}

static void read_format(const struct image *image, const char *path, const char *name, struct format *f)
{
	char *text = image_text(image, path, name);

	if (!text)
		die("%s: %s: has no attribute %s", image_name(image), path, name);
	if (!format_parse(f, text))
		die("%s: %s: %s '%s' is no number format; known are %s", image_name(image), path, name, text, format_list());
	free(text);
}

/* Values are only rounded to this format, so it must not have a zero point. */
static void read_rounded(const struct image *image, const char *path, const char *name, struct format *f)
{
	read_format(image, path, name, f);
	if (f->asymmetric)
		die("%s: %s: %s '%s' has a zero point; a format without one was wanted", image_name(image), path, name, f->name);
}

/* The largest of n codes under the mask. */
static uint8_t largest(size_t n, const uint8_t code[n], uint8_t mask)
{
	uint8_t top = 0;

	for (size_t j = 0; j < n; j++)
		top = (code[j] & mask) > top ? code[j] & mask : top;
	return top;
}

/* Every code must stand for a value: neither beyond the format's width nor NaN. */
static void check_codes(const struct image *image, const char *path, const struct linear *l)
{
	const struct format *f = &l->storage;
	const size_t rows = l->out, n = l->in, words = pack_words(f->bits, n);
	const bool all = f->code_mask == 0xff && f->code_last == (1 << f->bits) - 1;
	uint8_t top = 0;

	if (all && (l->packed || f->bits == 8))
		return;
	#pragma omp parallel num_threads(threads_for(rows)) reduction(max:top) if (rows * n > 1 << 19)
	{
		uint8_t *row = l->packed ? xalloc(n, 1) : NULL, here;

		#pragma omp for schedule(static)
		for (size_t i = 0; i < rows; i++) {
			if (row)
				pack_unrow(f->bits, n, row, l->packed + i * words);
			here = largest(n, row ? row : l->codes + i * n, f->code_mask);
			top = here > top ? here : top;
		}
		free(row);
	}
	if (top > f->code_last)
		die("%s: %s: holds code %u, which stands for no value of %s", image_name(image), member(path, l->packed ? "packed" : "codes"),
			top, f->name);
}

/* So that a packed product may take code - zero for a small number. */
static void check_zeros(const struct image *image, const char *path, const struct linear *l, size_t n)
{
	unsigned top = 0;

	for (size_t i = 0; i < n; i++)
		top = l->zero[i] > top ? l->zero[i] : top;
	if ((float)top > l->storage.top)
		die("%s: %s: holds zero point %u, the largest code of %s is %g", image_name(image), member(path, "zero"), top,
			l->storage.name, (double)l->storage.top);
}

static void check_positive(const struct image *image, const char *path, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(x[i] > 0) || isinf(x[i]))
			die("%s: %s: holds %g, positive scales were wanted", image_name(image), path, (double)x[i]);
}

static void read_groups(const struct image *image, const char *path, struct linear *l)
{
	size_t shape[2] = { l->out, 0 };
	double group = image_number(image, path, "group", NAN);

	if (!(group >= -1) || group > LAYER_GROUP_MOST || group != floor(group))
		die("%s: %s: attribute group must be -1 (tensor), 0 (channel) or the columns of a group", image_name(image), path);
	l->group = (long)group;
	l->groups = shape[1] = linear_groups(l->in, l->group);
	if (l->group < 0) {
		struct tensor t = image_tensor(image, member(path, "scale"), TENSOR_F32, -1, NULL);

		if (tensor_count(&t) != 1)
			die("%s: %s: must be one value for a scale per tensor", image_name(image), member(path, "scale"));
		l->scale = t.data;
		check_positive(image, member(path, "scale"), l->scale, 1);
	} else {
		l->scale = image_tensor(image, member(path, "scale"), TENSOR_F32, 2, shape).data;
		check_positive(image, member(path, "scale"), l->scale, l->out * l->groups);
	}
	if (l->storage.asymmetric && l->group < 0) {
		struct tensor t = image_tensor(image, member(path, "zero"), TENSOR_U8, -1, NULL);

		if (tensor_count(&t) != 1)
			die("%s: %s: must be one value for a scale per tensor", image_name(image), member(path, "zero"));
		l->zero = t.data;
	} else if (l->storage.asymmetric)
		l->zero = image_tensor(image, member(path, "zero"), TENSOR_U8, 2, shape).data;
	if (!l->storage.asymmetric && image_has(image, member(path, "zero")))
		die("%s: %s: is there, but %s has no zero point", image_name(image), member(path, "zero"), l->storage.name);
	if (l->zero)
		check_zeros(image, path, l, l->group < 0 ? 1 : l->out * l->groups);
}

static void read_group_index(const struct image *image, const char *path, struct linear *l)
{
	struct tensor t;

	if (!image_find(image, member(path, "group_index"), TENSOR_I32, 1, &l->in, &t))
		return;
	l->group_index = t.data;
	for (size_t i = 0; i < l->in; i++)
		if (l->group_index[i] < 0 || (size_t)l->group_index[i] >= l->groups)
			die("%s: %s: column %zu is in group %d of %zu", image_name(image), member(path, "group_index"),
				i, l->group_index[i], l->groups);
}

static void read_compute(const struct image *image, const char *path, struct linear *l)
{
	char *text = image_text(image, path, "compute");
	struct tensor t;

	if ((!text || !strcmp(text, "none")) && image_has(image, member(path, "scale8")))
		die("%s: %s: is there, but attribute compute names no format", image_name(image), member(path, "scale8"));
	if ((!text || !strcmp(text, "none")) && !isnan(image_number(image, path, "saturate", NAN)))
		die("%s: %s: attribute saturate is there, but compute names no format", image_name(image), path);
	if (text && strcmp(text, "none")) {
		read_rounded(image, path, "compute", &l->compute);
		t = image_tensor(image, member(path, "scale8"), TENSOR_F32, 1, NULL);
		l->scale8 = t.data;
		l->scales8 = t.dim[0];
		if (l->scales8 != 1 && l->scales8 != l->out)
			die("%s: %s: has %zu values, 1 or %zu were wanted", image_name(image), member(path, "scale8"),
				l->scales8, l->out);
		check_positive(image, member(path, "scale8"), l->scale8, l->scales8);
		l->saturate = (float)image_number(image, path, "saturate", 0);
		if (!(l->saturate >= 0) || isinf(l->saturate))
			die("%s: %s: attribute saturate is %g, a number from 0 on was wanted", image_name(image), path, (double)l->saturate);
	}
	free(text);
}

static void read_packed(const struct image *image, const char *path, struct linear *l, const size_t want[2])
{
	double columns = image_number(image, member(path, "packed"), "columns", NAN);
	struct tensor t;
	size_t shape[2] = { want[0], 0 };

	if (!(columns >= 1) || columns > LAYER_GROUP_MOST || columns != floor(columns) || (want[1] && columns != (double)want[1]))
		die("%s: %s: attribute columns must be how many columns are packed%s", image_name(image), member(path, "packed"),
			want[1] ? ", and what the model says" : "");
	l->in = (size_t)columns;
	shape[1] = pack_words(l->storage.bits, l->in);
	t = image_tensor(image, member(path, "packed"), TENSOR_U32, 2, shape);
	l->out = t.dim[0];
	l->packed = t.data;
}

static void read_quantized(const struct image *image, const char *path, struct linear *l, const size_t want[2])
{
	struct tensor t;
	double bits;

	read_format(image, path, "storage", &l->storage);
	bits = image_number(image, path, "bits", l->storage.bits);
	if (bits != l->storage.bits)
		die("%s: %s: attribute bits is %g, %s has %d", image_name(image), path, bits, l->storage.name, l->storage.bits);
	if (image_has(image, member(path, "packed")))
		read_packed(image, path, l, want);
	else {
		t = image_tensor(image, member(path, "codes"), TENSOR_U8, 2, want);
		l->out = t.dim[0];
		l->in = t.dim[1];
		l->codes = t.data;
	}
	check_codes(image, path, l);
	read_groups(image, path, l);
	read_group_index(image, path, l);
	read_compute(image, path, l);
}

static void read_activation(const struct image *image, const char *path, struct linear *l)
{
	char *mode = image_text(image, path, "act_mode"), *format = image_text(image, path, "act_format");
	struct tensor t;

	if (!mode && (format || image_has(image, member(path, "act_scale"))))
		die("%s: %s: says how inputs are rounded (act_format, act_scale), but has no attribute act_mode", image_name(image), path);
	free(format);
	if (mode) {
		for (size_t i = INPUT_STATIC_TENSOR; i <= INPUT_STATIC_MODALITY; i++)
			if (!strcmp(mode, modes[i]))
				l->input.mode = (enum input_mode)i;
		if (l->input.mode == INPUT_AS_IS)
			die("%s: %s: act_mode '%s' is not known; known are %s, %s, %s", image_name(image), path, mode,
				modes[INPUT_STATIC_TENSOR], modes[INPUT_STATIC_MODALITY], modes[INPUT_DYNAMIC_TOKEN]);
		read_rounded(image, path, "act_format", &l->input.format);
		if (l->input.mode != INPUT_DYNAMIC_TOKEN) {
			t = image_tensor(image, member(path, "act_scale"), TENSOR_F32, 1, NULL);
			l->input.scale = t.data;
			l->input.modalities = t.dim[0];
			if (l->input.modalities < 1 || (l->input.mode == INPUT_STATIC_TENSOR && l->input.modalities != 1))
				die("%s: %s: has %zu values, %s was wanted", image_name(image), member(path, "act_scale"), l->input.modalities,
					l->input.mode == INPUT_STATIC_TENSOR ? "1" : "one per modality");
			check_positive(image, member(path, "act_scale"), l->input.scale, l->input.modalities);
		}
		free(mode);
	}
}

/* A layer is stored in one form. */
static void check_one_form(const struct image *image, const char *path)
{
	static const char *const forms[] = { "weight", "codes", "packed" };
	const char *first = NULL;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!image_has(image, member(path, forms[i])))
			continue;
		if (first)
			die("%s: %s: has both %s and %s; one of them was wanted", image_name(image), path, first, forms[i]);
		first = forms[i];
	}
}

struct layer layer_read(const struct image *image, const char *path, size_t out, size_t in)
{
	struct layer y = { .path = xformat("%s", path) };
	struct linear *l = &y.linear;
	const size_t want[2] = { out, in };
	struct tensor t;

	for (size_t i = 0; i < sizeof members_unknown / sizeof *members_unknown; i++)
		if (image_has(image, member(path, members_unknown[i])))
			die("%s: %s: layers with this are not supported here", image_name(image), member(path, members_unknown[i]));
	check_one_form(image, path);
	if (image_number(image, path, "online_hadamard", 0) > 1)
		die("%s: %s: layers with online_hadamard are not supported here", image_name(image), path);
	if (image_find(image, member(path, "weight"), TENSOR_ANY, 2, want, &t)) {
		l->out = t.dim[0];
		l->in = t.dim[1];
		l->weight = t.data;
		l->weight_type = layer_half(image, member(path, "weight"), t.type);
		check_finite(image, member(path, "weight"), l->out * l->in, l->weight, l->weight_type);
	} else if (layer_quantized(image, path))
		read_quantized(image, path, l, want);
	else
		die("%s: %s: has neither weight nor codes: no linear layer", image_name(image), path);
	if (!l->out || !l->in)
		die("%s: %s: has no rows or no columns", image_name(image), path);
	if (image_find(image, member(path, "bias"), TENSOR_ANY, 1, &l->out, &t)) {
		if (t.type != TENSOR_F32)
			y.own = layer_vector(image, member(path, "bias"), l->out);
		else
			check_finite(image, member(path, "bias"), l->out, t.data, HALF_NONE);
		l->bias = y.own ? y.own : t.data;
	}
	read_activation(image, path, l);
	return y;
}

void layer_runs(const struct image *image, const struct layer *l)
{
	if (l->linear.input.mode == INPUT_STATIC_MODALITY && l->linear.input.modalities > 1)
		die("%s: %s: has a scale of inputs for each of %zu modalities; which one a token has is not read yet", image_name(image),
			l->path, l->linear.input.modalities);
}

void layer_free(struct layer *l)
{
	free(l->path);
	free(l->own);
	l->path = NULL;
	l->own = NULL;
}

static void put(struct output *out, const char *path, const char *name, enum tensor_type type, const void *data,
	int rank, const size_t dim[])
{
	output_write(out, member(path, name), tensor_of(type, (void *)(uintptr_t)data, rank, dim));
}

static void write_quantized(struct output *out, const char *path, const struct linear *l)
{
	const size_t codes[2] = { l->out, l->in }, packed[2] = { l->out, pack_words(l->storage.bits, l->in) };
	const size_t scales[2] = { l->group < 0 ? 1 : l->out, l->groups };
	int rank = l->group < 0 ? 1 : 2;

	if (l->packed) {
		put(out, path, "packed", TENSOR_U32, l->packed, 2, packed);
		output_integer(out, member(path, "packed"), "columns", (int64_t)l->in);
	} else
		put(out, path, "codes", TENSOR_U8, l->codes, 2, codes);
	put(out, path, "scale", TENSOR_F32, l->scale, rank, scales);
	if (l->storage.asymmetric)
		put(out, path, "zero", TENSOR_U8, l->zero, rank, scales);
	if (l->group_index)
		put(out, path, "group_index", TENSOR_I32, l->group_index, 1, &l->in);
	output_text(out, path, "storage", l->storage.name);
	output_integer(out, path, "group", l->group);
	output_integer(out, path, "bits", l->storage.bits);
	output_text(out, path, "compute", l->compute.name[0] ? l->compute.name : "none");
	if (!l->compute.name[0])
		return;
	put(out, path, "scale8", TENSOR_F32, l->scale8, 1, &l->scales8);
	output_number(out, path, "saturate", (double)(l->saturate > 0 ? l->saturate : l->compute.top));
}

void layer_write(struct output *out, const struct image *from, const char *path, const struct linear *l)
{
	static const enum tensor_type halves[] = { [HALF_NONE] = TENSOR_F32, [HALF_F16] = TENSOR_F16, [HALF_BF16] = TENSOR_BF16 };
	static const char *const ours[] = { "weight", "codes", "packed", "scale", "zero", "group_index", "scale8", "act_scale",
		"storage", "group", "bits", "compute", "saturate", "act_format", "act_mode", NULL };
	const size_t shape[2] = { l->out, l->in };
	char *group = xformat("%s", path);

	if (from)
		output_copy(out, from, group, ours);
	if (l->weight)
		put(out, group, "weight", halves[l->weight_type], l->weight, 2, shape);
	else
		write_quantized(out, group, l);
	if (!from && l->bias)
		put(out, group, "bias", TENSOR_F32, l->bias, 1, &l->out);
	if (l->input.mode != INPUT_AS_IS) {
		output_text(out, group, "act_format", l->input.format.name);
		output_text(out, group, "act_mode", modes[l->input.mode]);
		if (l->input.mode != INPUT_DYNAMIC_TOKEN)
			put(out, group, "act_scale", TENSOR_F32, l->input.scale, 1, &l->input.modalities);
	}
	free(group);
}

struct walk {
	const struct image *image;
	const struct config *config;
	const struct selection *layers;
	struct layer_list list;
	bool *block;			/* [blocks]: those of which something stands in the part */
};

bool layer_quantized(const struct image *image, const char *path)
{
	return image_has(image, member(path, "codes")) || image_has(image, member(path, "packed"));
}

bool layer_there(const struct image *image, const char *path)
{
	struct tensor t;

	return layer_quantized(image, path) ||
		(image_find(image, member(path, "weight"), TENSOR_ANY, -1, NULL, &t) && t.rank == 2);
}

/* Whether the path is selected, if it has a linear layer: an embedding or a head only if a GLOB matches it. */
static bool selected(const struct config *c, const struct selection *layers, const char *path)
{
	size_t block, row;

	return selection_has(layers, path) && (!c ||
		config_find(c, path, &block, &row) || selection_names(layers, path));
}

void layer_each(const struct config *c, const struct selection *layers,
	void (*visit)(void *arg, const char *path, size_t in), void *arg)
{
	const char *const ends[] = { c->arch->embedding, c->arch->head };

	for (size_t i = 0; i < c->blocks; i++)
		for (const struct linear_row *row = c->arch->linear; row->name; row++) {
			char *path = config_path(c, i, row->name);

			if (selected(c, layers, path))
				visit(arg, path, config_in(c, row->projection));
			free(path);
		}
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (selected(c, layers, ends[i]))
			visit(arg, ends[i], c->hidden);
}

static void visit(void *arg, const char *path)
{
	struct walk *w = arg;
	size_t block;

	if (w->config && config_block(w->config, path, &block) && block < w->config->blocks)
		w->block[block] = true;
	if (!selected(w->config, w->layers, path) || !layer_there(w->image, path))
		return;
	w->list.path = xgrow(w->list.path, w->list.n + 1, sizeof *w->list.path);
	w->list.path[w->list.n++] = xformat("%s", path);
}

struct layer_list layer_list(const struct image *image, const struct config *c,
	const struct selection *layers)
{
	struct walk w = { .image = image, .config = c, .layers = layers,
		.block = xalloc(c ? c->blocks : 0, sizeof *w.block) };

	image_groups(image, visit, &w);
	for (size_t i = 0; c && i < c->blocks; i++)
		for (const struct linear_row *row = c->arch->linear; w.block[i] && row->name; row++) {
			char *path = config_path(c, i, row->name);

			if (selected(c, layers, path) && !layer_there(image, path))
				die("%s: %s: has neither weight nor codes: no linear layer", image_name(image), path);
			free(path);
		}
	free(w.block);
	return w.list;
}

void layer_list_free(struct layer_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->path[i]);
	free(l->path);
	*l = (struct layer_list){ 0 };
}

bool layer_listed(const struct layer_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->path[i], path))
			return true;
	return false;
}
