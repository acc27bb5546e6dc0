/* SPDX-License-Identifier: GPL-3.0-or-later */
/* import.c -- a Hugging Face folder as a model; see import.h */
#include "model/import.h"
#include "base/error.h"
#include "base/progress.h"
#include "io/safetensors.h"
#include "io/text.h"
#include "model/config.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MOST = 16 << 20, TOKENIZER_MOST = 1 << 30, DIGITS = 9 };

/* How checkpoints differ from the tree; the last row is for everything else. */
static const struct origin {
	const char *model_type;
	const char *prefix;		/* first part of the names, which some checkpoints leave out */
	bool transposed;		/* linear weights are stored [in, out] */
	const char *const *buffers;	/* names of what follows from the config */
} origins[] = {
	{ "gpt2", "transformer", true, (const char *const []){ "*.attn.bias", "*.attn.masked_bias", "*.crossattention.bias",
		"*.crossattention.masked_bias", NULL } },
	{ NULL, NULL, false, (const char *const []){ "*.rotary_emb.inv_freq", NULL } },
};

struct item {
	char *path;
	const char *name;	/* of the tensor in the files */
	size_t pattern;		/* of the layout; 0 is part 0 */
	size_t number;		/* what stands for '#' */
	bool known, unused, transposed;
	const char *tied_to;
};

struct import {
	const char *folder;
	struct safetensors *files;
	struct config config;
	const struct origin *origin;
	const char *const *layout;
	struct item *item;
	size_t items;
	char *config_text, *tokenizer_text;
};

/* --- which tensors go where --- */

static char *read_member(const char *folder, const char *name, size_t most)
{
	char *path = xformat("%s/%s", folder, name), *text;
	size_t n;

	text = text_read(path, most, &n);
	if (!n || strlen(text) != n)
		die("%s: is %s", path, n ? "no text: it has a NUL byte" : "empty");
	free(path);
	return text;
}

static bool is_buffer(const struct import *m, const char *name)
{
	for (const char *const *b = m->origin->buffers; *b; b++)
		if (!fnmatch(*b, name, 0))
			return true;
	return false;
}

/* Whether a tensor of that path stands below the dataset that is here. */
static bool is_below(const char *path, const char *dataset)
{
	size_t n = strlen(dataset);

	return !strncmp(path, dataset, n) && (path[n] == '/' || !path[n]);
}

/* "model.norm.weight" becomes "/model/norm/weight". */
static char *path_of(const struct import *m, const char *name)
{
	const char *prefix = m->origin->prefix, *head = m->config.arch->head + 1;
	bool add = prefix && strncmp(name, prefix, strlen(prefix)) && strncmp(name, head, strlen(head));
	char *path = xformat("/%s%s%s", add ? prefix : "", add ? "." : "", name);
	size_t groups = 0;

	for (char *p = path + 1; *p; p++) {
		if (*p == '/' || (unsigned char)*p < ' ' || (*p == '.' && (p[-1] == '/' || !p[1])))
			die("%s: %s: a tensor's name was wanted: words with dots between them", m->folder, name);
		if (*p == '.')
			*p = '/', groups++;
	}
	if (!path[1])
		die("%s: '': a tensor's name was wanted", m->folder);
	if (is_below(path, "/config") || is_below(path, "/tokenizer"))
		die("%s: '%s': no tensor can have this name: a model keeps the text of a JSON file there", m->folder, name);
	if (groups > IMAGE_DEPTH)
		die("%s: %s: is nested too deeply: %zu words, at most %d were wanted", m->folder, name, groups + 1, IMAGE_DEPTH + 1);
	return path;
}

/* Sets the place of an item in the layout: the pattern, counted from 1, and its number. */
static void place(const struct import *m, struct item *t)
{
	t->pattern = 0;
	if (!strchr(t->path + 1, '/'))	/* datasets of the root stand in part 0 */
		return;
	for (size_t i = 0; m->layout[i]; i++) {
		const char *pattern = m->layout[i];
		size_t n = strlen(pattern), digits;

		t->pattern = i + 1;
		if (!strcmp(pattern, "*"))
			return;
		if (pattern[n - 1] != '#') {
			if (!strncmp(t->path, pattern, n) && (t->path[n] == '/' || !t->path[n]))
				return;
			continue;
		}
		digits = strncmp(t->path, pattern, n - 1) ? 0 : strspn(t->path + n - 1, "0123456789");
		if (!digits || t->path[n - 1 + digits] != '/')
			continue;
		if (digits > DIGITS || (digits > 1 && t->path[n - 1] == '0'))
			die("%s: %s: a block's number was wanted after %.*s", m->folder, t->name, (int)n - 1, pattern);
		t->number = strtoul(t->path + n - 1, NULL, 10);
		return;
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->path, ((const struct item *)b)->path);
}

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return by_path(a, b);
}

static struct item *find(const struct import *m, const char *path)
{
	struct item key = { .path = (char *)path };

	return m->items ? bsearch(&key, m->item, m->items, sizeof key, by_path) : NULL;
}

/* A tensor cannot stand where the path of another has a group. */
static void check_paths(const struct import *m)
{
	for (size_t i = 0; i < m->items; i++) {
		char *path = xformat("%s", m->item[i].path);

		if (i && !strcmp(m->item[i - 1].path, path))
			die("%s: %s and %s are the same tensor", m->folder, m->item[i - 1].name, m->item[i].name);
		for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
			*slash = '\0';
			if (find(m, path))
				die("%s: %s: is a tensor, and a part of the name of %s", m->folder, find(m, path)->name, m->item[i].name);
		}
		free(path);
	}
}

static bool same(const struct tensor *a, const struct tensor *b)
{
	return a->type == b->type && a->rank == 2 && b->rank == 2 && a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] &&
		!memcmp(a->data, b->data, tensor_count(a) * tensor_size(a->type));
}

/* There is room for all tensors of the files and one more. */
static struct item *add_item(struct import *m, char *path, const char *name)
{
	m->item[m->items] = (struct item){ .path = path, .name = name };
	return m->item + m->items++;
}

/*
 * As transformers 5 ties: whichever is missing is the other; if both are there
 * and differ, the config is wrong, and both stay.
 */
static void tie_head(struct import *m)
{
	char *from = xformat("%s/weight", m->config.arch->embedding), *to = xformat("%s/weight", m->config.arch->head);
	struct item *embedding = find(m, from), *head = find(m, to);
	bool differ = false;

	if (embedding && head) {
		struct tensor a = safetensors_tensor(m->files, embedding->name), b = safetensors_tensor(m->files, head->name);

		differ = !same(&a, &b);
		safetensors_release(m->files);
	}
	if (differ)
		warn("%s: %s: differs from the embedding: it is kept, although tie_word_embeddings is true", m->folder, head->name);
	if (differ || (!embedding && !head)) {
		free(from);
		free(to);
		return;
	}
	if (!embedding)
		embedding = add_item(m, xformat("%s", from), head->name);
	if (!head)
		head = add_item(m, xformat("%s", to), embedding->name);
	head->name = embedding->name;
	head->tied_to = from;
	free(to);
	qsort(m->item, m->items, sizeof *m->item, by_path);
}

/* Says of n tensors, of which this is the first, why they are not in the model. */
static void say_unused(const struct import *m, const char *first, size_t n, const char *why)
{
	if (n == 1)
		warn("%s: %s: %s: it is left out", m->folder, first, why);
	else if (n)
		warn("%s: %s: %s: it and %zu more are left out", m->folder, first, why, n - 1);
}

static void list_items(struct import *m)
{
	size_t n = safetensors_count(m->files), beyond = 0, block;
	const char *first = NULL;
	char *why = xformat("stands beyond the %zu blocks of config.json", m->config.blocks);

	m->item = xalloc(n + 1, sizeof *m->item);	/* one more: of a tied pair the files may hold one */
	for (size_t i = 0; i < n; i++) {
		const char *name = safetensors_at(m->files, i);
		char *path;

		if (is_buffer(m, name))
			continue;
		path = path_of(m, name);
		if (config_block(&m->config, path, &block) && block >= m->config.blocks) {
			first = beyond++ ? first : name;
			free(path);
			continue;
		}
		add_item(m, path, name);
	}
	say_unused(m, first, beyond, why);
	free(why);
	qsort(m->item, m->items, sizeof *m->item, by_path);
	if (m->config.tied)
		tie_head(m);
	check_paths(m);
	for (size_t i = 0; i < m->items; i++)
		place(m, m->item + i);
}

/* --- what the config says --- */

/* The tensor GROUP/MEMBER, [rows, columns], or [rows] where columns is 0. */
static void expect(struct import *m, const char *group, const char *name, size_t rows, size_t columns, bool transposed)
{
	char *path = xformat("%s/%s", group, name);
	struct item *t = find(m, path);
	struct tensor s;

	if (!t) {
		for (char *p = path; *p; p++)
			*p = *p == '/' ? '.' : *p;
		die("%s: %s: is missing, a %s needs it", m->folder, path + 1, m->config.arch->name);
	}
	free(path);
	t->known = true;
	t->transposed = transposed;
	s = safetensors_describe(m->files, t->name);
	if (s.type == TENSOR_ANY)
		s = safetensors_tensor(m->files, t->name);	/* says why it cannot be read */
	if (transposed) {
		size_t swap = rows;

		rows = columns;
		columns = swap;
	}
	if (columns && (s.rank != 2 || s.dim[0] != rows || s.dim[1] != columns))
		die("%s: %s: its shape is not the [%zu, %zu] of config.json", safetensors_file(m->files, t->name), t->name, rows, columns);
	if (!columns && (s.rank != 1 || s.dim[0] != rows))
		die("%s: %s: its shape is not the [%zu] of config.json", safetensors_file(m->files, t->name), t->name, rows);
}

/* A bias that the class has, or has not: readers of a tree would use it. */
static void expect_bias(struct import *m, bool has, const char *group, size_t n)
{
	char *path = xformat("%s/bias", group);
	struct item *t = find(m, path);

	if (has)
		expect(m, group, "bias", n, 0, false);
	else if (t)
		t->known = t->unused = true;
	free(path);
}

static void expect_norm(struct import *m, const char *group)
{
	expect(m, group, "weight", m->config.hidden, 0, false);
	expect_bias(m, m->config.arch->norm_kind == NORM_LAYER, group, m->config.hidden);
}

static void expect_block(struct import *m, size_t block)
{
	const struct config *c = &m->config;

	for (int i = 0; i < 2; i++) {
		char *path = config_path(c, block, c->arch->norm[i]);

		expect_norm(m, path);
		free(path);
	}
	for (const struct linear_row *l = c->arch->linear; l->name; l++) {
		char *path = config_path(c, block, l->name);
		size_t out = config_out(c, l->role);

		expect(m, path, "weight", out, config_in(c, l->projection), m->origin->transposed);
		expect_bias(m, c->bias[l->role], path, out);
		free(path);
	}
}

static void expect_model(struct import *m)
{
	const struct config *c = &m->config;

	expect(m, c->arch->embedding, "weight", c->vocab, c->hidden, false);
	if (c->arch->position)
		expect(m, c->arch->position, "weight", c->positions, c->hidden, false);
	for (size_t i = 0; i < c->blocks; i++)
		expect_block(m, i);
	expect_norm(m, c->arch->final_norm);
	expect(m, c->arch->head, "weight", c->vocab, c->hidden, false);
	expect_bias(m, false, c->arch->head, c->vocab);
}

/* Biases without a parameter stay behind; other strangers pass, if they can be read. */
static void check_strangers(struct import *m)
{
	size_t kept = 0, unused = 0;
	const char *first = NULL;
	char *why = xformat("a %s of this config.json has no such bias", m->config.arch->name);

	for (size_t i = 0; i < m->items; i++) {
		struct item *t = m->item + i;
		bool readable = t->known || safetensors_describe(m->files, t->name).type != TENSOR_ANY;

		if (!t->known)
			warn("%s: %s: a %s has no such tensor; it is %s", m->folder, t->name, m->config.arch->name,
				readable ? "passed on" : "left out: its type or rank cannot be read");
		if (t->unused)
			first = unused++ ? first : t->name;
		if (readable && !t->unused)
			m->item[kept++] = *t;
		else
			free(t->path);
	}
	m->items = kept;
	say_unused(m, first, unused, why);
	free(why);
}

/* --- writing --- */

/* First element that is NaN or infinite: all bits of the exponent set; n if there is none. */
static size_t first_bad(const struct tensor *t)
{
	size_t n = tensor_count(t), block = 1 << 14;
	uint32_t mask = t->type == TENSOR_F32 ? 0x7f800000 : t->type == TENSOR_F16 ? 0x7c00 : 0x7f80;

	for (size_t i = 0; i < n; i += block) {
		size_t end = n - i < block ? n : i + block;
		const uint32_t *w = t->data;
		const uint16_t *h = t->data;
		uint16_t half = (uint16_t)mask;
		unsigned bad = 0;

		if (t->type == TENSOR_F32)
			for (size_t k = i; k < end; k++)
				bad |= (w[k] & mask) == mask;
		else
			for (size_t k = i; k < end; k++)
				bad |= (h[k] & half) == half;
		for (size_t k = i; bad && k < end; k++)
			if (((t->type == TENSOR_F32 ? w[k] : h[k]) & mask) == mask)
				return k;
	}
	return n;
}

/* [m, n] to [n, m] in tiles, elements of 2 or 4 bytes. */
static void *transpose(size_t m, size_t n, const void *from, size_t size)
{
	enum { TILE = 32 };
	void *to = xalloc(m * n, size);

	for (size_t i0 = 0; i0 < m; i0 += TILE)
		for (size_t j0 = 0; j0 < n; j0 += TILE)
			for (size_t i = i0; i < m && i < i0 + TILE; i++)
				for (size_t j = j0; j < n && j < j0 + TILE; j++)
					if (size == 4)
						((uint32_t *)to)[j * m + i] = ((const uint32_t *)from)[i * n + j];
					else
						((uint16_t *)to)[j * m + i] = ((const uint16_t *)from)[i * n + j];
	return to;
}

static void write_item(struct import *m, struct output *out, const struct item *i)
{
	struct tensor t = safetensors_tensor(m->files, i->name);
	size_t n = tensor_count(&t), bad = first_bad(&t);
	void *turned = NULL;

	if (!n)
		die("%s: %s: has no elements", safetensors_file(m->files, i->name), i->name);
	if (bad < n)
		die("%s: %s: element %zu is NaN or infinite, finite weights were wanted", safetensors_file(m->files, i->name), i->name, bad);
	if (i->transposed) {
		turned = transpose(t.dim[0], t.dim[1], t.data, tensor_size(t.type));
		t = tensor_2d(t.type, turned, t.dim[1], t.dim[0]);
	}
	if (i->tied_to)
		output_tied(out, i->path, t, i->tied_to);
	else
		output_write(out, i->path, t);
	free(turned);
}

/* How many parts a pattern of the layout makes: one, or one a number. items: those of the pattern. */
static size_t parts_of(const char *pattern, size_t n, const struct item item[n])
{
	size_t parts = n > 0;

	if (pattern[strlen(pattern) - 1] != '#')
		return 1;
	for (size_t i = 1; i < n; i++)
		parts += item[i].number != item[i - 1].number;
	return parts;
}

static size_t count_parts(const struct import *m)
{
	size_t parts = 1;

	for (size_t p = 0, i = 0, n; m->layout[p]; p++, i += n) {
		while (i < m->items && m->item[i].pattern <= p)
			i++;
		for (n = 0; i + n < m->items && m->item[i + n].pattern == p + 1; n++)
			;
		parts += parts_of(m->layout[p], n, m->item + i);
	}
	return parts;
}

static void write_parts(struct import *m, struct output *out)
{
	size_t parts = count_parts(m), part = 0, i = 0, written = 0;

	output_start(out, part, parts);
	output_string(out, "/config", m->config_text);
	if (m->tokenizer_text)
		output_string(out, "/tokenizer", m->tokenizer_text);
	for (; i < m->items && !m->item[i].pattern; i++)
		write_item(m, out, m->item + i);
	output_end(out);

	for (size_t p = 0; m->layout[p]; p++) {
		bool numbered = m->layout[p][strlen(m->layout[p]) - 1] == '#';

		do {
			size_t number = i < m->items ? m->item[i].number : 0;

			if (numbered && (i == m->items || m->item[i].pattern != p + 1))
				break;
			progress("import", written++, parts);
			output_start(out, ++part, parts);
			for (; i < m->items && m->item[i].pattern == p + 1 && m->item[i].number == number; i++)
				write_item(m, out, m->item + i);
			output_end(out);
			safetensors_release(m->files);
		} while (numbered);
	}
	progress_clear();
}

void import_folder(struct output *out, const char *folder)
{
	struct import m = { .folder = folder, .origin = origins };
	char *config = xformat("%s/config.json", folder), *tokenizer = xformat("%s/tokenizer.json", folder);
	struct stat st;

	if (stat(folder, &st))
		die("%s: cannot open:", folder);
	if (!S_ISDIR(st.st_mode))
		die("%s: is a file; a Hugging Face folder with config.json and safetensors was wanted", folder);
	m.config_text = read_member(folder, "config.json", CONFIG_MOST);
	m.config = config_parse(config, m.config_text);
	if (m.config.quantized)
		die("%s: 'quantization_config': the weights are stored quantized; a checkpoint of plain weights was wanted", config);
	m.layout = m.config.arch->layout;
	while (m.origin->model_type && strcmp(m.origin->model_type, m.config.arch->model_type))
		m.origin++;
	if (!access(tokenizer, F_OK))
		m.tokenizer_text = read_member(folder, "tokenizer.json", TOKENIZER_MOST);
	else if (m.config.vocab != 256)	/* bytes need none */
		warn("%s: has no tokenizer.json: tokenize will not know this model's text", folder);

	m.files = safetensors_open(folder);
	list_items(&m);
	expect_model(&m);
	check_strangers(&m);
	qsort(m.item, m.items, sizeof *m.item, by_place);
	write_parts(&m, out);

	for (size_t i = 0; i < m.items; i++) {
		free(m.item[i].path);
		free((char *)m.item[i].tied_to);
	}
	free(m.item);
	free(m.config_text);
	free(m.tokenizer_text);
	free(config);
	free(tokenizer);
	safetensors_close(m.files);
	config_free(&m.config);
}
