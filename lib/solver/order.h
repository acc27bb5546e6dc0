/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * order.h -- in which order a solver quantizes the columns of a layer
 *
 * none: as they stand. full: by descending diagonal of H (GPTQ's act-order). gar: by descending diagonal
 * inside each group, groups by descending key (DPQ section 3.2, appendix A); the key is the largest
 * diagonal of a group (the paper), its mean, sum, median, or the mean of its ⌈n/10⌉ largest. Ties keep the
 * original order.
 */
#ifndef SOLVER_ORDER_H
#define SOLVER_ORDER_H
#include <stddef.h>
#include <stdint.h>

enum order_kind { ORDER_NONE, ORDER_FULL, ORDER_GAR };
enum order_key { ORDER_MAX, ORDER_MEAN, ORDER_SUM, ORDER_MEDIAN, ORDER_TOP10 };
extern const char *const order_kinds[];		/* names by number, NULL-terminated */
extern const char *const order_keys[];

size_t order_workspace(size_t n);			/* bytes of work */

/*
 * order: position → column. group: columns a group, the last one may be
 * shorter; 0: one group. diag is the raw diagonal, before damping. Returns 0,
 * or 1 + the first column whose diagonal is not a number of at least 0.
 */
size_t order_columns(size_t n, int32_t order[n], const float diag[n], enum order_kind kind,
	enum order_key key, size_t group, void *work);
#endif
