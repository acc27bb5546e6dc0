/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * compare.h -- two methods over draws, from the records of their evaluations
 *
 * A table with a row for each number:
 *
 *	nll		mean negative log-likelihood of the targets
 *	nll_rise	its difference from that of the reference
 *	kl		mean KL divergence from the reference
 *	nll_delta	nll of the method - nll of its base in the same draw
 *	kl_delta	kl of the method - kl of its base in the same draw
 *
 * nll_rise, kl and kl_delta need records with a reference. A row has the two-way layout (two_way.h) of the
 * means over the targets of windows, weighted by the targets.
 *
 * Records of eval-choice and eval-generate have two rows for each mark of the questions, as acc and
 * acc_delta. A question counts as a window. Questions of some tasks may be selected.
 *
 * Calling sequence: compare_table(); use of the table; table_free().
 */
#ifndef EVAL_COMPARE_H
#define EVAL_COMPARE_H
#include <stddef.h>
#include "base/selection.h"
#include "io/part.h"
#include "io/table.h"

/*
 * record: the records of the method, one a draw, then those of its base in the same draws. Warns of
 * calibration windows of different seeds in one draw, and of draws that are the same. confidence: of the
 * verdict in column `separated`, yes or no; "-", no verdict, for one draw, for equal numbers in all draws and
 * windows, and for nll and kl, which are not differences. tasks: of the questions; without a pattern all.
 *
 * Fatal errors: a record is of other targets, windows or questions, or of another reference than the first;
 * it has no /window, as those of version 1.0; some records have a reference and others have none; no
 * question has one of the tasks, or the records have no questions.
 */
struct table compare_table(size_t draws, const struct part *const record[2 * draws],
	const struct selection *tasks, double confidence);
#endif
