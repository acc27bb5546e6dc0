/* SPDX-License-Identifier: GPL-3.0-or-later */
/* safetensors_output.c -- see safetensors_output.h */
#include "export/safetensors_output.h"
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/size.h"
#include "io/file.h"

/* Bytes of the length of a header; alignment of data of any type; bytes of a number and a comma. */
enum { LENGTH = 8, ALIGN = 8, DIGITS = 21 };
static const char start[] = "{\"__metadata__\":{\"format\":\"pt\"}";

/* A tensor that is written at the end of its file, since data after it would not be aligned. */
struct waiting {
	char *name;
	struct safetensors_data t;
};

struct safetensors_output {
	struct folder *folder;
	const char *stem;
	size_t min_room, room;		/* min room of a header; room of the current one */
	size_t shard_bytes, total;	/* total: bytes of data of all files */
	size_t files;
	int fd;				/* of the current file; -1: none */
	char *path;			/* of the current file, for messages */
	char *header;			/* its text so far */
	size_t used, data;		/* bytes of the text, bytes of the data */
	size_t reserved;		/* max bytes of the header with the waiting tensors */
	struct waiting *waiting;
	size_t n, waits;		/* number of waiting tensors, bytes of their data */
	json_t *map;			/* name of a tensor: number of its file */
};

struct safetensors_output *safetensors_create(struct folder *folder, const char *stem,
	size_t shard_bytes, size_t room)
{
	struct safetensors_output *s = xalloc(1, sizeof *s);

	*s = (struct safetensors_output){ .folder = folder, .stem = stem, .shard_bytes = shard_bytes,
		.min_room = room < SAFETENSORS_ROOM ? room : SAFETENSORS_ROOM, .fd = -1,
		.map = json_object() };
	return s;
}

/* The name of a file; files 0: the number of files is not known yet. free() it. */
static char *name_of(const char *stem, size_t file, size_t files)
{
	return files == 1 ? xformat("%s.safetensors", stem) :
		files ? xformat("%s-%05zu-of-%05zu.safetensors", stem, file + 1, files) :
		xformat("%s-%05zu.safetensors", stem, file + 1);
}

/* entry: max bytes of the first entry */
static void begin_file(struct safetensors_output *s, size_t entry)
{
	char *name = name_of(s->stem, s->files++, 0);

	s->fd = folder_create(s->folder, name);
	s->path = xformat("%s/%s", s->folder->path, name);
	s->used = sizeof start - 1;
	s->reserved = s->used + 1;	/* with the final brace */
	s->room = ceil_div(max(s->min_room, s->reserved + entry), ALIGN) * ALIGN;
	s->header = xalloc(s->room, 1);
	memcpy(s->header, start, s->used);
	s->data = 0;
	if (lseek(s->fd, LENGTH + (off_t)s->room, SEEK_SET) < 0)
		die("%s: cannot write:", s->path);
	free(name);
}

/* A tensor's entry in the header, with the comma or brace before it; free() it. */
static char *entry_of(const struct safetensors_output *s, const char *name, const struct safetensors_data *t,
	size_t from, size_t end)
{
	json_t *key = json_string(name);
	char *text = key ? json_dumps(key, JSON_ENCODE_ANY | JSON_COMPACT) : NULL, *y;
	char shape[TENSOR_RANK * DIGITS] = "";
	size_t n = 0;

	if (!text)
		die("%s: %s: is not a valid UTF-8 name", s->folder->path, name);
	for (int i = 0; i < t->rank; i++)
		n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%zu", i ? "," : "", t->dim[i]);
	y = xformat(",%s:{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", text, t->dtype, shape,
		from, end);
	free(text);
	json_decref(key);
	return y;
}

/* Max bytes of an entry, for any offsets of the data. */
static size_t entry_bytes(const struct safetensors_output *s, const char *name,
	const struct safetensors_data *t)
{
	char *text = entry_of(s, name, t, SIZE_MAX, SIZE_MAX);
	const size_t n = strlen(text);

	free(text);
	return n;
}

static void write_now(struct safetensors_output *s, const char *name, const struct safetensors_data *t)
{
	char *text = entry_of(s, name, t, s->data, s->data + t->bytes);
	const size_t n = strlen(text);

	memcpy(s->header + s->used, text, n);
	s->used += n;
	file_write(s->path, s->fd, t->data, t->bytes);
	/* the disk writes it while the next tensor is computed */
	sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	s->data += t->bytes;
	free(text);
}

/* Writes the waiting tensors and the header. Blanks fill the rest of the room, so the data follow
 * directly. */
static void end_file(struct safetensors_output *s)
{
	unsigned char length[LENGTH];

	for (size_t i = 0; i < s->n; i++) {
		write_now(s, s->waiting[i].name, &s->waiting[i].t);
		free(s->waiting[i].name);
		free((void *)(uintptr_t)s->waiting[i].t.data);
	}
	s->n = s->waits = 0;
	s->header[s->used++] = '}';
	memset(s->header + s->used, ' ', s->room - s->used);
	for (int i = 0; i < LENGTH; i++)
		length[i] = (unsigned char)((uint64_t)s->room >> 8 * i);
	if (lseek(s->fd, 0, SEEK_SET) < 0)
		die("%s: cannot write:", s->path);
	file_write(s->path, s->fd, length, LENGTH);
	file_write(s->path, s->fd, s->header, s->room);
	if (fsync(s->fd) || close(s->fd))
		die("%s: cannot write:", s->path);
	s->total += s->data;
	s->fd = -1;
	free(s->header);
	free(s->path);
}

/* Inserts the tensor after those with elements of the same size or larger, so that all are aligned. */
static void wait(struct safetensors_output *s, const char *name, const struct safetensors_data *t)
{
	struct waiting w = { xformat("%s", name), *t };
	size_t i = s->n;

	w.t.data = memcpy(xalloc(t->bytes, 1), t->data, t->bytes);
	s->waiting = xgrow(s->waiting, ++s->n, sizeof *s->waiting);
	for (; i && s->waiting[i - 1].t.element < t->element; i--)
		s->waiting[i] = s->waiting[i - 1];
	s->waiting[i] = w;
	s->waits += t->bytes;
}

void safetensors_add(struct safetensors_output *s, const char *name, struct safetensors_data t)
{
	size_t entry;

	t.bytes = t.element;
	for (int i = 0; i < t.rank; i++)
		t.bytes *= t.dim[i];
	entry = entry_bytes(s, name, &t);
	if (s->fd >= 0 && (s->data + s->waits + t.bytes > s->shard_bytes || s->reserved + entry > s->room))
		end_file(s);
	if (s->fd < 0 && s->files && s->shard_bytes == SIZE_MAX)
		die("%s: %s: does not fit into the header of one file", s->folder->path, s->stem);
	if (s->fd < 0)
		begin_file(s, entry);
	s->reserved += entry;
	json_object_set_new(s->map, name, json_integer((json_int_t)s->files - 1));
	if (t.bytes % ALIGN)
		wait(s, name, &t);
	else
		write_now(s, name, &t);
}

static void write_index(struct safetensors_output *s)
{
	json_t *index = json_pack("{s:{s:I},s:{}}", "metadata", "total_size", (json_int_t)s->total,
		"weight_map"), *map = json_object_get(index, "weight_map"), *file;
	const char *name;
	char *text;

	json_object_foreach(s->map, name, file) {
		char *path = name_of(s->stem, (size_t)json_integer_value(file), s->files);

		json_object_set_new(map, name, json_string(path));
		free(path);
	}
	text = json_dumps(index, JSON_INDENT(2) | JSON_SORT_KEYS);
	folder_write(s->folder, "model.safetensors.index.json", strlen(text), text);
	free(text);
	json_decref(index);
}

void safetensors_finish(struct safetensors_output *s)
{
	if (s->fd >= 0)
		end_file(s);
	for (size_t i = 0; i < s->files; i++) {
		char *name = name_of(s->stem, i, 0), *last = name_of(s->stem, i, s->files);

		folder_rename(s->folder, name, last);
		free(name);
		free(last);
	}
	if (s->files > 1)
		write_index(s);
	json_decref(s->map);
	free(s->waiting);
	free(s);
}
