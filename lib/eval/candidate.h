/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * candidate.h -- a layer of a quantized form of a model, as a line of a plan of dpq-run describes it
 *
 * A line (transform/plan.h) has storage, group, type of scales, compute format, rotation, and rounding of
 * inputs. `model` is the model that the candidate was made from: what both have is not in the line.
 */
#ifndef EVAL_CANDIDATE_H
#define EVAL_CANDIDATE_H
#include "io/part.h"
#include "model/layer_list.h"
#include "quant/linear.h"

/* The words of the line that makes such a layer; `keep` if it is not quantized; free() it. */
char *candidate_words(const struct part *model, const struct part *candidate, const char *path);

/*
 * Fatal error if no plan makes the layer: it has a low-rank branch, split columns, or an input scale for each
 * modality, which the model has not. Nothing is checked if it is not quantized. m, x: layer_outline() of the
 * layer in the model and in the candidate.
 */
void candidate_check(const struct part *candidate, const char *path, const struct linear *m,
	const struct linear *x);

/*
 * For a layer whose rotation in the candidate is not that of the model. Fatal error if another layer with the
 * same input has another rotation in the model whose layers `list` are those of `other`, which may be the
 * candidate. wanted: what the message expects.
 */
void candidate_check_input(const struct part *model, const struct part *candidate, const struct part *other,
	const struct layer_list *list, const struct layer_ref *layer, const char *wanted);

/* Fatal error if the file is one shard of several, or has another format of keys and values than the model,
 * with which plans are measured. */
void candidate_check_file(const struct part *model, const struct part *candidate);
/* Whether another layer of the block has the same input. */
bool candidate_shares_input(const struct layer_ref *layer);
/* Whether two layers, of layer_outline(), have the same rotation of inputs, except for the signs. */
bool candidate_same_rotation(const struct linear *a, const struct linear *b);
#endif
