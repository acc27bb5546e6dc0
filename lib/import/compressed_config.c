/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compressed_config.c -- see compressed_config.h */
#include "import/compressed_config.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/size.h"
#include "text/regex.h"

enum { WORD = 32, VERSION_ABSENT = -1, VERSION_DENSE = 17 };
enum match { MATCH_EXACT, MATCH_PATTERN, MATCH_CLASS, MATCHES };

struct wanted {
	const char *text;
	struct regex *pattern;		/* NULL: none */
};

struct list {
	struct wanted *wanted;
	size_t n;
};

struct group {
	struct compressed_rule rule;
	struct list targets;
};

struct compressed_config {
	const char *file;
	struct list ignore;
	struct group *group;
	size_t groups;
	int version;			/* 1000 major + minor; VERSION_ABSENT */
	bool warned;			/* a warning that inputs are not rounded was printed */
};

static const char *string_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* Whether a member is present, and neither null nor an empty object. */
static bool has(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v && !json_is_null(v) && !(json_is_object(v) && !json_object_size(v));
}

/* --- names --- */

static struct list list_open(const struct compressed_config *c, const char *what, const json_t *names)
{
	struct list y = { xalloc(json_array_size(names) + 1, sizeof *y.wanted), json_array_size(names) };

	if (names && !json_is_array(names) && !json_is_null(names))
		die("%s: 'quantization_config': %s: expected a list of names", c->file, what);
	for (size_t i = 0; i < y.n; i++) {
		const char *text = json_string_value(json_array_get(names, i));
		char *pattern;

		if (!text)
			die("%s: 'quantization_config': %s: expected a list of names", c->file, what);
		y.wanted[i].text = text;
		if (strncmp(text, "re:", 3))
			continue;
		pattern = xformat("^(?:%s)", text + 3);
		y.wanted[i].pattern = regex_make(c->file, pattern, DIALECT_PCRE2);
		free(pattern);
	}
	return y;
}

static void list_close(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->wanted[i].pattern)
			regex_free(list->wanted[i].pattern);
	free(list->wanted);
}

static bool matches(const struct wanted *t, const char *name, enum match how)
{
	size_t begin, end;

	switch (how) {
	case MATCH_EXACT:	return !strcmp(t->text, name);
	case MATCH_PATTERN:
		return t->pattern && regex_find(t->pattern, strlen(name), name, 0, &begin, &end);
	default:		return !strcmp(t->text, "Linear");
	}
}

/* The first match in the order of bytes; NULL: none. */
static const char *list_find(const struct list *list, const char *name, enum match how)
{
	const char *first = NULL;

	for (size_t i = 0; i < list->n; i++)
		if (matches(&list->wanted[i], name, how) &&
		    (!first || strcmp(list->wanted[i].text, first) < 0))
			first = list->wanted[i].text;
	return first;
}

const struct compressed_rule *compressed_config_rule(const struct compressed_config *c, const char *name)
{
	for (int how = 0; how < MATCHES; how++)
		if (list_find(&c->ignore, name, how))
			return NULL;
	for (int how = 0; how < MATCHES; how++) {
		const struct group *found = NULL;
		const char *first = NULL;

		for (const struct group *g = c->group; g < c->group + c->groups; g++) {
			const char *text = list_find(&g->targets, name, how);

			if (text && (!first || strcmp(text, first) < 0)) {
				first = text;
				found = g;
			}
		}
		if (found)
			return &found->rule;
	}
	return NULL;
}

/* --- groups --- */

_Noreturn static void refuse(const struct compressed_config *c, const struct compressed_rule *r,
	const char *what, const char *is, const char *expected)
{
	die("%s: 'quantization_config': %s: %s is '%s', expected %s", c->file, r->name, what, is, expected);
}

static size_t whole(const struct compressed_config *c, const struct compressed_rule *r, const char *what,
	const json_t *v)
{
	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > LINEAR_MAX)
		die("%s: 'quantization_config': %s: %s: expected a whole number from 1", c->file, r->name,
			what);
	return (size_t)json_integer_value(v);
}

static const struct compressed_format *format_of(const struct compressed_config *c,
	const struct compressed_rule *r, const char *name, bool is_float)
{
	static const char naive[] = "naive-quantized";
	const struct compressed_format *f = compressed_format(strcmp(name, naive) ? name :
		is_float ? "float-quantized" : "int-quantized");
	char known[256] = "one of ";

	if (f)
		return f;
	for (f = compressed_formats; f->name; f++) {
		const size_t n = strlen(known);

		snprintf(known + n, sizeof known - n, "%s, ", f->name);
	}
	strncat(known, naive, sizeof known - strlen(known) - 1);
	refuse(c, r, "format", name, known);
}

static void set_strategy(const struct compressed_config *c, struct compressed_rule *r, const json_t *w)
{
	const char *strategy = string_at(w, "strategy");
	const json_t *block = json_object_get(w, "block_structure"), *size = json_object_get(w, "group_size");
	struct compressed_scheme *s = &r->scheme;

	if (!*strategy)		/* the default of the package */
		strategy = !has(w, "group_size") ? "tensor" : json_integer_value(size) > 0 ? "group" :
			"channel";
	if (!strcmp(strategy, "group") || !strcmp(strategy, "tensor_group")) {
		s->strategy = COMPRESSED_GROUP;
		s->group = whole(c, r, "group_size", size);
	} else if (!strcmp(strategy, "block")) {
		s->strategy = COMPRESSED_BLOCK;
		for (size_t i = 0; i < 2; i++)
			r->block[i] = whole(c, r, "block_structure", json_array_get(block, i));
	} else if (!strcmp(strategy, "channel"))
		s->strategy = COMPRESSED_CHANNEL;
	else if (strcmp(strategy, "tensor"))
		refuse(c, r, "strategy", strategy, "tensor, channel, group, tensor_group or block");
}

static void check_strategy(const struct compressed_config *c, const struct compressed_rule *r)
{
	const struct compressed_scheme *s = &r->scheme;
	const struct compressed_format *f = s->format;

	if (f->group && (s->strategy != COMPRESSED_GROUP || s->group != f->group))
		die("%s: 'quantization_config': %s: %s requires groups of %zu columns", c->file, r->name,
			f->name, f->group);
	if (f->layout == COMPRESSED_WORDS && s->strategy != COMPRESSED_GROUP &&
	    s->strategy != COMPRESSED_CHANNEL)
		die("%s: 'quantization_config': %s: %s requires the strategy group or channel", c->file,
			r->name, f->name);
}

static void set_weights(const struct compressed_config *c, struct compressed_rule *r, const json_t *w,
	const char *format)
{
	struct compressed_scheme *s = &r->scheme;
	const char *type = has(w, "type") ? string_at(w, "type") : "int", *order = string_at(w, "actorder");
	const bool is_float = !strcmp(type, "float");

	s->format = format_of(c, r, format, is_float);
	s->bits = (int)whole(c, r, "num_bits", json_object_get(w, "num_bits"));
	s->asymmetric = json_is_false(json_object_get(w, "symmetric"));
	if (is_float != (s->format->codes != NULL) || (is_float && (s->bits != s->format->bits ||
	    s->asymmetric)))
		refuse(c, r, "type", type, s->format->codes ? "symmetric floats of the format's bits" :
			"int in this format");
	if (s->bits < 2 || s->bits > 8)
		die("%s: 'quantization_config': %s: num_bits is %d, expected 2 to 8", c->file, r->name,
			s->bits);
	set_strategy(c, r, w);
	check_strategy(c, r);
	r->indexed = !strcmp(order, "group") || !strcmp(order, "dynamic");
	if (*order && !r->indexed && strcmp(order, "weight") && strcmp(order, "static"))
		refuse(c, r, "actorder", order, "group or weight");
}

/* Supported are int8 and FP8 with one scale, or with one scale per token. */
static void set_inputs(struct compressed_config *c, struct compressed_rule *r, const json_t *a)
{
	const char *strategy = string_at(a, "strategy");
	const json_t *dynamic = json_object_get(a, "dynamic");
	const bool token = json_is_true(dynamic) && !strcmp(strategy, "token");
	const bool tensor = !json_is_true(dynamic) && !json_is_string(dynamic) && !strcmp(strategy, "tensor");

	r->inputs_float = !strcmp(string_at(a, "type"), "float");
	if (json_integer_value(json_object_get(a, "num_bits")) == 8 &&
	    !json_is_false(json_object_get(a, "symmetric")) && (token || tensor)) {
		r->scheme.inputs = token ? COMPRESSED_TOKEN : COMPRESSED_STATIC;
		return;
	}
	r->inputs_ignored = true;
	if (!c->warned)
		warn("%s: 'quantization_config': %s: inputs of %ju bits with scales by '%s' are not "
			"supported: inputs are not rounded", c->file, r->name,
			(uintmax_t)json_integer_value(json_object_get(a, "num_bits")), strategy);
	c->warned = true;
}

static void add_group(struct compressed_config *c, const char *name, const json_t *o, const char *format)
{
	struct group *g;
	char *what = xformat("targets of %s", name);

	if (!has(o, "weights")) {
		if (has(o, "input_activations"))
			die("%s: 'quantization_config': %s: has input_activations without weights, expected "
				"both", c->file, name);
		free(what);
		return;			/* a group for keys and values only */
	}
	c->group = xgrow(c->group, ++c->groups, sizeof *c->group);
	g = &c->group[c->groups - 1];
	*g = (struct group){ { .name = name }, list_open(c, what, json_object_get(o, "targets")) };
	if (has(o, "output_activations"))
		die("%s: 'quantization_config': %s: output_activations: rounding of outputs is not "
			"supported, expected null", c->file, name);
	if (has(o, "format"))
		format = string_at(o, "format");
	set_weights(c, &g->rule, json_object_get(o, "weights"), format);
	if (has(o, "input_activations"))
		set_inputs(c, &g->rule, json_object_get(o, "input_activations"));
	free(what);
}

static void check_whole(const struct compressed_config *c, const json_t *q)
{
	const json_t *sparse = json_object_get(q, "sparsity_config");

	if (has(q, "sparsity_config") && strcmp(string_at(sparse, "format"), "dense"))
		die("%s: 'quantization_config': sparsity_config: format is '%s', expected 'dense'",
			c->file, string_at(sparse, "format"));
	if (has(json_object_get(q, "transform_config"), "config_groups"))
		die("%s: 'quantization_config': transform_config: online rotations are not supported, "
			"expected none", c->file);
	if (has(q, "kv_cache_scheme"))
		warn("%s: 'quantization_config': kv_cache_scheme: keys and values are not rounded; "
			"dpq-run and eval-ppl --kv-format round them", c->file);
}

struct compressed_config *compressed_config_open(const char *file, const json_t *q)
{
	struct compressed_config *c = xalloc(1, sizeof *c);
	const json_t *groups = json_object_get(q, "config_groups");
	const char *name, *version = string_at(q, "version");
	int major = 0, minor = 0;
	json_t *o;

	*c = (struct compressed_config){ .file = file };
	check_whole(c, q);
	if (*version && sscanf(version, "%3d.%3d", &major, &minor) != 2)
		die("%s: 'quantization_config': version is '%s', expected one like '0.18.0'", file, version);
	c->version = *version ? 1000 * major + minor : VERSION_ABSENT;
	c->ignore = list_open(c, "ignore", json_object_get(q, "ignore"));
	if (!json_object_size(groups))
		die("%s: 'quantization_config': config_groups: expected an object of groups", file);
	json_object_foreach((json_t *)groups, name, o) {
		add_group(c, name, o, string_at(q, "format"));
	}
	return c;
}

void compressed_config_close(struct compressed_config *c)
{
	for (size_t i = 0; i < c->groups; i++)
		list_close(&c->group[i].targets);
	list_close(&c->ignore);
	free(c->group);
	free(c);
}

bool compressed_config_dense(const struct compressed_config *c, size_t n, int bits, size_t words)
{
	const size_t dense = ceil_div(n * (size_t)bits, WORD), padded = ceil_div(n, (size_t)(WORD / bits));

	return c->version == VERSION_ABSENT ? words == dense && dense != padded : c->version >= VERSION_DENSE;
}
