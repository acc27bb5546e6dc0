/* SPDX-License-Identifier: GPL-3.0-or-later */
/* status.h -- whether a layer was quantized, or which of its numbers did not let that be */
#ifndef QUANT_STATUS_H
#define QUANT_STATUS_H

/* With each, where `index` says. */
enum status {
	STATUS_DONE,
	STATUS_BAD_WEIGHT,		/* a weight of row `index` is not finite */
	STATUS_BAD_MAIN,		/* likewise of the main path that is given */
	STATUS_BAD_ORDER,		/* not a permutation: position `index` */
	STATUS_BAD_DIAGONAL,		/* H[index][index] is negative or not finite */
	STATUS_BAD_HESSIAN,		/* an element of row `index` of H is not finite */
	STATUS_NOT_POSITIVE,		/* H is indefinite beyond 100 times the damping: column `index` */
	STATUS_OVERFLOW,		/* a number of a branch is beyond its type */
	STATUS_NO_CONVERGENCE,		/* of an eigenvalue problem */
};
const char *status_text(enum status status);	/* "the order is not a permutation of the columns" */
#endif
