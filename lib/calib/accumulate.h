/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * accumulate.h -- Hessians of linear layers from files of activations, and sums of Hessian files
 */
#ifndef CALIB_ACCUMULATE_H
#define CALIB_ACCUMULATE_H
#include <stddef.h>
#include "base/selection.h"
#include "forward/windows.h"
#include "model/filter.h"

/* Rows of activations in use: `limit` rows (0: all) after the first `skip` rows are cut into windows of ctx
 * rows, and one shard of these windows is used. The last window may be shorter. */
struct accumulate_cut {
	size_t ctx, skip, limit;
	struct shard shard;
};

/*
 * Computes Hessians of one file of kind activations, with <layer>/input [tokens, in], or sums n files of kind
 * hessian, in the given order. The first part of each file has been read; file[0] has the output. Fatal
 * errors: no such layer; no row after `skip`; files of different models; bad sums.
 */
void accumulate_files(size_t n, struct filter file[n], const struct selection *layers,
	const struct accumulate_cut *cut);
#endif
