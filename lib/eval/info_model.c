/* SPDX-License-Identifier: GPL-3.0-or-later */
/* info_model.c -- facts of models and Hessians; see info.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"
#include "calib/hessian.h"
#include "eval/info_private.h"
#include "eval/stats_table.h"
#include "model/layer.h"
#include "model/layer_ref.h"
#include "model/residual.h"

/* Sets the sizes of a stack, with a prefix of the keys. */
static void set_stack(json_t *facts, const struct stack *s, const char *prefix)
{
	const struct { const char *name; size_t value; bool always; } row[] = {
		{ "blocks", s->blocks, true }, { "hidden", s->hidden, true }, { "heads", s->heads, false },
		{ "kv_heads", s->kv_heads, false }, { "head_dim", s->head_dim, false },
		{ "intermediate", s->intermediate, true }, { "experts", s->experts, false },
		{ "experts_per_token", s->chosen, false }, { "sliding_window", s->sliding_window, false },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char *key = xformat("%s%s", prefix, row[i].name);

		if (row[i].value || row[i].always)
			info_set(facts, key, info_size(row[i].value));
		free(key);
	}
}

/* Whether norms follow the residual branches of the blocks. */
static bool norms_after_branches(const struct config *c)
{
	struct residual r = { 0 };
	bool y = false;

	residual_block(&r, c, config_last(c), 0);
	for (size_t i = 0; i < r.norms; i++)
		y |= r.norm[i].use != NORM_PRE;
	residual_free(&r);
	return y;
}

/* The value of model_type in a configuration that is not supported. */
static json_t *unknown_class(const char *text)
{
	json_t *config = json_loads(text, 0, NULL), *y;
	const char *type = json_string_value(json_object_get(config, "model_type"));

	y = type ? json_string(type) : json_null();
	json_decref(config);
	return y;
}

/* Collects the names of the strings of the root. */
static void add_text(void *arg, const char *path, const char *type, int rank, const size_t dim[])
{
	(void)rank, (void)dim;
	if (!strcmp(type, "string") && strrchr(path, '/') == path)
		info_append(info_list(arg, "texts"), info_string(path + 1));
}

void info_model_begin(struct info *f, const struct part *root)
{
	char *config = part_has(root, "/config") ? part_config(root) : NULL;
	char *tokenizer = part_has(root, "/tokenizer") ? part_string(root, "/tokenizer") : NULL;
	char *digest = NULL;
	const char **layout = config ? model_layout(config) : NULL;
	const struct config *c = layout ? config_open(root) : NULL;

	f->config = c;
	info_set(f->facts, "class", c ? info_string(config_class(c)) : config ? unknown_class(config) :
		json_null());
	if (c) {
		set_stack(f->facts, config_last(c), "");
		info_set(f->facts, "vocab", info_size(c->vocab));
		info_set(f->facts, "tied", json_boolean(c->tied));
		info_set(f->facts, "norms_after_branches", json_boolean(norms_after_branches(c)));
		info_set(f->facts, "query_key_norms",
			json_boolean(architecture_norms_heads(config_last(c)->arch)));
	}
	if (c && config_encoder(c))
		set_stack(f->facts, config_encoder(c), "encoder_");
	if (c && config_projector(c))
		set_stack(f->facts, config_projector(c), "projector_");
	info_set(f->facts, "parameters", info_size(0));	/* set at the end, in this place */
	info_set(f->facts, "bits_per_weight", json_null());
	if (tokenizer) {
		digest = digest_of(strlen(tokenizer), tokenizer);
		info_set(f->facts, "tokenizer_sha256", info_string(digest));
	}
	part_datasets(root, add_text, f->facts);
	free(config), free(tokenizer), free(digest), free(layout);
}

/* --- layers --- */

/* What a layer belongs to. counted: solvers quantize these layers unless --layers selects others. */
struct place { const char *name; bool counted; };

static struct place place_of(const struct config *c, const char *path)
{
	struct layer_ref ref;
	const struct linear_row *row;

	if (!c)
		return (struct place){ "layers", true };
	if (!layer_ref_find(c, path, &ref))
		return (struct place){ "other", false };
	row = layer_ref_row(&ref);
	if (row && role_is_kept(row->role))
		return (struct place){ "routers", false };
	if (row)
		return (struct place){ ref.stack == config_encoder(c) ? "encoder" :
			ref.stack == config_projector(c) ? "projector" : "blocks", true };
	return (struct place){ ref.row == ROW_EMBEDDING ? "embedding" : ref.row == ROW_HEAD ? "head" :
		"patches", false };
}

static json_t *attribute_value(const struct member *m, const struct linear *l)
{
	const struct format *f = member_field(l, m->view);

	switch (m->type) {
	case MEMBER_FORMAT:	return json_string(*f->name ? f->name : "none");
	case MEMBER_WORD:	return json_string(m->words[*(const int *)member_field(l, m->view)]);
	case MEMBER_REAL:	return info_real(member_number(m, l));
	default:		return info_count(member_number(m, l));
	}
}

/* Whether the attribute is a column of the table: not if another column has it, or if it is of a dataset.
 * An absent enum has the value 0, which is printed if it has a name. */
static bool is_shown(const struct member *m, const struct linear *l, int form)
{
	if (!member_is_attribute(m) || m->of || m->view == offsetof(struct linear, storage) ||
	    m->view == offsetof(struct linear, storage.bits) || m->view == offsetof(struct linear, group))
		return false;
	return member_is_present(m, l, form) ||
		(m->forms & form && m->type == MEMBER_WORD && m->words[0] &&
			(!m->is_allowed || m->is_allowed(l)));
}

/* The names of the optional datasets of a layer, and of its scales of activations. */
static json_t *names_of_others(const struct linear *l, int form)
{
	char *names = xformat("%s", "");
	json_t *y;

	for (const struct member *m = members; m->name; m++) {
		char *before = names;

		if (member_is_attribute(m) || !member_is_present(m, l, form) ||
		    !(m->optional || m->view == offsetof(struct linear, input.scale)))
			continue;
		names = xformat("%s%s%s", before, *before ? " " : "", m->name);
		free(before);
	}
	y = *names ? json_string(names) : NULL;
	free(names);
	return y;
}

static void add_layer(struct info *f, const struct part *part, const char *path)
{
	struct layer layer = layer_outline(part, path);
	const struct linear *l = &layer.linear;
	const struct member *weight = member_weight(members, l);
	const struct place place = place_of(f->config, path);
	const double n = (double)l->out * (double)l->in, bits = member_bits(members, l);
	char *group = stats_table_group(l);
	json_t *row = json_object(), *others = names_of_others(l, weight->forms);
	static const char *const counts[] = { "layers", "weights", "bits", "split_columns", NULL };

	info_set(row, "place", info_string(place.name));
	info_set(row, "storage", info_string(stats_table_storage(l)));
	info_set(row, "group", info_string(group));
	info_set(row, "stored_as", info_string(weight->name));
	for (const struct member *m = members; m->name; m++)
		if (is_shown(m, l, weight->forms))
			info_set(row, m->name, attribute_value(m, l));
	if (l->rank)
		info_set(row, "rank", info_size(l->rank));
	if (others)
		info_set(row, "with", others);
	row = info_row(f, "layers", row, counts);
	info_add(row, "layers", 1);
	info_add(row, "weights", n);
	info_add(row, "split_columns", (double)l->splits);
	info_set(row, "bits", info_real(json_real_value(json_object_get(row, "bits")) + bits * n));
	f->sum.parameters += n;
	if (place.counted) {
		f->sum.weights += n;
		f->sum.bits += bits * n;
	}
	free(group);
	layer_free(&layer);
}

/* A visit of a part. group: of the last dataset; layer: whether it is one. */
struct visit { struct info *f; const struct part *part; char *group; bool layer; };

/* Whether the weight of the layer is that of another one, as in a tied head. */
static bool is_tied(const struct part *part, const char *path)
{
	char *weight = layer_member(path, "weight");
	char *same = part_has(part, weight) ? part_tied(part, weight) : part_tied(part, path);
	const bool is = same;

	free(weight), free(same);
	return is;
}

static bool holds_weight(const char *name)
{
	for (const struct member *m = members; m->name; m++)
		if (m->role == MEMBER_WEIGHT && !strcmp(m->name, name))
			return true;
	return false;
}

/* Adds the layer of a weight. Counts the parameters that are not weights of linear layers. */
static void visit_dataset(void *arg, const char *path, const char *type, int rank, const size_t dim[])
{
	const char *name = strrchr(path, '/') + 1;
	const size_t group = (size_t)(name - path) - 1;
	struct visit *v = arg;
	double n = 1;

	if (!group || rank < 0)
		return;
	if (!v->group || strlen(v->group) != group || strncmp(v->group, path, group)) {
		free(v->group);
		v->group = xformat("%.*s", (int)group, path);
		v->layer = layer_exists(v->part, v->group);
	}
	for (int i = 0; i < rank; i++)
		n *= (double)dim[i];
	if (v->layer && holds_weight(name)) {
		if (!layer_is_branch(v->part, v->group) && !is_tied(v->part, v->group))
			add_layer(v->f, v->part, v->group);
	} else if (strchr("fb", *type) && (!v->layer || !strcmp(name, "bias")))
		v->f->sum.parameters += n;
}

void info_model_part(struct info *f, const struct part *part)
{
	struct visit v = { f, part, NULL, false };

	part_datasets(part, visit_dataset, &v);
	free(v.group);
}

void info_model_end(struct info *f)
{
	json_t *layers = info_list(f->facts, "layers"), *row;
	size_t i;

	info_set(f->facts, "parameters", info_count(f->sum.parameters));
	if (f->sum.weights > 0)
		info_set(f->facts, "bits_per_weight", info_real(f->sum.bits / f->sum.weights));
	json_array_foreach(layers, i, row) {
		const double weights = json_number_value(json_object_get(row, "weights"));

		if (json_number_value(json_object_get(row, "split_columns")) == 0)
			json_object_del(row, "split_columns");
		info_set(row, "bits", info_real(json_real_value(json_object_get(row, "bits")) / weights));
	}
}

/* --- Hessians --- */

static void visit_hessian(void *arg, const char *path)
{
	struct visit *v = arg;
	struct info_sums *s = &v->f->sum;
	struct tensor t;
	char *count;
	double tokens = 0;

	if (hessian_is_prior(path)) {
		s->priors++;
		return;
	}
	if (!hessian_exists(v->part, path))
		return;
	count = layer_member(path, "count");
	t = part_tensor(v->part, count, TENSOR_I64, -1, NULL);
	for (size_t i = 0; i < tensor_count(&t); i++)
		tokens += (double)((const int64_t *)t.data)[i];
	s->tokens_min = s->layers ? fmin(s->tokens_min, tokens) : tokens;
	s->tokens_max = fmax(s->tokens_max, tokens);
	s->layers++;
	free(count);
}

/* Collects the members of layers: their names, types and number. */
static void add_member(void *arg, const char *path, const char *type, int rank, const size_t dim[])
{
	const char *name = strrchr(path, '/');
	struct visit *v = arg;
	json_t *row;

	(void)rank, (void)dim;
	if (name == path)
		return;
	row = json_object();
	info_set(row, "member", info_string(name + 1));
	info_set(row, "type", info_string(type));
	info_add(info_row(v->f, "members", row, (const char *const[]){ "layers", NULL }), "layers", 1);
}

void info_hessian_part(struct info *f, const struct part *part)
{
	struct visit v = { f, part, NULL, false };

	part_groups(part, visit_hessian, &v);
	part_datasets(part, add_member, &v);
}

void info_hessian_end(struct info *f)
{
	info_set(f->facts, "layers", info_size(f->sum.layers));
	info_set(f->facts, "priors", info_size(f->sum.priors));
	info_set(f->facts, "tokens_min", info_count(f->sum.tokens_min));
	info_set(f->facts, "tokens_max", info_count(f->sum.tokens_max));
}
