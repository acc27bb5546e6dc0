/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint.c -- which tensor of a source goes where; see checkpoint.h */
#include "model/checkpoint.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/pattern.h"

enum { DIGITS = 9 };

static bool is_buffer(const struct checkpoint *k, const char *name)
{
	for (const char *const *b = k->config->arch->buffers; *b; b++)
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
static char *path_of(const struct checkpoint *k, const char *name)
{
	const char *prefix = k->config->arch->prefix, *head = k->config->arch->head + 1;
	const char *from = k->source->path;
	bool add = prefix && strncmp(name, prefix, strlen(prefix)) && strncmp(name, head, strlen(head));
	char *path = xformat("/%s%s%s", add ? prefix : "", add ? "." : "", name);
	size_t groups = 0;

	for (char *p = path + 1; *p; p++) {
		if (*p == '/' || (unsigned char)*p < ' ' || (*p == '.' && (p[-1] == '/' || !p[1])))
			die("%s: %s: expected a tensor's name: words with dots between them", from, name);
		if (*p == '.')
			*p = '/', groups++;
	}
	if (!path[1])
		die("%s: '': expected a tensor's name", from);
	if (is_below(path, "/config") || is_below(path, "/tokenizer"))
		die("%s: '%s': no tensor can have this name: "
			"a model keeps the text of a JSON file there", from, name);
	if (groups > IMAGE_DEPTH)
		die("%s: %s: is nested too deeply: %zu words, expected at most %d", from, name, groups + 1,
			IMAGE_DEPTH + 1);
	return path;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static void sort(struct checkpoint *k, int (*order)(const void *, const void *))
{
	if (k->entries)
		qsort(k->entry, k->entries, sizeof *k->entry, order);
}

struct entry *checkpoint_find(const struct checkpoint *k, const char *path)
{
	struct entry key = { .path = (char *)path };

	return k->entries ? bsearch(&key, k->entry, k->entries, sizeof key, by_path) : NULL;
}

/* There is room: see list_entries(). */
static struct entry *add(struct checkpoint *k, char *path, const char *name)
{
	k->entry[k->entries] = (struct entry){ .path = path, .name = name };
	return k->entry + k->entries++;
}

/* The layers of a block that the tensor at the path holds together; none: false. */
static bool add_fused(struct checkpoint *k, const struct stack *s, size_t block, const char *path,
	const char *name)
{
	bool any = false;

	for (const struct linear_row *row = s->arch->linear; row->name; row++) {
		char *fused = row->fused ? stack_path(s, block, row->fused) : NULL;
		const char *member = fused && is_below(path, fused) ? path + strlen(fused) : "";

		if (!strcmp(member, "/weight") || !strcmp(member, "/bias")) {
			char *group = stack_path(s, block, row->name);

			add(k, xformat("%s%s", group, member), name)->row = row;
			any = true;
			free(group);
		}
		free(fused);
	}
	return any;
}

void checkpoint_leave_out(const struct checkpoint *k, const char *first, size_t n, const char *why)
{
	if (n == 1)
		warn("%s: %s: %s: it is left out", k->source->path, first, why);
	else if (n)
		warn("%s: %s: %s: it and %zu more are left out", k->source->path, first, why, n - 1);
}

static void list_entries(struct checkpoint *k)
{
	const struct source *s = k->source;
	size_t n = s->kind->count(s), beyond = 0, block;
	const char *first = NULL;
	char *why = xformat("stands beyond the %zu blocks of config.json", k->config->blocks);

	/* one more: of a tied pair the source may have one */
	k->entry = xalloc(n * LINEARS + 1, sizeof *k->entry);
	for (size_t i = 0; i < n; i++) {
		const char *name = s->kind->at(s, i);
		const struct stack *inside;
		char *path;

		if (is_buffer(k, name))
			continue;
		path = path_of(k, name);
		inside = config_block(k->config, path, &block);
		if (inside && block >= inside->blocks)
			first = beyond++ ? first : name;
		else if (!inside || !add_fused(k, inside, block, path, name)) {
			add(k, path, name);
			continue;
		}
		free(path);
	}
	checkpoint_leave_out(k, first, beyond, why);
	free(why);
}

static bool same(const struct tensor *a, const struct tensor *b)
{
	return a->type == b->type && a->rank == 2 && b->rank == 2 && a->dim[0] == b->dim[0] &&
		a->dim[1] == b->dim[1] && !memcmp(a->data, b->data, tensor_count(a) * tensor_size(a->type));
}

/*
 * As transformers 5 ties: whichever is missing is the other; if both are there
 * and differ, the config is wrong, and both stay.
 */
static void tie_head(struct checkpoint *k)
{
	const struct architecture *a = k->config->arch;
	char *from = xformat("%s/weight", a->embedding), *to = xformat("%s/weight", a->head);
	struct entry *embedding = checkpoint_find(k, from), *head = checkpoint_find(k, to);
	struct source *s = k->source;
	bool differ = false;

	if (embedding && head) {
		struct tensor x = s->kind->read(s, embedding->name), y = s->kind->read(s, head->name);

		differ = !same(&x, &y);
		s->kind->release(s);
	}
	if (differ)
		warn("%s: %s: differs from the embedding: it is kept, although tie_word_embeddings is true",
			s->path, head->name);
	if (differ || (!embedding && !head)) {
		free(from);
		free(to);
		return;
	}
	if (!embedding)
		embedding = add(k, xformat("%s", from), head->name);
	if (!head)
		head = add(k, xformat("%s", to), embedding->name);
	head->name = embedding->name;
	head->tied_to = from;
	free(to);
	sort(k, by_path);
}

/* A tensor cannot stand where the path of another has a group. */
static void check_paths(const struct checkpoint *k)
{
	const char *from = k->source->path;

	for (size_t i = 0; i < k->entries; i++) {
		const char *name = k->entry[i].name;
		char *path = xformat("%s", k->entry[i].path);

		if (i && !strcmp(k->entry[i - 1].path, path))
			die("%s: %s and %s are the same tensor", from, k->entry[i - 1].name, name);
		for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
			struct entry *e;

			*slash = '\0';
			e = checkpoint_find(k, path);
			if (e)
				die("%s: %s: is a tensor, and a part of the name of %s", from, e->name, name);
		}
		free(path);
	}
}

struct checkpoint checkpoint_open(struct source *source, const struct config *config)
{
	struct checkpoint k = { .source = source, .config = config };

	list_entries(&k);
	sort(&k, by_path);
	if (config->tied)
		tie_head(&k);
	check_paths(&k);
	return k;
}

void checkpoint_close(struct checkpoint *k)
{
	for (size_t i = 0; i < k->entries; i++) {
		free(k->entry[i].path);
		free((char *)k->entry[i].tied_to);
	}
	free(k->entry);
}

/* Sets the place of an entry in the layout. */
static void place(const struct checkpoint *k, size_t n, const struct pattern layout[n], struct entry *t)
{
	const char *number = NULL;
	size_t digits;

	t->pattern = 0;
	if (!strchr(t->path + 1, '/'))	/* datasets of the root stand in part 0 */
		return;
	while (t->pattern < n && pattern_match(&layout[t->pattern++], t->path, &number) != MATCH_WITHIN)
		;
	if (!number)
		return;
	digits = strspn(number, "0123456789");
	if (digits > DIGITS || (digits > 1 && *number == '0'))
		die("%s: %s: expected a block's number after %.*s", k->source->path, t->name,
			(int)(number - t->path), t->path);
	t->number = strtoul(number, NULL, 10);
}

static int by_place(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return by_path(a, b);
}

size_t checkpoint_parts(struct checkpoint *k)
{
	size_t patterns, part = 0, i = 0;
	struct pattern *layout = pattern_list(k->config->arch->layout, &patterns);
	const struct entry *before = NULL;

	for (size_t t = 0; t < k->entries; t++)
		place(k, patterns, layout, k->entry + t);
	sort(k, by_place);
	for (size_t p = 0; p <= patterns; p++) {	/* pattern 0 is the root */
		bool numbered = p && layout[p - 1].kind == PATTERN_NUMBERED;

		part += p && !numbered;		/* a part of its own, be it empty */
		for (; i < k->entries && k->entry[i].pattern == p; before = k->entry + i++) {
			part += numbered && (!before || before->pattern != p ||
				before->number != k->entry[i].number);
			k->entry[i].part = part;
		}
	}
	free(layout);
	return part + 1;
}
