/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint.c -- paths of the tensors of a source; see checkpoint.h */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/checkpoint_private.h"
#include "io/pattern.h"
#include "model/layer.h"
#include "model/layer_ref.h"

static bool is_buffer(const struct checkpoint *k, const char *name)
{
	for (const char *const *b = k->config->arch->buffers; *b; b++)
		if (!fnmatch(*b, name, 0))
			return true;
	return false;
}

/* Whether the path is that of the dataset or inside it. */
static bool is_below(const char *path, const char *dataset)
{
	size_t n = strlen(dataset);

	return !strncmp(path, dataset, n) && (path[n] == '/' || !path[n]);
}

/* Replaces `from` at the beginning of the name by `to`. Frees the name if it is replaced. */
static char *begin_with(char *name, const char *from, const char *to)
{
	char *other;

	if (strncmp(name, from, strlen(from)))
		return name;
	other = xformat("%s%s", to, name + strlen(from));
	free(name);
	return other;
}

/* The name of a tensor in the tree; free() it. Vision-language classes have the same names for all language
 * models. */
static char *renamed(const struct checkpoint *k, const char *name)
{
	const struct multimodal *m = k->config->vision.class;
	const char *embedding = k->config->arch->embedding + 1, *head = k->config->arch->head + 1;
	char *stem = xformat("%.*s.", (int)strcspn(embedding, "/"), embedding), *last = xformat("%s.", head);
	char *y = xformat("%s", name);

	for (const struct rename_row *r = m ? m->renames : NULL; r && r->from; r++)
		y = begin_with(y, r->from, r->to);
	if (m)
		y = begin_with(begin_with(y, "model.", stem), "lm_head.", last);
	free(stem), free(last);
	return y;
}

/* "model.norm.weight" becomes "/model/norm/weight". name: from renamed(). */
static char *path_of(const struct checkpoint *k, const char *name)
{
	const char *prefix = k->config->vision.class ? NULL : k->config->arch->prefix;
	const char *head = k->config->arch->head + 1;
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
	for (int i = 0; i < TEXTS; i++)
		if (is_below(path, text_rows[i].path))
			die("%s: '%s': no tensor can have this name: a model stores the text of %s there",
				from, name, text_rows[i].file);
	if (groups > TREE_DEPTH)
		die("%s: %s: is nested too deeply: %zu words, expected at most %d", from, name, groups + 1,
			TREE_DEPTH + 1);
	return path;
}

static int by_place(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return strcmp(x->path, y->path);
}

static void sort(struct checkpoint *k)
{
	qsort(k->entry, k->entries, sizeof *k->entry, by_place);
}

struct entry *checkpoint_find(const struct checkpoint *k, const char *path)
{
	struct entry key = { .path = (char *)path };

	return bsearch(&key, k->entry, k->entries, sizeof key, by_place);
}

struct entry *checkpoint_member(const struct checkpoint *k, const char *group, const char *name)
{
	char *path = layer_member(group, name);
	struct entry *e = checkpoint_find(k, path);

	free(path);
	return e;
}

/* list_entries() has allocated enough memory. */
static struct entry *add_entry(struct checkpoint *k, char *path, const struct source_tensor *source)
{
	k->entry[k->entries] = (struct entry){ .path = path, .source = source };
	return k->entry + k->entries++;
}

/* Experts beyond those of the configuration are refused: no class loads them. */
static void check_expert(const struct checkpoint *k, const struct stack *s, const struct linear_row *row,
	size_t expert, const char *name)
{
	if (expert >= stack_copies(s, row))
		die("%s: %s: is beyond the %zu experts of config.json", k->source->path, name,
			s->experts);
}

/* Adds an entry for each linear layer of the block that has rows of the tensor. rest: path of the tensor
 * below the block. False: there are no such layers. */
static bool add_layers(struct checkpoint *k, const struct stack *s, size_t block, const char *rest,
	const struct source_tensor *source)
{
	bool any = false;

	for (const struct linear_row *row = s->arch->linear; row->name; row++) {
		const char *from = row->fused ? row->fused : row->name;
		size_t expert;
		const char *member = stack_path_rest(from, rest, &expert);
		struct entry *e;
		char *group;

		if (!member || !stack_has(s, block, row) ||
		    (strcmp(member, "/weight") && strcmp(member, "/bias")))
			continue;
		check_expert(k, s, row, expert, source->name);
		group = stack_expert_path(s, block, row->name, expert);
		e = add_entry(k, xformat("%s%s", group, member), source);
		e->stack = s;
		e->row = row;
		any = true;
		free(group);
	}
	return any;
}

/* Warns that n tensors are left out, and names the first. No warning if n is 0. */
static void leave_out(const struct checkpoint *k, const char *first, size_t n, const char *why)
{
	if (n == 1)
		warn("%s: %s: %s: it is left out", k->source->path, first, why);
	else if (n)
		warn("%s: %s: %s: it and %zu more are left out", k->source->path, first, why, n - 1);
}

/* A number such as 01 is refused: it would be another group of the tree than 1. */
static void check_number(const struct checkpoint *k, const struct stack *s, const char *path,
	const char *name)
{
	const char *number = path + strlen(s->arch->blocks) + 1;

	if (!s->arch->projector && *number == '0' && isdigit((unsigned char)number[1]))
		die("%s: %s: the number of its block has a zero in front, expected none", k->source->path,
			name);
}

static bool is_unused(const struct checkpoint *k, const char *name)
{
	const struct multimodal *m = k->config->vision.class;

	for (const char *const *p = m ? m->unused : NULL; p && *p; p++)
		if (!fnmatch(*p, name, 0))
			return true;
	return false;
}

/* Tensors that are left out, by reason: the first, and their number. */
enum { BEYOND, AFTER, OMISSIONS };
struct omitted { const char *first; size_t n; };

static void omit(struct omitted *o, const char *name)
{
	o->first = o->n++ ? o->first : name;
}

/* Adds one or several entries for a tensor, unless it is left out. */
static void list_entry(struct checkpoint *k, const struct source_tensor *t, struct omitted omitted[OMISSIONS])
{
	char *name = renamed(k, t->name), *path;
	const char *rest;
	size_t block;
	const struct stack *inside;
	bool left = is_buffer(k, name);

	if (left || is_unused(k, name)) {
		if (!left)
			omit(&omitted[AFTER], t->name);
		free(name);
		return;
	}
	path = path_of(k, name);
	free(name);
	inside = config_block(k->config, path, &block, &rest);
	left = inside && block >= inside->blocks;
	if (left)
		omit(&omitted[inside == config_encoder(k->config) ? AFTER : BEYOND], t->name);
	else if (inside)
		check_number(k, inside, path, t->name);
	if (left || (inside && add_layers(k, inside, block, rest, t)))
		free(path);
	else
		add_entry(k, path, t);
}

static void list_entries(struct checkpoint *k)
{
	const struct source *s = k->source;
	struct omitted omitted[OMISSIONS] = { 0 };
	char *why = xformat("is beyond the %zu blocks of config.json", config_last(k->config)->blocks);

	/* one more, since the source may have only one tensor of a tied pair */
	k->entry = xalloc(s->n * LINEARS + 1, sizeof *k->entry);
	for (const struct source_tensor *t = s->tensor; t < s->tensor + s->n; t++)
		list_entry(k, t, omitted);
	leave_out(k, omitted[BEYOND].first, omitted[BEYOND].n, why);
	leave_out(k, omitted[AFTER].first, omitted[AFTER].n,
		"comes after the features that vision_feature_layer names");
	free(why);
}

static bool same(const struct tensor *a, const struct tensor *b)
{
	return a->type == b->type && a->rank == 2 && b->rank == 2 && a->dim[0] == b->dim[0] &&
		a->dim[1] == b->dim[1] && !memcmp(a->data, b->data, tensor_count(a) * tensor_size(a->type));
}

/*
 * Ties as transformers 5 does: a missing tensor is replaced by the other. If both are present and differ,
 * the config is wrong, and both are kept.
 */
static void tie_head(struct checkpoint *k)
{
	const struct architecture *a = k->config->arch;
	struct entry *embedding = checkpoint_member(k, a->embedding, "weight");
	struct entry *head = checkpoint_member(k, a->head, "weight");
	struct source *s = k->source;

	if ((embedding && embedding->source->packed) || (head && head->source->packed && !embedding))
		die("%s: %s: is quantized and tied to the %s (tie_word_embeddings), expected a plain "
			"weight", s->path, embedding ? embedding->source->name : head->source->name,
			embedding ? "head" : "embedding");
	if (head && head->source->packed)
		return;
	if (embedding && head) {
		struct tensor x = s->kind->read(s, embedding->source->name);
		struct tensor y = s->kind->read(s, head->source->name);
		const bool differ = !same(&x, &y);

		s->kind->release(s);
		if (differ) {
			warn("%s: %s: differs from the embedding: it is kept, although tie_word_embeddings "
				"is true", s->path, head->source->name);
			return;
		}
	}
	if (!embedding && !head)
		return;
	if (!embedding)
		embedding = add_entry(k, xformat("%s/weight", a->embedding), head->source);
	if (!head)
		head = add_entry(k, xformat("%s/weight", a->head), embedding->source);
	head->source = embedding->source;
	head->tied_to = embedding->path;
	sort(k);
}

/* The path of a tensor cannot be a group in the path of another tensor. */
static void check_paths(const struct checkpoint *k)
{
	const char *from = k->source->path;

	for (const struct entry *e = k->entry, *parent; e < k->entry + k->entries; e++) {
		char *path = xformat("%s", e->path);

		if (e > k->entry && !strcmp(e[-1].path, path))
			die("%s: %s and %s are the same tensor", from, e[-1].source->name, e->source->name);
		for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
			*slash = '\0';
			parent = checkpoint_find(k, path);
			if (parent)
				die("%s: %s: is a tensor, and a part of the name of %s", from,
					parent->source->name, e->source->name);
		}
		free(path);
	}
}

/* Removes biases that the class has no parameter for, and unknown tensors that cannot be read. Warns of all
 * unknown tensors. */
static void drop_strangers(struct checkpoint *k)
{
	const char *class = config_class(k->config), *first = NULL, *last = "";
	char *why = xformat("a %s of this config.json has no such bias", class);
	size_t kept = 0, unused = 0;

	for (size_t i = 0; i < k->entries; i++) {
		struct entry *e = k->entry + i;
		const char *name = e->source->name;
		bool readable = e->known || e->source->shape.type != TENSOR_ANY;

		if (!e->known && e->source->packed)
			die("%s: %s: is quantized, but is not a linear layer of a %s", k->source->path, name,
				class);
		if (!e->known)
			warn("%s: %s: a %s has no such tensor; it is %s", k->source->path, name, class,
				readable ? "kept" : "left out: its type or rank cannot be read");
		if (e->unused && name != last) {	/* layers of one tensor are neighbours in the list */
			first = unused++ ? first : name;
			last = name;
		}
		if (readable && !e->unused)
			k->entry[kept++] = *e;
		else
			free(e->path);
	}
	k->entries = kept;
	leave_out(k, first, unused, why);
	free(why);
}

/*
 * Sorts the entries by their part of the stream. Part 0 has the datasets of the root. Each pattern of the
 * layout takes entries that earlier patterns do not match. A pattern with numbers has one part for each
 * block, other patterns have one part.
 */
static void find_parts(struct checkpoint *k)
{
	size_t patterns;
	const char **text = config_layout(k->config);
	struct pattern *layout = pattern_list(text, &patterns);

	k->parts = 1;
	for (size_t p = 0; p < patterns; p++) {
		size_t last = 0;

		for (struct entry *e = k->entry; e < k->entry + k->entries; e++) {
			const char *digits = "0";
			size_t number;

			if (e->part || !strchr(e->path + 1, '/') ||
			    pattern_match(&layout[p], e->path, &digits) != MATCH_WITHIN)
				continue;
			number = strtoul(digits, NULL, 10);
			e->part = k->parts + number;
			last = number > last ? number : last;
		}
		k->parts += last + 1;
	}
	free(layout);
	free(text);
	sort(k);
}

struct checkpoint checkpoint_open(struct source *source, const struct config *config)
{
	struct checkpoint k = { .source = source, .config = config };

	list_entries(&k);
	sort(&k);
	if (config->tied)
		tie_head(&k);
	check_paths(&k);
	checkpoint_expect(&k);
	drop_strangers(&k);
	find_parts(&k);
	return k;
}

void checkpoint_close(struct checkpoint *k)
{
	for (size_t i = 0; i < k->entries; i++)
		free(k->entry[i].path);
	free(k->entry);
}
