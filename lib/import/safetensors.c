/* SPDX-License-Identifier: GPL-3.0-or-later */
/* safetensors.c -- mapped tensors of a Hugging Face folder; see safetensors.h */
#include "import/safetensors.h"
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "io/contents.h"
#include "io/file.h"

enum {
	LENGTH_BYTES = 8,		/* of the header's length */
	HEADER_MAX = 100000000		/* bytes; the limit of the format's own reader */
};

struct file {
	char *path;
	unsigned char *map;
	size_t size, data;	/* bytes; the offset of the data */
};

struct entry {
	char *name;
	size_t file;
	const struct dtype *dtype;	/* NULL: not in the table of types */
	char *dtype_name;
	size_t rank, dim[TENSOR_RANK];	/* dim is filled while rank fits */
	size_t begin, end;		/* in the file */
};

struct safetensors {
	char *folder;
	struct file *file;
	size_t files;
	struct entry *entry;
	size_t entries;
	void **copy;
	size_t copies;
};

/* TENSOR_ANY: the size is checked, but safetensors_tensor() refuses the type. */
static const struct dtype {
	const char *name;
	size_t size;
	enum tensor_type type;
} dtypes[] = {
	{ "F32", 4, TENSOR_F32 }, { "F16", 2, TENSOR_F16 }, { "BF16", 2, TENSOR_BF16 },
	{ "F64", 8, TENSOR_ANY }, { "I64", 8, TENSOR_ANY }, { "U64", 8, TENSOR_ANY },
	{ "I32", 4, TENSOR_ANY }, { "U32", 4, TENSOR_ANY }, { "I16", 2, TENSOR_ANY },
	{ "U16", 2, TENSOR_ANY }, { "I8", 1, TENSOR_ANY }, { "U8", 1, TENSOR_ANY }, { "BOOL", 1, TENSOR_ANY },
	{ "F8_E4M3", 1, TENSOR_ANY }, { "F8_E5M2", 1, TENSOR_ANY }, { "F8_E8M0", 1, TENSOR_ANY },
};

static size_t whole_number(const struct file *f, const char *name, const char *what, const json_t *v)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		die("%s: %s: %s has a value that is not a whole number", f->path, name, what);
	return (size_t)json_integer_value(v);
}

static void read_entry(const struct file *f, struct entry *e, const json_t *value)
{
	const json_t *dtype = json_object_get(value, "dtype"), *shape = json_object_get(value, "shape");
	const json_t *offsets = json_object_get(value, "data_offsets");
	size_t bytes, available = f->size - f->data;

	if (!json_is_string(dtype) || !json_is_array(shape) || json_array_size(offsets) != 2)
		die("%s: %s: the header entry lacks a dtype, a shape or two data_offsets", f->path, e->name);
	e->dtype_name = xformat("%s", json_string_value(dtype));
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		if (!strcmp(dtypes[i].name, e->dtype_name))
			e->dtype = dtypes + i;

	bytes = e->dtype ? e->dtype->size : 0;
	e->rank = json_array_size(shape);
	for (size_t i = 0; i < e->rank; i++) {
		size_t d = whole_number(f, e->name, "the shape", json_array_get(shape, i));

		if (__builtin_mul_overflow(bytes, d, &bytes))
			die("%s: %s: the shape overflows", f->path, e->name);
		if (i < TENSOR_RANK)
			e->dim[i] = d;
	}
	e->begin = whole_number(f, e->name, "data_offsets", json_array_get(offsets, 0));
	e->end = whole_number(f, e->name, "data_offsets", json_array_get(offsets, 1));
	if (e->begin > e->end || e->end > available)
		die("%s: %s: data_offsets %zu..%zu are not within the %zu bytes of data; the file is damaged",
			f->path, e->name, e->begin, e->end, available);
	if (e->dtype && e->end - e->begin != bytes)
		die("%s: %s: has %zu bytes of data, its shape of %s needs %zu", f->path, e->name,
			e->end - e->begin, e->dtype_name, bytes);
	e->begin += f->data;
	e->end += f->data;
}

static int by_begin(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* In the format every byte of the data belongs to one tensor. */
static void check_cover(const struct file *f, size_t n, struct entry *e)
{
	size_t at = f->data;

	if (n)
		qsort(e, n, sizeof *e, by_begin);
	for (size_t i = 0; i < n; at = e[i++].end)
		if (e[i].begin != at)
			die("%s: %s: its data %s", f->path, e[i].name,
				e[i].begin < at ? "overlap those of another tensor" : "begin after a gap");
	if (at != f->size)
		die("%s: %zu bytes after the last tensor belong to none", f->path, f->size - at);
}

static size_t map_safetensors(struct file *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	uint64_t header = 0;

	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open:", f->path);
	if (!S_ISREG(st.st_mode))
		die("%s: is not a regular file", f->path);
	file_note(fd, f->path);
	f->size = (size_t)st.st_size;
	if (f->size < LENGTH_BYTES + 2)
		die("%s: is not a safetensors file: it has %zu bytes", f->path, f->size);
	f->map = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f->map == MAP_FAILED)
		die("%s: cannot map:", f->path);
	close(fd);

	for (int i = LENGTH_BYTES - 1; i >= 0; i--)
		header = header << 8 | f->map[i];
	if (header > HEADER_MAX || header > f->size - LENGTH_BYTES)
		die("%s: is not a whole safetensors file: it has %zu bytes, and its header would have %ju",
			f->path, f->size, (uintmax_t)header);
	f->data = LENGTH_BYTES + (size_t)header;
	return (size_t)header;
}

static void read_file(struct safetensors *s, size_t index)
{
	struct file *f = s->file + index;
	size_t header = map_safetensors(f), first = s->entries;
	json_error_t error;
	const char *name;
	json_t *root, *value;

	root = json_loadb((const char *)f->map + LENGTH_BYTES, header, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		die("%s: the header is not valid JSON: %s", f->path, error.text);
	if (!json_is_object(root))
		die("%s: the header is not a JSON object", f->path);
	json_object_foreach(root, name, value) {
		if (!strcmp(name, "__metadata__"))
			continue;
		s->entry = xgrow(s->entry, s->entries + 1, sizeof *s->entry);
		s->entry[s->entries] = (struct entry){ .name = xformat("%s", name), .file = index };
		read_entry(f, s->entry + s->entries++, value);
	}
	json_decref(root);
	check_cover(f, s->entries - first, s->entry ? s->entry + first : NULL);
}

static size_t add_file(struct safetensors *s, const char *name)
{
	char *path = xformat("%s/%s", s->folder, name);

	for (size_t i = 0; i < s->files; i++)
		if (!strcmp(s->file[i].path, path)) {
			free(path);
			return i;
		}
	s->file = xgrow(s->file, s->files + 1, sizeof *s->file);
	s->file[s->files] = (struct file){ .path = path };
	return s->files++;
}

static const struct entry *find_entry(const struct safetensors *s, const char *name)
{
	struct entry key = { .name = (char *)name };

	return s->entries ? bsearch(&key, s->entry, s->entries, sizeof key, by_name) : NULL;
}

static void sort_entries(struct safetensors *s)
{
	if (s->entries)
		qsort(s->entry, s->entries, sizeof *s->entry, by_name);
	for (size_t i = 1; i < s->entries; i++)
		if (!strcmp(s->entry[i - 1].name, s->entry[i].name))
			die("%s: %s: the tensor is in %s too", s->file[s->entry[i].file].path,
				s->entry[i].name, s->file[s->entry[i - 1].file].path);
}

static void read_index(struct safetensors *s, const char *path)
{
	size_t n;
	char *text = contents_read(path, HEADER_MAX, &n);
	json_error_t error;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error), *map, *file;
	const char *name;

	if (!root)
		die("%s:%d: not valid JSON: %s", path, error.line, error.text);
	map = json_object_get(root, "weight_map");
	if (!json_is_object(map) || !json_object_size(map))
		die("%s: weight_map: expected an object of tensor and file names", path);
	json_object_foreach(map, name, file) {
		const char *f = json_string_value(file);

		if (!f || !*f || strchr(f, '/'))
			die("%s: weight_map: %s: expected the name of a file in the same folder", path, name);
		add_file(s, f);
	}
	for (size_t i = 0; i < s->files; i++)
		read_file(s, i);
	sort_entries(s);
	json_object_foreach(map, name, file) {
		const struct entry *e = find_entry(s, name);

		if (!e || e->file != add_file(s, json_string_value(file)))
			die("%s: weight_map: %s: is not in %s", path, name, json_string_value(file));
	}
	json_decref(root);
	free(text);
}

struct safetensors *safetensors_open(const char *folder)
{
	struct safetensors *s = xalloc(1, sizeof *s);
	char *single = xformat("%s/model.safetensors", folder);
	char *index = xformat("%s/model.safetensors.index.json", folder);

	s->folder = xformat("%s", folder);
	if (!access(single, F_OK)) {
		read_file(s, add_file(s, "model.safetensors"));
		sort_entries(s);
	} else if (!access(index, F_OK)) {
		read_index(s, index);
	} else {
		die("%s: has neither model.safetensors nor model.safetensors.index.json", folder);
	}
	free(single);
	free(index);
	return s;
}

size_t safetensors_count(const struct safetensors *s)
{
	return s->entries;
}

const char *safetensors_at(const struct safetensors *s, size_t i)
{
	return s->entry[i].name;
}

const char *safetensors_file(const struct safetensors *s, const char *name)
{
	const struct entry *e = find_entry(s, name);

	return e ? s->file[e->file].path : NULL;
}

static const struct entry *entry_of(const struct safetensors *s, const char *name)
{
	const struct entry *e = find_entry(s, name);

	if (!e)
		die("%s: %s: no such tensor", s->folder, name);
	return e;
}

struct tensor safetensors_describe(const struct safetensors *s, const char *name)
{
	const struct entry *e = entry_of(s, name);

	if (!e->dtype || e->rank > TENSOR_RANK)
		return (struct tensor){ .type = TENSOR_ANY };
	return tensor_of(e->dtype->type, NULL, (int)e->rank, e->dim);
}

/* The data of an entry, aligned to elements. */
static void *aligned(struct safetensors *s, const struct entry *e)
{
	unsigned char *data = s->file[e->file].map + e->begin;

	if (e->rank > TENSOR_RANK)
		die("%s: %s: has %zu dimensions, expected at most %d", s->file[e->file].path, e->name,
			e->rank,
			TENSOR_RANK);
	if (e->dtype && (uintptr_t)data % e->dtype->size) {
		s->copy = xgrow(s->copy, s->copies + 1, sizeof *s->copy);
		s->copy[s->copies] = xalloc(e->end - e->begin, 1);
		return memcpy(s->copy[s->copies++], data, e->end - e->begin);
	}
	return data;
}

struct tensor safetensors_tensor(struct safetensors *s, const char *name)
{
	const struct entry *e = entry_of(s, name);

	if (!e->dtype || e->dtype->type == TENSOR_ANY)
		die("%s: %s: is stored as %s, expected F32, F16 or BF16", s->file[e->file].path, name,
			e->dtype_name);
	return tensor_of(e->dtype->type, aligned(s, e), (int)e->rank, e->dim);
}

struct safetensors_raw safetensors_raw(struct safetensors *s, const char *name)
{
	const struct entry *e = entry_of(s, name);
	struct safetensors_raw y = { e->dtype_name, (int)e->rank, .bytes = e->end - e->begin,
		.data = aligned(s, e) };

	memcpy(y.dim, e->dim, sizeof y.dim);
	return y;
}

void safetensors_release(struct safetensors *s)
{
	for (size_t i = 0; i < s->copies; i++)
		free(s->copy[i]);
	s->copies = 0;
	for (size_t i = 0; i < s->files; i++)
		madvise(s->file[i].map, s->file[i].size, MADV_DONTNEED);
}

void safetensors_free_copies(struct safetensors *s)
{
	if (s->copies)
		safetensors_release(s);
}

void safetensors_close(struct safetensors *s)
{
	safetensors_release(s);
	for (size_t i = 0; i < s->files; i++) {
		munmap(s->file[i].map, s->file[i].size);
		free(s->file[i].path);
	}
	for (size_t i = 0; i < s->entries; i++) {
		free(s->entry[i].name);
		free(s->entry[i].dtype_name);
	}
	free(s->entry);
	free(s->file);
	free(s->copy);
	free(s->folder);
	free(s);
}
