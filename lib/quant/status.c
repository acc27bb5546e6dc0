/* SPDX-License-Identifier: GPL-3.0-or-later */
/* status.c -- see status.h */
#include "quant/status.h"

static const char *const texts[] = {
	[STATUS_DONE] = "done",
	[STATUS_BAD_WEIGHT] = "a weight is not finite",
	[STATUS_BAD_MAIN] = "a weight of the main path is not finite",
	[STATUS_BAD_ORDER] = "the order is not a permutation of the columns",
	[STATUS_BAD_DIAGONAL] = "the Hessian has a diagonal that is negative or not finite",
	[STATUS_BAD_HESSIAN] = "the Hessian has an element that is not finite",
	[STATUS_NOT_POSITIVE] = "the Hessian is not positive definite, even with 100 times the damping "
		"(--damp 0 has none)",
	[STATUS_OVERFLOW] = "a number of the branch overflows the type that it is stored in",
	[STATUS_BEYOND_HALF] = "weights of a row need a scale beyond the range of f16",
	[STATUS_NO_CONVERGENCE] = "the eigenvalues of the error do not converge",
};

const char *status_text(enum status status)
{
	return texts[status];
}
