/* SPDX-License-Identifier: GPL-3.0-or-later */
/* status.h -- result of the quantization of a layer: success, or the numbers that are invalid */
#ifndef QUANT_STATUS_H
#define QUANT_STATUS_H

/* index: the number that is returned with the status. */
enum status {
	STATUS_DONE,
	STATUS_BAD_WEIGHT,		/* a weight of row `index` is not finite */
	STATUS_BAD_MAIN,		/* a weight of row `index` of the given main path is not finite */
	STATUS_BAD_ORDER,		/* not a permutation: position `index` */
	STATUS_BAD_DIAGONAL,		/* H[index][index] is negative or not finite */
	STATUS_BAD_HESSIAN,		/* an element of row `index` of H is not finite */
	STATUS_NOT_POSITIVE,		/* H is indefinite beyond 100 times the damping: column `index` */
	STATUS_OVERFLOW,		/* a number of a branch overflows its type */
	STATUS_BEYOND_HALF,		/* a scale of row `index` is beyond the range of f16 */
	STATUS_NO_CONVERGENCE,		/* an eigenvalue problem does not converge */
};
const char *status_text(enum status status);	/* "the order is not a permutation of the columns" */
#endif
