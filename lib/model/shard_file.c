/* SPDX-License-Identifier: GPL-3.0-or-later */
/* shard_file.c -- see shard_file.h */
#include "model/shard_file.h"
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "io/file.h"
#include "io/output.h"
#include "model/layer_ref.h"

const char *const shard_digests[SHARD_INPUTS] = {
	[SHARD_MODEL] = "model_sha256", [SHARD_TOKENS] = "tokens_sha256",
	[SHARD_HESSIAN] = "hessian_sha256", [SHARD_ORDER] = "order_sha256",
	[SHARD_PAIR] = "pair_sha256"
};

void shard_write(struct output *out, const struct shard *s, const char *const name[SHARD_INPUTS])
{
	if (s->n > 1) {
		output_integer(out, "/", "shard", (int64_t)s->i);
		output_integer(out, "/", "shards", (int64_t)s->n);
	}
	for (int i = 0; i < SHARD_INPUTS; i++) {
		char *digest = name[i] ? file_digest(name[i]) : NULL;

		if (digest)
			output_text(out, "/", shard_digests[i], digest);
		free(digest);
	}
}

void shard_warn(const struct part *part)
{
	const double i = part_number(part, "/", "shard", 0), n = part_number(part, "/", "shards", 0);

	if (n > 1)
		warn("%s: is shard %g of %g, a part of the calibration: hessian-accum sums all of them",
			part_name(part), i, n);
}

void shard_refuse(const struct part *model)
{
	if (part_number(model, "/", "shards", 0) > 1)
		die("%s: is one of several shards, expected a whole model (tensor-join joins shards)",
			part_name(model));
}

void shard_check(const struct shard *s, const char *name, const struct config *c)
{
	if (s->n < 2)
		return;
	if (!c)
		die("%s: has no /config, which --shard needs to distribute blocks", name);
	if (s->i > c->blocks)
		warn("%s: --shard %zu/%zu has no block: there are %zu", name, s->i,
			s->n, c->blocks);
}

/* The block of a part; s NULL: none. */
struct at_block { const struct config *config; const struct stack *s; size_t block; };

static void look_for_block(void *arg, const char *path)
{
	struct at_block *p = arg;

	if (!p->s)
		p->s = config_block(p->config, path, &p->block, NULL);
}

static struct at_block place_of(const struct part *part, const struct config *c)
{
	struct at_block p = { .config = c };

	part_groups(part, look_for_block, &p);
	return p;
}

bool shard_has(const struct shard *s, const struct part *part, const struct config *c)
{
	struct at_block p;

	if (s->n < 2 || !part_index(part))
		return true;
	p = place_of(part, c);
	return (p.s ? (p.s->first + p.block) % s->n : 0) == s->i - 1;
}

void shard_write_empty(struct output *out, const struct part *part, const struct config *c)
{
	const struct at_block p = place_of(part, c);
	char *path = p.s ? stack_block_path(p.s, p.block) : NULL;

	output_begin(out, part);
	if (path)
		output_group(out, path);
	output_end(out);
	free(path);
}
