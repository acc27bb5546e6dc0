/* SPDX-License-Identifier: GPL-3.0-or-later */
/* basis.c -- see basis.h */
#include "model/basis.h"
#include <stdlib.h>
#include <string.h>
#include "base/digest.h"
#include "base/error.h"

static const char NAME[] = "basis";

char *basis_of(const struct part *part)
{
	char *y = part_text(part, "/", NAME);

	if (y && (strlen(y) != DIGEST_DIGITS || strspn(y, "0123456789abcdef") != DIGEST_DIGITS))
		die("%s: /: attribute %s is '%.80s', expected %d hexadecimal digits", part_name(part),
			NAME, y, DIGEST_DIGITS);
	return y;
}

/* Adds a rotation by its matrices. Adds Hessians by their basis and histories, since their sums depend on
 * the processor. */
static void add_input(struct digest *d, const struct part *second)
{
	static const char *const matrices[] = { "/residual", "/value" };
	char *text;

	if (!strcmp(part_kind(second), "rotation")) {
		for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
			struct tensor t;

			if (!part_find(second, matrices[i], TENSOR_F32, 2, NULL, &t))
				continue;
			digest_add(d, strlen(matrices[i]), matrices[i]);
			digest_add(d, tensor_count(&t) * sizeof(float), t.data);
		}
		return;
	}
	text = basis_of(second);
	digest_add(d, text ? strlen(text) : 0, text);
	free(text);
	text = part_histories(second);
	digest_add(d, strlen(text), text);
	free(text);
}

char *basis_change(const char *before, const char *settings, const struct part *second)
{
	struct digest *d;

	if (!before)
		return NULL;
	d = digest_begin();
	digest_add(d, strlen(before), before);
	digest_add(d, strlen(settings), settings);
	if (second)
		add_input(d, second);
	return digest_end(d);
}

void basis_write(struct output *out, const char *basis)
{
	if (basis)
		output_text(out, "/", NAME, basis);
}

void basis_copy(struct output *out, const struct part *from)
{
	char *basis = basis_of(from);

	basis_write(out, basis);
	free(basis);
}

/* "FILE was made by 'LINE; LINE'": the history in one line. */
static char *made_by(const struct part *part)
{
	char *history = part_text(part, "/", "history"), *y;

	for (char *c = history; c && *c; c++)
		if (*c == '\n')
			*c = ';';
	y = xformat("%s was made by '%s'", part_name(part), history ? history : "hand");
	free(history);
	return y;
}

static void bases_differ(const struct part *a, const struct part *b, bool force)
{
	char *first = made_by(a), *second = made_by(b);

	if (!force)
		die("%s: its layers have other inputs than those of %s (attribute %s): %s, %s; a rotated or "
			"scaled model needs Hessians of its own (hessian-accum), a quantized checkpoint "
			"model-import --basis MODEL; --force-basis ignores the difference",
			part_name(b), part_name(a), NAME, first, second);
	warn("%s: its layers have other inputs than those of %s: %s, %s", part_name(b), part_name(a), first,
		second);
	free(first), free(second);
}

/* Compares all pairs; reports the first two files that differ. */
static bool compare(size_t n, const struct part *const file[n], char *const basis[n], bool force)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			if (basis[i] && basis[j] && strcmp(basis[i], basis[j])) {
				bases_differ(file[i], file[j], force);
				return true;
			}
	return false;
}

bool basis_match(size_t n, const struct part *const file[n], bool force)
{
	char **basis = xalloc(n, sizeof *basis);
	const char *lacking = NULL, *other = NULL;
	bool differs;

	for (size_t i = 0; i < n; i++) {
		if (!file[i])
			continue;
		basis[i] = basis_of(file[i]);
		if (!basis[i] && !lacking)
			lacking = part_name(file[i]);
		else if (!other)
			other = part_name(file[i]);
	}
	differs = compare(n, file, basis, force);
	if (lacking && other)
		warn("%s: has no attribute %s: cannot check that its layers have the same inputs as those of "
			"%s", lacking, NAME, other);
	for (size_t i = 0; i < n; i++)
		free(basis[i]);
	free(basis);
	return differs;
}
