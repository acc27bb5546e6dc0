/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * order.h -- the order in which the solver quantizes the columns of a layer
 *
 * none: storage order. full: by descending diagonal of H (the act-order of GPTQ). gar: groups by descending
 * key, and columns in each group by descending diagonal (DPQ section 3.2, appendix A). The key of a group of
 * n columns is the largest diagonal element (as in DPQ), the mean, the sum, the median, or the mean of the
 * ⌈n/10⌉ largest. Ties keep the storage order.
 */
#ifndef SOLVER_ORDER_H
#define SOLVER_ORDER_H
#include <stddef.h>
#include <stdint.h>

enum order_kind { ORDER_NONE, ORDER_FULL, ORDER_GAR };
enum order_key { ORDER_MAX, ORDER_MEAN, ORDER_SUM, ORDER_MEDIAN, ORDER_TOP10 };
extern const char *const order_kinds[];		/* names by number, NULL-terminated */
extern const char *const order_keys[];

size_t order_workspace(size_t n);			/* bytes of `work` */

/*
 * Sets order: position → column. group: columns per group, the last group may be
 * shorter; 0: one group. diag is the diagonal of H, without damping. Returns 0,
 * or 1 + the first column whose diagonal is negative or NaN.
 */
size_t order_columns(size_t n, int32_t order[n], const float diag[n], enum order_kind kind,
	enum order_key key, size_t group, void *work);
#endif
