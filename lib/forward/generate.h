/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * generate.h -- greedy generation: the most likely id (ties: the lowest) is appended until the text ends
 *
 * Prompts are run together in slots of a cache. A slot whose text has ended takes the next prompt. The ids at
 * the start of all prompts, as the examples of a task, are computed once.
 *
 * The ids of a prompt do not depend on the prompts that run with it, on the number of slots or on the number
 * of threads: a prompt is read by itself, in pieces of constant size, and the rows of later steps are apart
 * (forward/batch.h).
 *
 * Calling sequence: resident_open(), with PRODUCT_FEW rows (forward/execution.h); generate(); free() the ids;
 * resident_close().
 */
#ifndef FORWARD_GENERATE_H
#define FORWARD_GENERATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "forward/hidden.h"
#include "forward/prompt.h"
#include "forward/resident.h"

/* Why a text ended: an id that ends texts, a text that `stop` found, the largest number of ids, no position
 * left. */
enum generated_end { GENERATED_EOS, GENERATED_STOP, GENERATED_MAX, GENERATED_POSITIONS, GENERATED_ENDS };

struct generated {
	size_t n;			/* ids, without one that ends texts */
	int32_t *id;			/* [n] */
	enum generated_end end;
};

struct generate {
	const char *name;		/* of the model's file, for messages */
	size_t max;			/* most new ids of a prompt, at least 1 */
	size_t together;		/* most prompts that run together */
	size_t memory;			/* bytes of keys and values; room for at least one prompt is taken */
	size_t ends;
	const int32_t *end;		/* [ends] ids that end texts */
	/* Whether the text of n ids of a prompt ends here. Threads call it for several prompts at once. */
	bool (*stop)(void *arg, size_t prompt, size_t n, const int32_t id[n]);
	void *arg;
	const struct hidden *feature;	/* of all images; NULL: none */
};

/* Generates y[i] from the context of p[i], which has fewer tokens than the model has positions. A model of
 * multimodal positions needs them in the first continuation, for `max` tokens. free() each y[i].id. Logits
 * that are not finite are a fatal error. */
void generate(const struct resident *r, const struct generate *g, size_t n, const struct prompt p[n],
	struct generated y[n]);
#endif
