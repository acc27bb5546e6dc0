/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * accumulate.h -- Hessians of linear layers from files: of their inputs, or of Hessians that are summed
 */
#ifndef CALIB_ACCUMULATE_H
#define CALIB_ACCUMULATE_H
#include <stddef.h>
#include "base/selection.h"
#include "forward/windows.h"
#include "model/filter.h"

/* Which rows of activations count: the first `limit` (0: all) are cut into windows of ctx rows, the last of
 * which may be shorter; of these windows one shard. */
struct accumulate_cut {
	size_t ctx, limit;
	struct shard shard;
};

/*
 * From one file of kind activations, <layer>/input [tokens, in], or from n
 * files of kind hessian, summed in the order given, each with its first part at
 * hand; the first has the output. Dies where there is no such layer.
 */
void accumulate_files(size_t n, struct filter file[n], const struct selection *layers,
	const struct accumulate_cut *cut);
#endif
