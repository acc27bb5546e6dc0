/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_source.c -- see gguf_source.h */
#include "import/gguf_source.h"
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "import/ggml.h"
#include "import/gguf.h"
#include "import/gguf_chat.h"
#include "import/gguf_config_private.h"
#include "import/gguf_tokenizer_private.h"

enum { LIST = 256 };

struct item {
	char *name;		/* in transformers */
	const struct gguf_tensor *from;
	const struct ggml_type *type;	/* NULL: no such type */
	const struct gguf_layout *layout;
	bool stacked;		/* one of the experts that the tensor of the file stacks */
	size_t expert;
};

struct data {
	struct gguf *g;
	struct gguf_sizes sizes;
	struct item *item;	/* by name */
	size_t items;
	void **copy;
	size_t copies;
};

static bool fits(const char *path)
{
	size_t n = strlen(path);
	struct stat st;
	char magic[4] = "";
	FILE *f;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	if (n > 5 && !strcmp(path + n - 5, ".gguf"))
		return true;
	f = fopen(path, "re");
	if (f) {
		n = fread(magic, 1, sizeof magic, f);
		fclose(f);
	}
	return f && n == sizeof magic && !memcmp(magic, "GGUF", sizeof magic);
}

/* The name in transformers of a tensor of the file, with the numbers of block and expert and the member;
 * NULL: the row does not match. */
static char *renamed(const struct gguf_name *row, const char *name, size_t expert)
{
	const char *number = NULL;
	char expert_number[24], *hf;
	size_t digits = 0, n = 0;

	for (const char *p = row->gguf; *p; p++) {
		if (*p != '#') {
			if (*name++ != *p)
				return NULL;
			continue;
		}
		number = name;
		while (isdigit((unsigned char)*name))
			name++;
		digits = (size_t)(name - number);
		if (!digits)
			return NULL;
	}
	if (strcmp(name, ".weight") && strcmp(name, ".bias"))
		return NULL;
	snprintf(expert_number, sizeof expert_number, "%zu", expert);
	hf = xalloc(strlen(row->hf) + digits + strlen(expert_number) + strlen(name) + 1, 1);
	for (const char *p = row->hf; *p; p++) {
		const char *from = *p == '#' ? number : *p == '@' ? expert_number : p;
		size_t length = *p == '#' ? digits : *p == '@' ? strlen(expert_number) : 1;

		memcpy(hf + n, from, length);
		n += length;
	}
	strcpy(hf + n, name);
	return hf;
}

static void add_item(struct data *d, struct item item)
{
	d->item = xgrow(d->item, d->items + 1, sizeof *d->item);
	d->item[d->items++] = item;
}

static bool is_known(const struct item *item)
{
	return item->type && item->type->decode;
}

static size_t width(const struct gguf_tensor *t)
{
	return t->rank ? t->dim[t->rank - 1] : 1;
}

static size_t count(const struct gguf_tensor *t)
{
	size_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= t->dim[i];
	return n;
}

/* Checks that the file has all data of the tensor. */
static void check_item(const struct source *s, const struct item *item)
{
	const struct gguf_tensor *t = item->from;
	size_t bytes;

	if (!is_known(item))
		return;
	if (width(t) % item->type->length)
		die("%s: %s: has rows of %zu numbers, %s has blocks of %zu", s->path, t->name, width(t),
			item->type->name, item->type->length);
	bytes = count(t) / item->type->length * item->type->bytes;
	if (bytes > t->room)
		die("%s: %s: needs %zu bytes of data, only %zu precede the next tensor or the end; the "
			"file is damaged",
			s->path, t->name, bytes, t->room);
}

static _Noreturn void refuse_item(const struct source *s, const struct item *item)
{
	char known[LIST] = "";

	for (const struct ggml_type *t = ggml_types; t->name; t++) {
		size_t n = strlen(known);

		if (t->decode)
			snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", t->name);
	}
	if (item->type)
		die("%s: %s: is stored as %s, expected one of %s", s->path, item->from->name,
			item->type->name, known);
	die("%s: %s: is stored as type %u, expected one of %s", s->path, item->from->name, item->from->type,
		known);
}

/* Adds the tensors of transformers that a tensor of the file contains. */
static void add_tensor(struct source *s, const struct gguf_row *row, const struct gguf_tensor *t)
{
	struct data *d = s->data;
	const struct gguf_name *n = row->names;
	struct item item = { .from = t, .type = ggml_find(t->type) };

	while (n->gguf && !(item.name = renamed(n, t->name, 0)))
		n++;
	item.layout = gguf_layouts + n->layout;
	check_item(s, &item);
	if (!n->gguf) {
		item.name = xformat("%s", t->name);
		add_item(d, item);
	} else if (!strchr(n->hf, '@')) {
		add_item(d, item);
	} else {
		free(item.name);
		if (!is_known(&item))	/* the bytes of an expert are not known */
			refuse_item(s, &item);
		if (t->rank != 3 || t->dim[0] != d->sizes.experts || !count(t))
			die("%s: %s: is not a stack of the matrices of %zu experts", s->path, t->name,
				d->sizes.experts);
		item.stacked = true;
		for (; item.expert < t->dim[0]; item.expert++) {
			item.name = renamed(n, t->name, item.expert);
			add_item(d, item);
		}
	}
}

static enum tensor_type item_type(const struct item *item)
{
	if (!is_known(item))
		return TENSOR_ANY;
	if (item->layout->plus != 0)
		return TENSOR_F32;
	return item->type->id == GGML_F16 ? TENSOR_F16 :
		item->type->id == GGML_BF16 ? TENSOR_BF16 : TENSOR_F32;
}

static struct tensor shape_of(const struct item *item)
{
	const struct gguf_tensor *t = item->from;
	struct tensor y = tensor_of(item_type(item), NULL, t->rank - item->stacked, t->dim + item->stacked);

	if (item->layout->one_row && t->rank == 1)
		return tensor_2d(y.type, NULL, 1, t->dim[0]);
	if (item->layout->transposed && t->rank == 2) {
		y.dim[0] = t->dim[1];
		y.dim[1] = t->dim[0];
	}
	return y;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static void open_file(struct source *s)
{
	struct data *d = s->data = xalloc(1, sizeof *d);
	const struct gguf_row *row;

	d->g = gguf_open(s->path);
	row = gguf_row_of(d->g, s->path);
	s->config_name = xformat("%s", s->path);
	s->text[TEXT_CONFIG] = gguf_config(d->g, s->path, row, &d->sizes);
	s->text[TEXT_TOKENIZER] = gguf_tokenizer(d->g, s->path);
	gguf_read_chat(d->g, s->path, s->text);
	for (size_t i = 0; i < gguf_count(d->g); i++) {
		const struct gguf_tensor *t = gguf_at(d->g, i);

		if (!gguf_config_takes(t->name))
			add_tensor(s, row, t);
	}
	if (d->items)
		qsort(d->item, d->items, sizeof *d->item, by_name);
	s->n = d->items;
	s->tensor = xalloc(s->n, sizeof *s->tensor);
	for (size_t i = 0; i < s->n; i++)
		s->tensor[i] = (struct source_tensor){ d->item[i].name, s->path, shape_of(d->item + i),
			false };
}

/* [m, n] to [n, m] */
static void transpose(size_t m, size_t n, size_t size, char *to, const char *from)
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++)
			memcpy(to + (j * m + i) * size, from + (i * n + j) * size, size);
}

static void *keep(struct data *d, size_t n, size_t size)
{
	d->copy = xgrow(d->copy, d->copies + 1, sizeof *d->copy);
	return d->copy[d->copies++] = xalloc(n, size);
}

/* The numbers at `data` in the order of rows of transformers, as F32 or in their stored type. */
static void *copy_rows(struct data *d, const struct item *item, const unsigned char *data, size_t rows,
	size_t columns)
{
	const struct ggml_type *type = item->type;
	const float plus = item->layout->plus;
	const bool decoded = type->length > 1 || plus != 0;
	const size_t bytes = columns / type->length * type->bytes;
	const size_t size = decoded ? sizeof(float) : type->bytes;
	char *to = keep(d, rows * columns, size), *transposed;

	for (size_t i = 0; i < rows; i++) {
		const unsigned char *from = data + gguf_layout_row(item->layout, &d->sizes, rows, i) * bytes;
		char *y = to + i * columns * size;

		if (decoded)
			type->decode(columns / type->length, (float *)(void *)y, from);
		else
			memcpy(y, from, bytes);
	}
	for (size_t i = 0; plus != 0 && i < rows * columns; i++)
		((float *)(void *)to)[i] -= plus;
	if (!item->layout->transposed || item->from->rank != 2)
		return to;
	transposed = keep(d, rows * columns, size);
	transpose(rows, columns, size, transposed, to);
	return transposed;
}

static struct item *find_item(struct source *s, const char *name)
{
	const struct data *d = s->data;
	struct item key = { .name = (char *)name }, *item;

	item = d->items ? bsearch(&key, d->item, d->items, sizeof key, by_name) : NULL;
	if (!item)
		die("%s: %s: no such tensor", s->path, name);
	if (!is_known(item))
		refuse_item(s, item);
	return item;
}

/* The rows of the item in the file; *bytes: of one row. */
static const unsigned char *stored_rows(const struct item *item, size_t *rows, size_t *columns, size_t *bytes)
{
	const struct gguf_tensor *t = item->from;
	const struct tensor y = shape_of(item);

	*columns = t->rank > 1 || item->type->length > 1 ? width(t) : 1;
	*rows = *columns ? tensor_count(&y) / *columns : 0;
	*bytes = *columns / item->type->length * item->type->bytes;
	return t->data + item->expert * *rows * *bytes;
}

static bool read_stored(struct source *s, const struct source_tensor *t, size_t i, struct tensor *y)
{
	size_t rows, columns, bytes;
	const unsigned char *data = stored_rows(find_item(s, t->name), &rows, &columns, &bytes);

	*y = tensor_1d(TENSOR_U8, (void *)(uintptr_t)data, rows * bytes);
	return !i;
}

static struct tensor read_tensor(struct source *s, const char *name)
{
	struct item *item = find_item(s, name);
	size_t rows, columns, bytes;
	const unsigned char *data = stored_rows(item, &rows, &columns, &bytes);
	const struct gguf_tensor *t = item->from;
	const struct gguf_layout *l = item->layout;
	const struct data *d = s->data;
	const bool as_is = l->rows == GGUF_ROWS_AS_IS && l->plus == 0 && !(l->transposed && t->rank >= 2);
	struct tensor y = shape_of(item);

	if (!gguf_layout_fits(l, &d->sizes, rows))
		die("%s: %s: its %zu rows are not those of %zu heads", s->path, t->name, rows,
			gguf_layout_heads(l, &d->sizes));
	y.data = as_is && item->type->length == 1 ? (void *)(uintptr_t)data :
		copy_rows(s->data, item, data, rows, columns);
	return y;
}

static void release(struct source *s)
{
	struct data *d = s->data;

	for (size_t i = 0; i < d->copies; i++)
		free(d->copy[i]);
	d->copies = 0;
	gguf_release(d->g);
}

static void close_file(struct source *s)
{
	struct data *d = s->data;

	release(s);
	for (size_t i = 0; i < d->items; i++)
		free(d->item[i].name);
	free(d->item);
	free(d->copy);
	gguf_close(d->g);
	free(d);
}

const struct source_kind gguf_source = { "a GGUF file", fits, open_file, close_file, read_tensor, NULL,
	read_stored,
	release };
