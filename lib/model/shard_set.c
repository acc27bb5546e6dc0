/* SPDX-License-Identifier: GPL-3.0-or-later */
/* shard_set.c -- see shard_set.h */
#include "model/shard_set.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "io/output.h"
#include "model/basis.h"
#include "model/calibrated.h"
#include "model/shard_file.h"

static bool texts_differ(const char *a, const char *b)
{
	return (a == NULL) != (b == NULL) || (a && strcmp(a, b));
}

/* Whether the files differ in a digest; absent: absence counts as a difference. pair: the first two files
 * that differ. */
static bool differ_in(size_t n, const struct filter file[n], const char *digest, bool absent,
	size_t pair[2])
{
	char *first = NULL;

	pair[1] = n;
	for (size_t i = 0; i < n && pair[1] == n; i++) {
		char *own = part_text(file[i].part, "/", digest);

		if (!i || (!first && !absent)) {
			first = own;
			pair[0] = i;
			continue;
		}
		if (texts_differ(first, own) && (absent || own))
			pair[1] = i;
		free(own);
	}
	free(first);
	return pair[1] < n;
}

void shard_drop(struct output *out, size_t n, const struct filter file[n])
{
	size_t pair[2];

	output_drop(out, "/", "shard");
	output_drop(out, "/", "shards");
	for (int i = 0; i < SHARD_INPUTS; i++)
		if (!n || differ_in(n, file, shard_digests[i], true, pair))
			output_drop(out, "/", shard_digests[i]);
}

/* Whether the files were made of different models, or pairs of models. */
static bool models_differ(size_t n, const struct filter file[n], enum shard_input input, bool force)
{
	size_t pair[2];

	if (!differ_in(n, file, shard_digests[input], false, pair))
		return false;

	const char *a = input_name(file[pair[0]].in), *b = input_name(file[pair[1]].in);

	if (!force)
		die("%s: is of another model than %s (attribute %s); --force-basis accepts both",
			b, a, shard_digests[input]);
	warn("%s: is of another model than %s", b, a);
	return true;
}

bool shard_match(size_t n, const struct filter file[n], bool force)
{
	const struct part **part = xalloc(n, sizeof *part);
	bool y;

	for (size_t i = 0; i < n; i++)
		part[i] = file[i].part;
	y = basis_match(n, part, force);
	y = models_differ(n, file, SHARD_MODEL, force) || y;
	y = models_differ(n, file, SHARD_PAIR, force) || y;
	free(part);
	return y;
}

/* An input and its attributes of a shard. */
struct shard_file {
	struct filter filter;
	const char *name;
	struct shard shard;		/* n 0: not a shard */
	char *command, *digest[SHARD_INPUTS];
	char *calibration;		/* attribute (model/calibrated.h), or NULL */
};

/* The first line of a history, without its --shard. */
static char *command_of(const struct part *part)
{
	static const char option[] = " --shard ";
	char *line = part_text(part, "/", "history"), *at;

	if (!line)
		return xformat("%s", "");
	line[strcspn(line, "\n")] = 0;
	at = strstr(line, option);
	if (at) {
		const char *rest = at + sizeof option - 1;

		rest += strcspn(rest, " ");
		memmove(at, rest, strlen(rest) + 1);
	}
	return line;
}

static struct shard_file look(const struct filter *f)
{
	const struct part *part = f->part;
	const double i = part_number(part, "/", "shard", 0), n = part_number(part, "/", "shards", 0);
	struct shard_file y = { .filter = *f, .name = input_name(f->in) };

	if (i == 0 && n == 0)
		return y;
	if (!(i >= 1 && i <= n && n <= 1e6) || i != floor(i) || n != floor(n))
		die("%s: /: attributes shard and shards are %g and %g, expected I and N with 1 <= I <= N",
			y.name, i, n);
	y.shard = (struct shard){ .i = (size_t)i, .n = (size_t)n };
	y.command = command_of(part);
	for (int k = 0; k < SHARD_INPUTS; k++)
		y.digest[k] = part_text(part, "/", shard_digests[k]);
	y.calibration = part_text(part, "/", CALIBRATED);
	return y;
}

/*
 * Whether a comparison of digests can be skipped for two shards of a model, if one came from a pipe:
 * their bases identify the model (shard_match()), and the rest is compared number by number
 * (transform/join.h).
 */
static bool is_told(const struct shard_file *a, const struct shard_file *b)
{
	const struct shard_file *const file[] = { a, b };
	bool told = !strcmp(part_kind(a->filter.part), "model") &&
		(!a->digest[SHARD_MODEL] || !b->digest[SHARD_MODEL]);

	for (size_t i = 0; told && i < 2; i++) {
		char *basis = basis_of(file[i]->filter.part);

		told = basis != NULL;
		free(basis);
	}
	return told;
}

/* Fatal error unless b is a shard of the same whole as a. */
static void compare(const struct shard_file *a, const struct shard_file *b)
{
	static const char *const what[SHARD_INPUTS] = {
		"another model", "other tokens", "other Hessians", "another order", "another pair"
	};

	if (a->shard.n != b->shard.n)
		die("%s: is shard %zu of %zu, %s is shard %zu of %zu", b->name, b->shard.i, b->shard.n,
			a->name, a->shard.i, a->shard.n);
	if (strcmp(a->command, b->command))
		die("%s: was made by '%s', %s by '%s'", b->name, b->command, a->name, a->command);
	for (int i = 0; i < SHARD_INPUTS; i++) {
		if (!texts_differ(a->digest[i], b->digest[i]) || (i == SHARD_MODEL && is_told(a, b)))
			continue;
		if (!a->digest[i] || !b->digest[i])
			die("%s: has no attribute %s, %s has one: cannot check that both are shards of one "
				"whole", (a->digest[i] ? b : a)->name, shard_digests[i],
				(a->digest[i] ? a : b)->name);
		die("%s: is a shard of %s than %s (attribute %s)", b->name, what[i], a->name,
			shard_digests[i]);
	}
	if (texts_differ(a->calibration, b->calibration))
		die("%s: is a shard of other tokens, or of another range of them, than %s (attribute %s)",
			b->name, a->name, CALIBRATED);
}

static int by_shard(const void *a, const void *b)
{
	const struct shard_file *x = a, *y = b;

	return (x->shard.i > y->shard.i) - (x->shard.i < y->shard.i);
}

/* Fatal error unless each shard is present once. The files are sorted. */
static void check_all(size_t n, const struct shard_file file[n])
{
	for (size_t i = 0; i + 1 < n; i++)
		if (file[i].shard.i == file[i + 1].shard.i)
			die("%s: is shard %zu of %zu, and so is %s", file[i + 1].name, file[i].shard.i,
				file[i].shard.n, file[i].name);
	for (size_t i = 0; i < file->shard.n; i++)
		if (i >= n || file[i].shard.i != i + 1)
			die("%s: is shard %zu of %zu, shard %zu is missing, expected all", file->name,
				file->shard.i, file->shard.n, i + 1);
}

bool shard_sort(size_t n, struct filter file[n])
{
	struct shard_file *all = xalloc(n, sizeof *all);
	const bool shards = part_number(file->part, "/", "shards", 0) != 0;

	for (size_t i = 0; i < n; i++) {
		all[i] = look(&file[i]);
		if ((all[i].shard.n != 0) != shards)
			die("%s: is %s shard, %s is %s, expected all shards of one run, or none",
				all[i].name, shards ? "not a" : "a", all->name, shards ? "one" : "not");
		if (shards && i)
			compare(all, &all[i]);
	}
	if (shards) {
		qsort(all, n, sizeof *all, by_shard);
		check_all(n, all);
	}
	for (size_t i = 0; i < n; i++) {
		file[i] = all[i].filter;
		free(all[i].command), free(all[i].calibration);
		for (int k = 0; k < SHARD_INPUTS; k++)
			free(all[i].digest[k]);
	}
	free(all);
	return shards;
}
