/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rope.c -- see rope.h */
#include "model/rope.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "model/key.h"
#include "model/stack.h"

enum { SHORT, LONG };
enum { THETA = 10000 };		/* if the class has no other value */

static enum rope_kind kind_of(const struct keys *k, const char *name)
{
	const struct architecture *arch = k->arch;
	static const struct { const char *name; enum rope_kind kind; } kinds[] = {
		{ "default", ROPE_DEFAULT }, { "linear", ROPE_LINEAR }, { "llama3", ROPE_LLAMA3 },
		{ "longrope", ROPE_LONG },
	};

	if ((arch->axes == 2 && !strcmp(name, "axial")) || (arch->axes && !strcmp(name, "mrope")))
		return ROPE_DEFAULT;	/* name of the default for positions with several coordinates */

	for (const char *const *other = arch->longrope; other && *other; other++)
		if (!strcmp(name, *other))
			return ROPE_LONG;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	die("%s: /config: rotary scaling '%s' is not supported, expected default, linear, llama3 or longrope",
		k->file, name);
}

/* Parses the rotated channels of a head. A class without a key for them rotates all. It ignores
 * partial_rotary_factor under the default kind, and fails with it under other kinds. */
static void parse_rotary(struct stack *s, enum rope_kind kind, const struct keys *k, const struct keys *rope)
{
	const char *key = "partial_rotary_factor", *name = key_name(k, key);
	const json_t *inside = json_object_get(rope->json, key), *v = inside ? inside : key_get(k->json, key);
	double part = 1;

	if (s->arch->absent.rotary)
		part = key_real(inside ? rope : k, inside ? key : name, s->arch->absent.rotary);
	else if (kind != ROPE_DEFAULT && v && json_number_value(v) != 1)
		die("%s: /config: a %s does not have rotary positions on a part of the head", k->file,
			s->arch->name);
	s->rotary = (size_t)((double)s->head_dim * part);
	if (part > 1 || !s->rotary || s->rotary % 2)
		die("%s: /config: positions rotate %g of %zu channels of a head, expected an even number",
			k->file, part * (double)s->head_dim, s->head_dim);
}

static double *parse_factors(const struct keys *k, const char *key, size_t n)
{
	const json_t *list = json_object_get(k->json, key);
	double *y;

	if (json_array_size(list) != n)
		die("%s: /config: '%s' must be a list of %zu numbers, one for each rotary pair", k->file,
			key, n);
	y = xalloc(n, sizeof *y);
	for (size_t i = 0; i < n; i++) {
		y[i] = json_number_value(json_array_get(list, i));
		if (!(y[i] > 0) || isinf(y[i]))
			die("%s: /config: '%s': number %zu must be positive", k->file, key, i);
	}
	return y;
}

static void parse_long(struct rope_setting *r, const struct keys *k, size_t rotary, size_t positions)
{
	const double factor = key_get(k->json, "factor") ? key_real(k, "factor", NAN) :
		(double)positions / r->original;

	if (key_get(k->json, "attention_factor"))
		r->scale = key_real(k, "attention_factor", NAN);
	else if (factor > 1)
		r->scale = sqrt(1 + log(factor) / log(r->original));
	if (!(r->scale > 0) || isinf(r->scale))
		die("%s: /config: 'original_max_position_embeddings' is %g, expected more than one position",
			k->file, r->original);
	r->part[SHORT] = parse_factors(k, "short_factor", rotary / 2);
	r->part[LONG] = parse_factors(k, "long_factor", rotary / 2);
}

/* Parses one setting from the object `rope`. outer: the object around it (NULL: none), which may have theta
 * and the original context, too. Its theta is used only if `rope` has none, its original context always. */
static void parse_setting(struct stack *s, struct rope_setting *r, const struct keys *k, const json_t *rope,
	const json_t *outer, size_t positions)
{
	const double absent = s->arch->absent.original ? (double)s->arch->absent.original : (double)positions;
	const char *key = "original_max_position_embeddings";
	const struct keys own = keys_of(k, rope), beside = keys_of(k, outer);

	r->scale = 1;
	r->kind = kind_of(k, key_text(&own, "rope_type", key_text(&own, "type", "default")));
	parse_rotary(s, r->kind, k, &own);
	if (r->kind == ROPE_DEFAULT)
		return;
	r->original = key_real(json_object_get(outer, key) || s->arch->absent.original ? &beside : &own, key,
		absent);
	if (r->kind == ROPE_LONG) {
		parse_long(r, &own, s->rotary, positions);
		return;
	}
	r->factor = key_real(&own, "factor", NAN);
	if (r->kind != ROPE_LLAMA3)
		return;
	r->low = key_real(&own, "low_freq_factor", NAN);
	r->high = key_real(&own, "high_freq_factor", NAN);
	if (r->high <= r->low)
		die("%s: /config: high_freq_factor must be above low_freq_factor", k->file);
}

static double theta_of(const json_t *rope, const struct keys *k, const char *key, double absent)
{
	const bool inside = json_object_get(rope, "rope_theta");
	const struct keys own = keys_of(k, rope);

	return key_real(inside ? &own : k, inside ? "rope_theta" : key, absent > 0 ? absent : THETA);
}

static json_t *settings(const struct keys *k, const json_t *json, const char *key)
{
	json_t *rope = key_get(json, key);

	if (rope && !json_is_object(rope))
		die("%s: /config: the rotary settings must be an object", k->file);
	return rope;
}

/* Parses settings for blocks with and without a window. rope_parameters has an object for each kind of
 * block; rope_scaling, in older files, changes the setting of blocks without a window. */
static void parse_both(struct stack *s, const struct keys *k, size_t positions)
{
	static const char *const kinds[ROPES] = { "full_attention", "sliding_attention" };
	const struct architecture *a = s->arch;

	for (int i = 0; i < ROPES; i++) {
		struct rope_setting *r = &s->rope[i];
		json_t *given = settings(k, settings(k, k->json, "rope_parameters"), kinds[i]);
		json_t *rope = given ? json_copy(given) : json_pack("{s:s}", "rope_type", "default");

		if (i == ROPE_FULL)
			json_object_update(rope, settings(k, k->json, "rope_scaling"));
		r->theta = theta_of(rope, k, i == ROPE_FULL ? "rope_theta" : a->local_theta_key,
			i == ROPE_FULL ? a->absent.theta : a->absent.local_theta);
		parse_setting(s, r, k, rope, NULL, positions);
		json_decref(rope);
	}
}

/* Assigns a coordinate of a position to each pair: half of the pairs to rows and half to columns, or by
 * sections. */
static void parse_axes(struct stack *s, const struct keys *k, const json_t *rope)
{
	static const size_t usual[AXES] = { 16, 24, 24 };	/* of Qwen2-VL */
	const json_t *list = json_object_get(rope, "mrope_section");
	const size_t half = s->rotary / 2;
	size_t at = 0;

	s->axes = s->arch->axes;
	s->axis = xalloc(half, sizeof *s->axis);
	if (s->axes == 2) {
		s->rope[ROPE_FULL].kind = ROPE_GRID;
		for (size_t i = 0; i < half; i++)
			s->axis[i] = i >= half / 2;
		if (half % 2)
			die("%s: /config: heads of %zu channels have no pairs for rows and as many for "
				"columns", k->file, s->head_dim);
		return;
	}
	for (size_t a = 0; a < s->axes; a++) {
		const json_t *v = json_array_get(list, a);
		const size_t n = list ? (size_t)json_integer_value(v) : usual[a];

		if ((list && !json_is_integer(v)) || n > half - at)
			break;
		memset(s->axis + at, (int)a, n);
		at += n;
	}
	if (at != half || (list && json_array_size(list) != s->axes))
		die("%s: /config: 'mrope_section' must be a list of %zu numbers of rotary pairs, %zu in all",
			k->file, s->axes, half);
}

/*
 * transformers 5 stores theta and scaling together under rope_parameters; older files have rope_theta and
 * rope_scaling. If both are present, rope_scaling is used as a whole. A theta outside of rope_scaling or
 * rope_parameters is used if the inside has no theta; an original_max_position_embeddings outside is always
 * used.
 */
void rope_parse(struct stack *s, const struct keys *k, size_t positions)
{
	json_t *rope, *v;
	const char *key;

	if (s->arch->local_theta_key) {
		parse_both(s, k, positions);
		return;
	}
	rope = settings(k, k->json, "rope_scaling");
	if (!json_object_size(rope))
		rope = settings(k, k->json, "rope_parameters");
	s->rope[ROPE_FULL].theta = theta_of(rope, k, key_name(k, "rope_theta"),
		s->arch->absent.theta);
	json_object_foreach(rope, key, v)
		if (json_is_object(v))
			die("%s: /config: rotary settings of '%s' alone are not supported", k->file, key);
	parse_setting(s, &s->rope[ROPE_FULL], k, rope, k->json, positions);
	if (s->arch->axes)
		parse_axes(s, k, rope);
}

void rope_settings_free(const struct stack *s)
{
	for (int i = 0; i < ROPES; i++)
		for (int k = SHORT; k <= LONG; k++)
			free(s->rope[i].part[k]);
	free(s->axis);
}

double rope_frequencies(const struct rope_setting *r, size_t rotary, size_t positions,
	double frequency[rotary / 2])
{
	for (size_t i = 0; i < rotary / 2; i++) {
		const double exponent = r->kind == ROPE_GRID ? 4.0 * (double)(i % (rotary / 4)) :
			2.0 * (double)i;
		double f = pow(r->theta, -exponent / (double)rotary);
		double turns = r->original * f / (2 * M_PI);	/* turns in the original context */

		if (r->kind == ROPE_LINEAR || (r->kind == ROPE_LLAMA3 && turns < r->low))
			f /= r->factor;
		else if (r->kind == ROPE_LLAMA3 && turns <= r->high) {
			double keep = (turns - r->low) / (r->high - r->low);

			f = (1 - keep) * f / r->factor + keep * f;
		} else if (r->kind == ROPE_LONG)
			f /= r->part[(double)positions > r->original ? LONG : SHORT][i];
		frequency[i] = f;
	}
	return r->scale;
}
