/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_output.c -- see gguf_output.h */
#include "import/gguf_output.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/replace.h"
#include "io/file.h"

enum { ALIGN = 32, HEADER = 24 };
enum type { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9 };

static const char padding[] = "ptqtools.padding";

/* A growing array of bytes. */
struct bytes { char *at; size_t n, room; };

struct gguf_output {
	struct replace file;
	struct bytes values, table;
	size_t keys, tensors;
	size_t data, end;		/* offsets of all data, and of the data of the next tensor */
	size_t room;			/* bytes reserved for the table */
};

static void append(struct bytes *b, const void *from, size_t n)
{
	if (b->n + n > b->room) {
		b->room = 2 * (b->n + n);
		b->at = xgrow(b->at, b->room, 1);
	}
	if (n)
		memcpy(b->at + b->n, from, n);
	b->n += n;
}

static void append_u32(struct bytes *b, uint32_t v)
{
	append(b, &v, sizeof v);
}

static void append_u64(struct bytes *b, uint64_t v)
{
	append(b, &v, sizeof v);
}

static void append_text(struct bytes *b, const char *s)
{
	append_u64(b, strlen(s));
	append(b, s, strlen(s));
}

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

struct gguf_output *gguf_create(const char *path)
{
	struct gguf_output *o = xalloc(1, sizeof *o);

	if (file_input_kind(path))
		die("%s: is an input, the result would destroy it", path);
	o->file = replace_open(path);
	return o;
}

static struct bytes *key_of(struct gguf_output *o, const char *key, enum type type)
{
	append_text(&o->values, key);
	append_u32(&o->values, type);
	o->keys++;
	return &o->values;
}

void gguf_put_size(struct gguf_output *o, const char *key, size_t v)
{
	if (v > UINT32_MAX)
		die("%s: %s: would be %zu, expected at most %u", o->file.path, key, v, UINT32_MAX);
	append_u32(key_of(o, key, U32), (uint32_t)v);
}

void gguf_put_real(struct gguf_output *o, const char *key, double v)
{
	const float f = (float)v;

	append(key_of(o, key, F32), &f, sizeof f);
}

void gguf_put_flag(struct gguf_output *o, const char *key, bool v)
{
	append(key_of(o, key, BOOL), &(char){ v }, 1);
}

void gguf_put_text(struct gguf_output *o, const char *key, const char *v)
{
	append_text(key_of(o, key, STRING), v);
}

static struct bytes *array_of(struct gguf_output *o, const char *key, enum type type, size_t n)
{
	struct bytes *b = key_of(o, key, ARRAY);

	append_u32(b, type);
	append_u64(b, n);
	return b;
}

void gguf_put_texts(struct gguf_output *o, const char *key, size_t n, char *const v[n])
{
	struct bytes *b = array_of(o, key, STRING, n);

	for (size_t i = 0; i < n; i++)
		append_text(b, v[i]);
}

void gguf_put_reals(struct gguf_output *o, const char *key, size_t n, const float v[n])
{
	append(array_of(o, key, F32, n), v, n * sizeof *v);
}

void gguf_put_integers(struct gguf_output *o, const char *key, size_t n, const int32_t v[n])
{
	append(array_of(o, key, I32, n), v, n * sizeof *v);
}

/* Bytes of the key of padding, without the blanks. */
static size_t padding_bytes(void)
{
	return sizeof(uint64_t) + strlen(padding) + sizeof(uint32_t) + sizeof(uint64_t);
}

void gguf_reserve_table(struct gguf_output *o, size_t bytes)
{
	o->data = o->end = aligned(HEADER + o->values.n + padding_bytes() + bytes);
	o->room = o->data - HEADER - o->values.n - padding_bytes();
}

size_t gguf_entry_bytes(size_t name, int rank)
{
	return sizeof(uint64_t) + name + sizeof(uint32_t) + (size_t)rank * sizeof(uint64_t) +
		sizeof(uint32_t) + sizeof(uint64_t);
}

static void add_entry(struct gguf_output *o, const char *name, uint32_t type, int rank, const size_t dim[],
	size_t offset)
{
	append_text(&o->table, name);
	append_u32(&o->table, (uint32_t)rank);
	for (int i = rank - 1; i >= 0; i--)
		append_u64(&o->table, dim[i]);
	append_u32(&o->table, type);
	append_u64(&o->table, offset);
	o->tensors++;
	if (o->table.n > o->room)
		die("%s: %s: the table of tensors is full: the model has more than its config.json specifies",
			o->file.path, name);
}

size_t gguf_add(struct gguf_output *o, const char *name, uint32_t type, int rank, const size_t dim[],
	size_t bytes)
{
	const size_t at = o->end;

	add_entry(o, name, type, rank, dim, at - o->data);
	o->end = aligned(at + bytes);
	return at;
}

void gguf_write(struct gguf_output *o, size_t at, const void *data, size_t bytes)
{
	if (lseek(o->file.fd, (off_t)at, SEEK_SET) < 0)
		die("%s: cannot write:", o->file.path);
	file_write(o->file.path, o->file.fd, data, bytes);
}

/* Writes all bytes before the data, and extends the file with zeros to a multiple of ALIGN. */
static void write_header(struct gguf_output *o)
{
	struct bytes b = { 0 };
	const size_t blanks = o->room - o->table.n;

	append(&b, "GGUF", 4);
	append_u32(&b, 3);
	append_u64(&b, o->tensors);
	append_u64(&b, o->keys + 1);
	append(&b, o->values.at, o->values.n);
	append_text(&b, padding);
	append_u32(&b, STRING);
	append_u64(&b, blanks);
	for (size_t i = 0; i < blanks; i++)
		append(&b, " ", 1);
	append(&b, o->table.at, o->table.n);
	gguf_write(o, 0, b.at, b.n);
	if (ftruncate(o->file.fd, (off_t)o->end))
		die("%s: cannot write:", o->file.path);
	free(b.at);
}

const char *gguf_preview(struct gguf_output *o, size_t n, const char *const name[n])
{
	const struct bytes table = o->table;
	const size_t tensors = o->tensors, none = 0;

	o->table = (struct bytes){ 0 };
	append(&o->table, table.at, table.n);
	for (size_t i = 0; i < n; i++)
		add_entry(o, name[i], 0, 1, &none, o->end - o->data);
	write_header(o);
	free(o->table.at);
	o->table = table;
	o->tensors = tensors;
	return o->file.temporary;
}

void gguf_finish(struct gguf_output *o)
{
	write_header(o);
	file_check();
	ignore_signals();
	replace_sync(&o->file);
	replace_done(&o->file);
	free(o->values.at);
	free(o->table.at);
	free(o);
}
