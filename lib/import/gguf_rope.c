/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gguf_rope.c -- rotary positions of a GGUF file, from keys and from tensors of factors; see
 * gguf_making_private.h */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/gguf_making_private.h"

bool gguf_config_takes(const char *tensor)
{
	for (const struct gguf_tensor_key *t = gguf_rotary_tensors; t->gguf; t++)
		if (!strcmp(tensor, t->gguf))
			return true;
	return false;
}

/*
 * rope_freqs.weight has Llama 3's divisor of each frequency f: 1 for short waves, `factor` for long waves,
 * and between them 1 / ((1 - s) / factor + s) with s = (original f / 2 pi - low) / (high - low). Any pair of
 * channels between short and long gives the original context, which must fit all pairs.
 */
static json_t *llama3_scaling(const struct gguf_config_builder *m, const struct gguf_tensor *t,
	size_t head_dim, double theta)
{
	const double low = 1, high = 4, close = 1e-4;
	const size_t n = head_dim / 2;
	const float *y = (const float *)(const void *)t->data;
	double factor = 0, original = 0;

	if (t->type || t->rank != 1 || t->dim[0] != n || t->room < n * sizeof *y)
		die("%s: %s: expected %zu numbers of type F32, one for each pair of channels", m->path,
			t->name, n);
	for (size_t i = 0; i < n; i++) {
		if (!(y[i] >= 1 && y[i] < 1e6f))
			die("%s: %s: element %zu is %g, expected a divisor of at least 1", m->path,
				t->name, i, (double)y[i]);
		factor = fmax(factor, y[i]);
	}
	for (size_t i = 0; i < n && factor > 1; i++) {
		const double f = pow(theta, -2.0 * (double)i / (double)head_dim);
		const double s = (1 / (double)y[i] - 1 / factor) / (1 - 1 / factor);

		if (!original && s > close && s < 1 - close)
			original = round(2 * M_PI / f * (low + s * (high - low)));
	}
	for (size_t i = 0; i < n && original > 0; i++) {
		const double f = pow(theta, -2.0 * (double)i / (double)head_dim);
		const double s = fmin(1, fmax(0, (original * f / (2 * M_PI) - low) / (high - low)));
		const double want = 1 / ((1 - s) / factor + s);

		if (fabs(y[i] - want) > close * want)
			original = -1;
	}
	if (factor > 1 && original <= 0)
		die("%s: %s: does not scale as Llama 3 does with low_freq_factor 1 and high_freq_factor 4; "
			"other rotary scalings by frequency are not supported", m->path, t->name);
	if (factor <= 1)
		return json_null();
	return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", gguf_shortest(factor),
		"low_freq_factor", low, "high_freq_factor", high, "original_max_position_embeddings",
		(json_int_t)original);
}

/* The divisors of the frequencies in short and in long contexts. */
static json_t *longrope(const struct gguf_config_builder *m, size_t rotated)
{
	json_t *scaling = json_pack("{s:s}", "rope_type", "longrope");

	for (const struct gguf_tensor_key *k = gguf_rotary_tensors; k->gguf; k++) {
		const struct gguf_tensor *t = gguf_tensor(m->g, k->gguf);
		const float *y = t ? (const float *)(const void *)t->data : NULL;
		json_t *list;

		if (!k->hf)
			continue;
		list = json_array();
		if (!y || t->type || t->rank != 1 || t->dim[0] != rotated / 2 ||
			t->room / sizeof *y < t->dim[0])
			die("%s: %s: is missing, or not %zu numbers of type F32, one for each pair of "
				"channels",
				m->path, k->gguf, rotated / 2);
		for (size_t i = 0; i < t->dim[0]; i++) {
			if (!(y[i] > 0 && y[i] < 1e6f))
				die("%s: %s: element %zu is %g, expected a positive divisor", m->path,
					t->name, i, (double)y[i]);
			if (json_array_append_new(list, json_real(gguf_shortest(y[i]))))
				die("%s: out of memory", m->path);
		}
		if (json_object_set_new(scaling, k->hf, list))
			die("%s: out of memory", m->path);
	}
	return scaling;
}

/* As in llama.cpp, a factor without a type is linear, and 0 or 1 is no scaling. *is_long: set if the type is
 * longrope. */
static json_t *keyed_scaling(const struct gguf_config_builder *m, const struct gguf_key *k, bool *is_long)
{
	char *name = gguf_full_key(m, k), *kind = gguf_string(m->g, name);
	double factor = 0;
	bool none = kind && !strcmp(kind, "none");

	if (kind && !none && strcmp(kind, "linear") && !(m->row->longrope && !strcmp(kind, "longrope")))
		die("%s: %s: rotary scaling '%s' is not supported, expected none, linear%s", m->path, name,
			kind, m->row->longrope ? " or longrope" : " or Llama 3's");
	gguf_real_of(m, GGUF_FACTOR, &factor);
	*is_long |= kind && !none && strcmp(kind, "linear") != 0;
	free(kind);
	free(name);
	if (none || factor == 0 || factor == 1 || *is_long)
		return NULL;
	return json_pack("{s:s, s:f}", "rope_type", "linear", "factor", gguf_shortest(factor));
}

/* Whether the file has factors of a longrope scaling. */
static bool has_factors(const struct gguf_config_builder *m)
{
	for (const struct gguf_tensor_key *k = gguf_rotary_tensors; k->gguf; k++) {
		if (!k->hf || !gguf_tensor(m->g, k->gguf))
			continue;
		if (!m->row->longrope)
			die("%s: %s: rotary scaling 'longrope' is not supported", m->path, k->gguf);
		return true;
	}
	return false;
}

static double theta_of(const struct gguf_config_builder *m)
{
	double theta = 10000;

	gguf_real_of(m, GGUF_THETA, &theta);
	return theta;
}

void gguf_put_theta(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	gguf_put(m, k->hf, json_real(gguf_shortest(theta_of(m))));
}

static size_t rotated_of(const struct gguf_config_builder *m)
{
	size_t rotated = m->sizes.head_dim;

	gguf_size_of(m, GGUF_ROTATED, &rotated);
	return rotated;
}

void gguf_put_rotated(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	const size_t head_dim = m->sizes.head_dim, rotated = rotated_of(m);
	double part = (double)rotated / (double)head_dim;

	if (!k->hf && rotated != head_dim)
		die("%s: %s.%s: is %zu, a %s rotates all %zu channels of a head", m->path, m->row->name,
			k->gguf, rotated, m->row->class, head_dim);
	if (!k->hf)
		return;
	if (!rotated || rotated > head_dim)
		die("%s: %s.%s: is %zu, expected 1 to the %zu channels of a head", m->path, m->row->name,
			k->gguf, rotated, head_dim);
	while ((size_t)(part * (double)head_dim) < rotated)	/* readers round down */
		part = nextafter(part, 2);
	gguf_put(m, k->hf, json_real(part));
}

void gguf_put_scaling(const struct gguf_config_builder *m, const struct gguf_key *k)
{
	const struct gguf_tensor *divisors = gguf_tensor(m->g, GGUF_ROPE_FREQS);
	const size_t head_dim = m->sizes.head_dim;
	bool is_long = has_factors(m);
	json_t *scaling = keyed_scaling(m, k, &is_long);
	const struct gguf_key *rotated = gguf_key_of(m, GGUF_ROTATED);

	if (divisors && (scaling || (rotated && rotated->hf) || !head_dim || theta_of(m) <= 1))
		die("%s: %s: rotary scaling by frequency is not supported with other scalings or partial "
			"rotation", m->path, divisors->name);
	if (divisors)
		scaling = llama3_scaling(m, divisors, head_dim, theta_of(m));
	else if (is_long)
		scaling = longrope(m, rotated_of(m));
	if (scaling)
		gguf_put(m, k->hf, scaling);
}
