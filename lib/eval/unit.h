/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unit.h -- the units of a plan of formats: blocks, or layers, of a model and of its quantized forms
 *
 * A candidate is the same model with all or some layers quantized. A plan takes the layers of each unit from
 * one candidate. The layers of all experts of a block that have the same name are one unit.
 *
 * Calling sequence: units_of(); unit_lines() for each unit; units_free().
 */
#ifndef EVAL_UNIT_H
#define EVAL_UNIT_H
#include <stddef.h>
#include <stdint.h>
#include "base/selection.h"
#include "io/part.h"
#include "model/config.h"
#include "model/layer_list.h"

enum unit_kind { UNIT_BLOCK, UNIT_LAYER };
extern const char *const unit_kinds[];		/* "block", "layer", NULL */

struct unit {
	char *glob;			/* matches its layers; if it is not whole, others, too */
	size_t block;			/* number in the language model */
	struct layer_list list;
	bool whole;			/* no other layer of the model matches glob */
};
struct units {
	const struct part *model;
	enum unit_kind kind;
	size_t candidates;
	struct part *const *candidate;
	size_t n;
	struct unit *unit;		/* [n] in the order of the model */
	uint64_t *size;			/* [n][candidates] bits of the layers, as stored */
	double weights;			/* of all units */
	double other;			/* bits of everything else in the model but texts */
};

/*
 * The units of the selected layers in the blocks of the language model that some candidate has quantized.
 * Fatal errors: a candidate lacks a layer, or it has another shape there; no plan makes such a layer; a plan
 * that takes a unit from a candidate would rotate one input in two ways; there is no such layer.
 */
struct units units_of(const struct part *model, const struct config *c, size_t candidates,
	struct part *const candidate[candidates], enum unit_kind kind, const struct selection *layers);
void units_free(struct units *u);

/*
 * The lines of a plan (transform/plan.h) that give the layers of the unit the formats of the candidate: one
 * for all of them (eval/candidate.h), or one for each if they differ or if the unit is not whole; free() it.
 * note: a comment at the end of the first line, or "".
 */
char *unit_lines(const struct units *u, size_t unit, size_t candidate, const char *note);
#endif
