/* SPDX-License-Identifier: GPL-3.0-or-later */
/* source.c -- the kinds of sources of a model; see source.h */
#include "import/source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "import/gguf_source.h"
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

/* The text of a file of the folder, or NULL where there is none. */
static char *read_sibling(const struct source *s, const char *name)
{
	char *path = xformat("%s/%s", s->path, name);
	char *text = access(path, F_OK) ? NULL : read_text(path, TEXT_MAX);

	free(path);
	return text;
}

static void open_folder(struct source *s)
{
	s->config_name = xformat("%s/config.json", s->path);
	s->text[TEXT_CONFIG] = read_text(s->config_name, CONFIG_MAX);
	for (int i = TEXT_CONFIG + 1; i < TEXTS; i++) {
		s->text[i] = read_sibling(s, text_rows[i].file);
		if (!s->text[i] && text_rows[i].also)
			s->text[i] = read_sibling(s, text_rows[i].also);
	}
	s->data = safetensors_open(s->path);
	s->n = safetensors_count(s->data);
	s->tensor = xalloc(s->n, sizeof *s->tensor);
	for (size_t i = 0; i < s->n; i++) {
		const char *name = safetensors_at(s->data, i);

		s->tensor[i] = (struct source_tensor){ name, safetensors_file(s->data, name),
			safetensors_describe(s->data, name) };
	}
}

static void folder_close(struct source *s)
{
	safetensors_close(s->data);
}

static struct tensor folder_read(struct source *s, const char *name)
{
	return safetensors_tensor(s->data, name);
}

static struct tensor folder_stored(struct source *s, const char *name)
{
	const struct tensor t = safetensors_tensor(s->data, name);

	return tensor_1d(TENSOR_U8, t.data, tensor_count(&t) * tensor_size(t.type));
}

static void folder_release(struct source *s)
{
	safetensors_release(s->data);
}

/* --- the table --- */

static const struct source_kind folder = { "a Hugging Face folder with config.json and safetensors",
	folder_fits, open_folder, folder_close, folder_read, folder_stored, folder_release };
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
		die("%s: cannot open:", path);
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
	die("%s: is no model to import, expected %s", path, known);
}

void source_close(struct source *s)
{
	s->kind->close(s);
	for (int i = 0; i < TEXTS; i++)
		free(s->text[i]);
	free(s->config_name);
	free(s->tensor);
	free(s);
}
