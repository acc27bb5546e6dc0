/* SPDX-License-Identifier: GPL-3.0-or-later */
/* adopt.c -- see adopt.h */
#include "import/adopt.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "io/same.h"
#include "io/tree.h"
#include "model/basis.h"
#include "model/layer.h"
#include "num/half.h"

/* Relative differences below these are accepted. Rounding to bf16 changes a number by at most 2⁻⁸, and the
 * gains of both models may be rounded. */
static const double LAYER_MAX = 0.5, GAIN_MAX = 0x1p-7;

static bool has_entry(const struct checkpoint *k, const char *path)
{
	for (const struct entry *e = k->entry; e < k->entry + k->entries; e++)
		if (!strcmp(e->path, path))
			return true;
	return false;
}

/* It is a fatal error if the model has a tensor that the checkpoint does not have. */
static void check_model(const struct part *model, const struct checkpoint *k)
{
	size_t n;
	char **path = same_objects(model, &n);

	for (size_t i = 0; i < n; i++) {
		bool known = tree_info(model, path[i]).type == H5O_TYPE_GROUP || has_entry(k, path[i]);

		for (size_t t = 0; t < TEXTS; t++)
			known |= !strcmp(path[i], text_rows[t].path);
		if (!known)
			die("%s: has no %s, which %s has: expected a quantized form of that model",
				k->source->path, path[i], part_name(model));
	}
	tree_free_paths(path, n);
}

/* It is a fatal error if a member that both configurations have differs, except members about the storage of
 * the checkpoint. For a member that only one configuration has, unless it is null or false, warns. */
static void compare_config(const char *file, const char *model, json_t *ours, json_t *theirs)
{
	static const char *const stored[] = { "_name_or_path", "architectures", "dtype",
		"quantization_config", "torch_dtype", "transformers_version", "use_cache", NULL };
	const char *name;
	json_t *value;

	json_object_foreach(ours, name, value) {
		json_t *other = json_object_get(theirs, name);
		bool skip = json_is_null(value) || json_is_false(value);

		for (size_t i = 0; stored[i]; i++)
			skip |= !strcmp(name, stored[i]);
		if (skip)
			continue;
		if (!other)
			warn("%s: '%s': is not in the configuration of %s", file, name, model);
		else if (json_is_object(value) && json_is_object(other))
			compare_config(file, model, value, other);
		else if (!json_equal(value, other))
			die("%s: '%s': differs from that of %s: layers of the two have different inputs",
				file, name, model);
	}
}

static void check_config(const struct part *model, const struct checkpoint *k)
{
	char *text = part_config(model);
	json_t *theirs = json_loads(text ? text : "", 0, NULL);
	json_t *ours = json_loads(k->source->text[TEXT_CONFIG], 0, NULL);

	if (!theirs || !ours)
		die("%s: /config: is missing, or not valid JSON", part_name(model));
	compare_config(k->source->config_name, part_name(model), ours, theirs);
	compare_config(part_name(model), k->source->config_name, theirs, ours);
	json_decref(theirs), json_decref(ours);
	free(text);
}

struct part *adopt_open(const char *path, const struct checkpoint *k)
{
	struct part *model = part_open(path, "model");
	char *basis = basis_of(model);

	if (!basis)
		die("%s: attribute basis: is missing, expected a model with a basis", path);
	for (const struct entry *e = k->entry; e < k->entry + k->entries; e++)
		if (!part_has(model, e->path))
			die("%s: has %s, which %s does not have: expected a quantized form of that model",
				k->source->path, e->path, path);
	check_model(model, k);
	check_config(model, k);
	free(basis);
	return model;
}

/* ‖a - b‖/‖b‖ */
static double distance(const struct tensor *a, const struct tensor *b)
{
	enum { MANY = 1 << 12 };
	const size_t n = tensor_count(a);
	const char *p = a->data, *q = b->data;
	float x[MANY], y[MANY];
	double error = 0, whole = 0;

	for (size_t i = 0, m; i < n; i += m) {
		m = min(n - i, MANY);
		half_widen(m, x, p + i * tensor_size(a->type), tensor_half(a->type));
		half_widen(m, y, q + i * tensor_size(b->type), tensor_half(b->type));
		for (size_t j = 0; j < m; j++) {
			error += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
			whole += (double)y[j] * (double)y[j];
		}
	}
	return error > 0 ? sqrt(error / whole) : 0;
}

void adopt_tensor(const struct part *model, const struct entry *e, const struct tensor *t,
	struct report *report)
{
	static const struct report_column difference = { "difference", REPORT_MAX };
	static const struct report_table table = { .column = &difference, .columns = 1 };
	const char *name = strrchr(e->path, '/');
	const struct tensor other = part_tensor(model, e->path, TENSOR_ANY, t->rank, t->dim);
	const double limit = t->rank > 1 ? LAYER_MAX : GAIN_MAX;
	double far;

	if (!name || strcmp(name, "/weight") || e->tied_to)
		return;
	if (other.type != TENSOR_F32 && other.type != TENSOR_F16 && other.type != TENSOR_BF16)
		die("%s: %s: is %s, expected the model before quantization",
			part_name(model), e->path, tensor_name(other.type));
	far = distance(t, &other);
	if (t->rank > 1)
		report_row(report, &table, e->path, &far);
	if (!(far < limit))
		die("%s: %s: its relative difference from that of %s is %.3g, expected less than %.3g: the "
			"layers of the two have different inputs", e->source->file, e->source->name,
			part_name(model), far, limit);
}
