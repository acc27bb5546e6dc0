/* SPDX-License-Identifier: GPL-3.0-or-later */
/* source.c -- the kinds of sources of a model; see source.h */
#include "import/source.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "import/gguf_source.h"
#include "import/packed.h"
#include "import/safetensors.h"
#include "io/contents.h"

/* --- a Hugging Face folder --- */

enum { CONFIG_MAX = 16 << 20, TEXT_MAX = 1 << 30 };

static char *read_text(const char *path, size_t max)
{
	size_t n;
	char *text = contents_read(path, max, &n);

	if (!n || strlen(text) != n)
		die("%s: is %s", path, n ? "no text: it has a NUL byte" : "empty");
	return text;
}

static bool folder_fits(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The text of a file of the folder; NULL: absent. A link that leads to no file is an error: in a part of
 * Hugging Face's cache that was copied, the model has this file. */
static char *read_sibling(const struct source *s, const char *name)
{
	char *path = xformat("%s/%s", s->path, name), *text;
	struct stat st = { 0 };
	const bool absent = lstat(path, &st) && errno == ENOENT;

	if (!absent && access(path, F_OK))
		die("%s: cannot open%s:", path, S_ISLNK(st.st_mode) ? " what this link leads to" : "");
	text = absent ? NULL : read_text(path, TEXT_MAX);

	free(path);
	return text;
}

struct checkpoint_folder {
	struct safetensors *tensors;
	struct packed *packed;		/* NULL: no weights are packed */
	char **name;			/* of packed weights, "LAYER.weight" */
	size_t names;
};

static void add_tensor(struct source *s, const char *name)
{
	const struct checkpoint_folder *f = s->data;

	s->tensor[s->n++] = (struct source_tensor){ name, safetensors_file(f->tensors, name),
		safetensors_describe(f->tensors, name), false };
}

/* Adds the weight of a packed layer, when `tensor` is its first member. */
static void add_packed(struct source *s, const char *layer, const char *tensor)
{
	struct checkpoint_folder *f = s->data;
	const char *member = strrchr(tensor, '.') + 1;
	size_t dim[2];

	if (strcmp(member, packed_member(f->packed, layer, 0)))
		return;
	packed_shape(f->packed, layer, dim);
	safetensors_free_copies(f->tensors);
	f->name = xgrow(f->name, f->names + 1, sizeof *f->name);
	f->name[f->names] = xformat("%s.weight", layer);
	s->tensor[s->n++] = (struct source_tensor){ f->name[f->names++],
		safetensors_file(f->tensors, tensor), tensor_2d(TENSOR_U8, NULL, dim[0], dim[1]), true };
}

static void open_folder(struct source *s)
{
	struct checkpoint_folder *f = s->data = xalloc(1, sizeof *f);
	const char *left = NULL;

	s->config_name = xformat("%s/config.json", s->path);
	s->text[TEXT_CONFIG] = read_text(s->config_name, CONFIG_MAX);
	for (int i = TEXT_CONFIG + 1; i < TEXTS; i++) {
		s->text[i] = read_sibling(s, text_rows[i].file);
		if (!s->text[i] && text_rows[i].also)
			s->text[i] = read_sibling(s, text_rows[i].also);
	}
	f->tensors = safetensors_open(s->path);
	f->packed = packed_open(s->config_name, &s->text[TEXT_CONFIG], f->tensors);
	s->history = f->packed ? packed_history(f->packed) : NULL;
	s->tensor = xalloc(safetensors_count(f->tensors), sizeof *s->tensor);
	for (size_t i = 0; i < safetensors_count(f->tensors); i++) {
		const char *name = safetensors_at(f->tensors, i);
		char *layer = f->packed ? packed_name(f->packed, name) : NULL;

		if (layer)
			add_packed(s, layer, name);
		else if (f->packed && packed_is_ignored(name))
			left = name;
		else
			add_tensor(s, name);
		free(layer);
	}
	if (left)
		warn("%s: %s: scales of keys and values are not supported: they are left out", s->path, left);
}

static void folder_close(struct source *s)
{
	struct checkpoint_folder *f = s->data;

	for (size_t i = 0; i < f->names; i++)
		free(f->name[i]);
	free(f->name);
	if (f->packed)
		packed_close(f->packed);
	safetensors_close(f->tensors);
	free(f);
}

static struct tensor folder_read(struct source *s, const char *name)
{
	const struct checkpoint_folder *f = s->data;

	return safetensors_tensor(f->tensors, name);
}

/* The name of the layer of a weight; free() it. */
static char *layer_of(const char *weight)
{
	return xformat("%.*s", (int)(strrchr(weight, '.') - weight), weight);
}

static struct source_layer folder_codes(struct source *s, const char *name)
{
	const struct checkpoint_folder *f = s->data;
	char *layer = layer_of(name);
	const struct source_layer y = packed_read(f->packed, layer);

	free(layer);
	return y;
}

static bool folder_stored(struct source *s, const struct source_tensor *t, size_t i, struct tensor *bytes)
{
	const struct checkpoint_folder *f = s->data;
	char *layer = t->packed ? layer_of(t->name) : NULL;
	const char *member = layer ? packed_member(f->packed, layer, i) : NULL;
	const bool is = t->packed ? member != NULL : !i;
	char *name = member ? xformat("%s.%s", layer, member) : xformat("%s", t->name);

	if (is) {
		const struct safetensors_raw x = safetensors_raw(f->tensors, name);

		*bytes = tensor_1d(TENSOR_U8, (void *)(uintptr_t)x.data, x.bytes);
	}
	free(layer), free(name);
	return is;
}

static void folder_release(struct source *s)
{
	const struct checkpoint_folder *f = s->data;

	safetensors_release(f->tensors);
}

/* --- the table --- */

static const struct source_kind folder = { "a Hugging Face folder with config.json and safetensors",
	folder_fits, open_folder, folder_close, folder_read, folder_codes, folder_stored, folder_release };
static const struct source_kind *const kinds[] = { &folder, &gguf_source };
enum { KINDS = sizeof kinds / sizeof *kinds };

bool source_fits(const char *path)
{
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i]->fits(path))
			return true;
	return false;
}

struct source *source_open(const char *path)
{
	struct source *s = xalloc(1, sizeof *s);
	char known[256] = "";

	if (access(path, F_OK))
		die("%s: cannot open: %s; expected a local Hugging Face folder or GGUF file", path,
			strerror(errno));
	s->path = path;
	for (size_t i = 0; i < KINDS; i++) {
		size_t n = strlen(known);

		if (kinds[i]->fits(path)) {
			s->kind = kinds[i];
			s->kind->open(s);
			return s;
		}
		snprintf(known + n, sizeof known - n, "%s%s", n ? " or " : "", kinds[i]->what);
	}
	die("%s: cannot be imported, expected %s", path, known);
}

void source_close(struct source *s)
{
	s->kind->close(s);
	for (int i = 0; i < TEXTS; i++)
		free(s->text[i]);
	free(s->config_name);
	free(s->history);
	free(s->tensor);
	free(s);
}
